//! One test binary. Each test has a real server on a real PostgreSQL, with a database of its own, and all run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].

mod support;

mod contract_answers;
mod contract_keys;
mod contract_order;
mod contract_same_request;
mod embedded;
mod four_cases;
mod key_look_up;
mod log_lines;
mod outcomes;
mod riskiest;
mod sweeping;

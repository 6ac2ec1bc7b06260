//! One test binary. Each test has a real server on a real PostgreSQL, with a database of its own, and all run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].

mod support;

mod audit;
mod bad_bodies;
mod bad_http;
mod bad_input;
mod embedded;
mod fuzz;
mod kill_storm;
mod migrations;
mod money_storm;
mod program;
mod riskiest;

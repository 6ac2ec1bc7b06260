//! One test binary. Each test has a real server on a real PostgreSQL, with a database of its own, and all run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].

mod support;

mod balance;
mod charges;
mod customers;
mod declines;
mod embedded;
mod errors;
mod events;
mod expand;
mod lists;
mod money;
mod plans;
mod races;
mod readme;
mod refunds;
mod riskiest;
mod tokens;

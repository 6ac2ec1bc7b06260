//! One test binary. Each test has a real server on a real PostgreSQL, with a database of its own, and all run in
//! parallel. A test is a sentence; what it needs from the world is in [`support`].

mod support;

mod embedded;
mod riskiest;
mod round_trips;

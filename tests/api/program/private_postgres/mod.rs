//! The private PostgreSQL, with everything that can go wrong around it.
//!
//! Every test has a directory, a cluster and processes of its own. Where a process must die, or be another user, it is
//! this test binary once more, running `another_process_uses_the_cluster`.

mod area;
mod crashes;
mod directories;
mod start_and_stop;
mod users;

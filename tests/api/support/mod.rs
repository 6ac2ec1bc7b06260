//! What the tests share.

mod app;
mod client;
mod gate;
pub mod intents;
mod postgres;
mod program;
mod random;
pub mod shapes;
mod tap;

pub use app::{TestApp, probe_routes, probed};
pub use client::{Call, Reply, raw_request};
pub use gate::Gate;
pub use postgres::TestDatabase;
pub use program::Program;
pub use random::Random;
pub use tap::Tap;

use std::time::{Duration, Instant};

/// A key that no other test has.
pub fn fresh_key() -> String {
    format!("key-{}", uuid::Uuid::now_v7().simple())
}

/// Waits until `condition` holds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(10));
    }
}

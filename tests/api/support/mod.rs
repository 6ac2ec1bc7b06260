//! The servers, clients and databases that the tests share.

mod app;
pub mod bytes;
mod client;
mod gate;
pub mod intents;
mod listener;
mod logged;
mod lossy_proxy;
mod message;
pub mod network;
mod own_cluster;
mod postgres;
mod process;
mod program;
mod proxy;
mod random;
mod raw;
mod receiver;
pub mod samples;
pub mod sdk;
pub mod shapes;
mod worker;

pub use app::{TestApp, probe_routes, probed};
pub use client::{Call, Reply, http};
pub use gate::Gate;
pub use logged::logged;
pub use lossy_proxy::{Fate, Journal, LossyProxy, Passage};
pub use own_cluster::OwnCluster;
pub use postgres::{TestDatabase, id_in_sql, id_of};
pub use process::Process;
pub use program::{Program, oncepay, oncepay_on};
pub use proxy::{Cut, Proxy, Traffic};
pub use random::Random;
pub use raw::Raw;
pub use receiver::{Behaviour, Received, Receiver};
pub use worker::Worker;

use std::time::{Duration, Instant};

/// The form of a charge of 10.00 usd.
pub const CHARGE: &str = "amount=1000&currency=usd&source=tok_visa";

/// The form of a charge that is held until it is captured.
pub const HOLD: &str = "amount=1000&currency=usd&source=tok_visa&capture=false";

/// The secret key of the tests' servers.
pub const SECRET_KEY: &str = "the secret of the tests is long enough";

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

//! What all requests share, and the clock among it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::card_network::simulation;
use crate::db::Database;
use crate::faults::Faults;
use crate::metrics::Metrics;
use crate::secrets::Secrets;
use crate::webhooks;

/// What all requests share. Nothing correct depends on it being one: several instances may serve one database.
pub type State = Arc<Shared>;

pub struct Shared {
    pub database: Database,
    pub secrets: Secrets,
    /// How long a key is remembered, unless its route says otherwise.
    pub key_lifetime: Duration,
    pub key_is_required: bool,
    pub webhooks: webhooks::Settings,
    pub network: simulation::Settings,
    /// Wakes the worker when there may be something to send.
    pub wake: Notify,
    pub clock: Clock,
    pub metrics: Metrics,
    pub faults: Faults,
}

/// The time of day, which a test may move.
#[derive(Debug, Default)]
pub struct Clock {
    ahead_milliseconds: AtomicI64,
}

impl Clock {
    pub fn now(&self) -> DateTime<Utc> {
        Utc::now() + chrono::Duration::milliseconds(self.ahead_milliseconds.load(Ordering::Relaxed))
    }

    /// Moves this clock, and no other, forward.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_milliseconds.fetch_add(by, Ordering::Relaxed);
    }
}

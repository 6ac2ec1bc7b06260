//! The clock of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

/// The current time, which a test may move; clones share one clock.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    ahead_milliseconds: Arc<AtomicI64>,
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

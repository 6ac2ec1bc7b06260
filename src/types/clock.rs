//! The clock of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

/// By how much a clock may differ from the time that has passed before it has jumped.
const TOLERANCE: chrono::Duration = chrono::Duration::seconds(2);

/// The time of day, which a test may move. Clones are one clock.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    ahead_milliseconds: Arc<AtomicI64>,
}

impl Clock {
    pub fn now(&self) -> DateTime<Utc> {
        Utc::now() + chrono::Duration::milliseconds(self.ahead_milliseconds.load(Ordering::Relaxed))
    }

    /// Moves this clock, and no other, back.
    pub fn turn_back(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_milliseconds.fetch_sub(by, Ordering::Relaxed);
    }

    /// Moves this clock, and no other, forward.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_milliseconds.fetch_add(by, Ordering::Relaxed);
    }
}

/// Notices when a clock jumps, by the time that has really passed.
#[derive(Debug)]
pub struct Watch {
    clock: Clock,
    at: (DateTime<Utc>, Instant),
}

impl Watch {
    pub fn new(clock: Clock) -> Self {
        let at = (clock.now(), Instant::now());
        Self { clock, at }
    }

    /// Whether the clock has jumped since it was last asked.
    pub fn has_jumped(&mut self) -> bool {
        let (now, instant) = (self.clock.now(), Instant::now());
        let passed = chrono::Duration::from_std(instant - self.at.1).unwrap_or(chrono::Duration::MAX);
        let shown = now - self.at.0;
        self.at = (now, instant);
        (shown - passed).abs() > TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_in_either_direction_is_noticed_once() {
        let clock = Clock::default();
        let mut watch = Watch::new(clock.clone());
        assert!(!watch.has_jumped());
        clock.advance(Duration::from_secs(3600));
        assert!(watch.has_jumped() && !watch.has_jumped());
        clock.turn_back(Duration::from_secs(36_000));
        assert!(watch.has_jumped() && !watch.has_jumped());
        clock.advance(Duration::from_secs(1));
        assert!(!watch.has_jumped());
    }
}

//! When a delivery that failed is sent again.

use chrono::{DateTime, Utc};

/// When a delivery that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Schedule {
    /// Over three days.
    #[default]
    Live,
    /// Within seconds at first, over an hour: for people who watch.
    Fast,
}

impl Schedule {
    /// The pauses after the first, second, … failed attempt, in seconds; after the last there is no other.
    pub fn pauses(self) -> &'static [u64] {
        match self {
            // 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h, 20 h: three days in all.
            Schedule::Live => &[5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 73_495],
            Schedule::Fast => &[1, 2, 4, 8, 15, 30, 60, 120, 300, 900, 1800],
        }
    }

    /// When to try again after `attempts` failed ones.
    pub fn next(self, attempts: i32, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let index = usize::try_from(attempts).ok()?.checked_sub(1)?;
        let pause = self.pauses().get(index)?;
        Some(now + chrono::Duration::seconds(i64::try_from(*pause).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_schedule_lasts_three_days_and_the_fast_one_begins_within_two_seconds() {
        let total: u64 = Schedule::Live.pauses().iter().sum();
        assert_eq!(total, 3 * 24 * 3600);
        assert!(Schedule::Fast.pauses()[0] <= 2);
        for schedule in [Schedule::Live, Schedule::Fast] {
            assert!(schedule.pauses().is_sorted());
            let now = Utc::now();
            let last = i32::try_from(schedule.pauses().len()).unwrap();
            assert!(schedule.next(1, now).unwrap() > now);
            assert!(schedule.next(last, now).is_some());
            assert!(schedule.next(last + 1, now).is_none());
        }
    }
}

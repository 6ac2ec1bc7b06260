//! Named points of a request at which a test stops, pauses or kills the server. Without the feature `fault-points`
//! nothing happens at any of them.

use super::Call;

/// A point between two steps of [`super::execute`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    AfterLookUp,
    AfterBegin,
    AfterClaim,
    AfterEffect,
    AfterRecord,
    BeforeCommit,
    AfterCommit,
}

impl Point {
    pub const ALL: [Point; 7] = [
        Point::AfterLookUp,
        Point::AfterBegin,
        Point::AfterClaim,
        Point::AfterEffect,
        Point::AfterRecord,
        Point::BeforeCommit,
        Point::AfterCommit,
    ];

    /// Its name in the environment variable [`KILL_AT`].
    pub fn as_str(self) -> &'static str {
        match self {
            Point::AfterLookUp => "after-look-up",
            Point::AfterBegin => "after-begin",
            Point::AfterClaim => "after-claim",
            Point::AfterEffect => "after-effect",
            Point::AfterRecord => "after-record",
            Point::BeforeCommit => "before-commit",
            Point::AfterCommit => "after-commit",
        }
    }
}

/// Names the point at which the process kills itself with SIGKILL.
pub const KILL_AT: &str = "ONCEPAY_KILL_AT";

/// Names the point at which each request panics.
pub const PANIC_AT: &str = "ONCEPAY_PANIC_AT";

/// What happens at the points.
#[derive(Default)]
pub struct Faults {
    #[cfg(feature = "fault-points")]
    hook: Option<Box<Hook>>,
}

/// What a test does at a point; it runs on the database thread of the request.
#[cfg(feature = "fault-points")]
pub type Hook = dyn Fn(Point, &Call) + Send + Sync;

#[cfg(feature = "fault-points")]
impl Faults {
    pub fn new(hook: impl Fn(Point, &Call) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Box::new(hook)) }
    }

    /// Kills the process where [`KILL_AT`] says, and panics where [`PANIC_AT`] does.
    pub fn from_environment() -> Self {
        let named = |variable| std::env::var(variable).unwrap_or_default();
        let (kill_at, panic_at) = (named(KILL_AT), named(PANIC_AT));
        Self::new(move |point, _| {
            if point.as_str() == kill_at {
                // SAFETY: raise has no preconditions.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            assert_ne!(point.as_str(), panic_at, "told to panic here");
        })
    }

    pub(crate) fn reach(&self, point: Point, call: &Call) {
        if let Some(hook) = &self.hook {
            hook(point, call);
        }
    }
}

#[cfg(not(feature = "fault-points"))]
impl Faults {
    pub fn from_environment() -> Self {
        Self::default()
    }

    #[inline]
    pub(crate) fn reach(&self, _: Point, _: &Call) {}
}

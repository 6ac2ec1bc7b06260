//! Named points of a request at which a test stops, pauses or kills the server.
//!
//! Without the feature `fault-points`, nothing happens at any of them.

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

    /// The name of the point in [`KILL_AT`] and [`PANIC_AT`].
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

/// The environment variable that names the point at which the process kills itself with SIGKILL.
pub const KILL_AT: &str = "ONCEPAY_KILL_AT";

/// The environment variable that names the point at which each request panics.
pub const PANIC_AT: &str = "ONCEPAY_PANIC_AT";

/// What the server does at each point.
#[derive(Default)]
pub struct Faults {
    #[cfg(feature = "fault-points")]
    hook: Option<Box<Hook>>,
}

/// What a test does at a point, on the database thread of the request.
#[cfg(feature = "fault-points")]
pub type Hook = dyn Fn(Point, &Call) + Send + Sync;

#[cfg(feature = "fault-points")]
impl Faults {
    pub fn new(hook: impl Fn(Point, &Call) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Box::new(hook)) }
    }

    /// Kills the process at the point that [`KILL_AT`] names, and panics at the point that [`PANIC_AT`] names.
    pub fn from_environment() -> Self {
        let named = |variable| std::env::var(variable).unwrap_or_default();
        let (kill_at, panic_at) = (named(KILL_AT), named(PANIC_AT));
        Self::new(move |point, _| {
            if point.as_str() == kill_at {
                // SAFETY: raise has no preconditions.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            assert_ne!(point.as_str(), panic_at, "the environment asks for a panic here");
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

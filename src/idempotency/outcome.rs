//! The outcome of a request that writes.

use crate::error::Error;

/// How a request that writes ended, for the log and the metrics.
///
/// A request whose COMMIT may or may not have succeeded has no outcome, and no counter counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ran and committed.
    Executed,
    /// It was answered from the record.
    Replayed,
    /// The first request with the key was still running.
    Conflict,
    /// The key had already answered a different request.
    Mismatch,
    /// It had no key, and needed one.
    Missing,
    /// Its key is not valid.
    Invalid,
    /// It ran and committed, and replaced a record whose lifetime was over.
    Expired,
    /// It was refused or it failed, and left nothing behind.
    RolledBack,
}

impl Outcome {
    pub const ALL: [Outcome; 8] = [
        Outcome::Executed,
        Outcome::Replayed,
        Outcome::Conflict,
        Outcome::Mismatch,
        Outcome::Missing,
        Outcome::Invalid,
        Outcome::Expired,
        Outcome::RolledBack,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Executed => "executed",
            Outcome::Replayed => "replayed",
            Outcome::Conflict => "conflict",
            Outcome::Mismatch => "mismatch",
            Outcome::Missing => "missing",
            Outcome::Invalid => "invalid",
            Outcome::Expired => "expired",
            Outcome::RolledBack => "rolled_back",
        }
    }

    /// The outcome of a request that ended with this error; `None` if it may have committed.
    pub fn of(error: &Error) -> Option<Self> {
        match error {
            Error::KeyInUse(_) => Some(Outcome::Conflict),
            Error::KeyReused { .. } => Some(Outcome::Mismatch),
            Error::OutcomeUnknown { .. } => None,
            _ => Some(Outcome::RolledBack),
        }
    }
}

//! What becomes of a request that writes.

use crate::error::Error;

/// What became of a request that writes, counted apart in the log and the metrics. A request whose COMMIT has an unknown
/// outcome is counted nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Ran and committed.
    Executed,
    /// Answered from the record.
    Replayed,
    /// The first request with the key was still running.
    Conflict,
    /// The key had answered another request.
    Mismatch,
    /// No key where one is needed.
    Missing,
    /// A key that is no key.
    Invalid,
    /// Ran and committed, after an earlier use of the key whose lifetime was over.
    Expired,
    /// Refused or failed; nothing remains.
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

    /// What the request came to that ended with this error; `None` if it is not known whether it committed.
    pub fn of(error: &Error) -> Option<Self> {
        match error {
            Error::KeyInUse(_) => Some(Outcome::Conflict),
            Error::KeyReused { .. } => Some(Outcome::Mismatch),
            Error::OutcomeUnknown { .. } => None,
            _ => Some(Outcome::RolledBack),
        }
    }
}

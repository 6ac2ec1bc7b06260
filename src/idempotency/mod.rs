//! The protocol: how a duplicate finds the first answer and changes nothing.
//!
//! The contract is the table in the README; [`execute`] is how a request that writes meets the database. This room knows
//! neither HTTP nor payments: it could be lifted out as it is. It runs as one job
//! on one database thread, and the claim on the key, every write of the handler and the stored answer are one PostgreSQL
//! transaction. *An answer is remembered exactly when its effect is committed.*
//!
//! | step | statement | why |
//! |---|---|---|
//! | look up | the account of the API key and, in the same statement, the record of the idempotency key; done by [`crate::http`], which knows API keys | a replay costs one round trip |
//! | `begin` | `BEGIN`, with bounds for locks and statements | nobody waits for ever |
//! | `claim` | `pg_try_advisory_xact_lock` | a duplicate of a running request gets 409 at once, and never waits |
//! | `look_again` | the record, under the lock | the first request may have committed between look-up and claim |
//! | `effect` | the handler's closure | it runs here and nowhere else, so at most once |
//! | `remember` | `INSERT` of the complete record | the row exists if and only if the response was committed |
//! | `commit` | `COMMIT` | both, or neither |
//!
//! Whoever finds under the lock that another was first after all rolls back, and answers with the other's record.

mod answer;
mod call;
pub mod faults;
pub mod fingerprint;
pub mod key;
mod outcome;
mod protocol;
pub mod record;
pub mod sweep;

pub use answer::Answer;
pub use call::{Call, Claim, KeySource};
pub use fingerprint::Fingerprint;
pub use key::Key;
pub use outcome::Outcome;
pub use protocol::{Done, Engine, Found, Work, execute};

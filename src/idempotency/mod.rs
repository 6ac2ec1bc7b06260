//! The protocol: how a duplicate finds the first answer and changes nothing.
//!
//! The README has the contract as a table. [`execute`] carries it out, as one job on one database thread: the claim on the
//! key, every write of the handler and the stored answer are one PostgreSQL transaction. *An answer is remembered exactly
//! when its effect is committed.* This module knows neither HTTP nor payments, so another program could use it as it is.
//!
//! | step | statement | why |
//! |---|---|---|
//! | look up | one `SELECT` of the account of the API key and the record of the idempotency key; [`crate::http`] runs it, because it knows API keys | a replay costs one round trip |
//! | `begin` | `BEGIN`, with limits for locks and statements | no request waits for ever |
//! | `claim` | `pg_try_advisory_xact_lock` | a duplicate of a running request gets 409 at once, and never waits |
//! | `look_again` | `SELECT` of the record, under the lock | the first request may have committed between look-up and claim |
//! | `effect` | the handler's closure | it runs in this step only, so at most once |
//! | `remember` | `INSERT` of the complete record | the row exists if and only if the response was committed |
//! | `commit` | `COMMIT` | effect and record become visible together |
//!
//! A request that finds another one's record under the lock rolls back and replays that record.

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

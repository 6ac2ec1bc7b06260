//! The protocol: how a duplicate finds the first answer and changes nothing.
//!
//! The contract is the table in the README; [`execute`] is all of it that touches the database. It runs as one
//! job on one database thread, and the claim on the key, every write of the handler and the stored answer are
//! one PostgreSQL transaction. *An answer is remembered exactly when its effect is committed.*
//!
//! | step | statement | why |
//! |---|---|---|
//! | look up | the account of the API key and, in the same statement, the record of the idempotency key | a replay costs one round trip |
//! | begin | `BEGIN`, with bounds for locks and statements | |
//! | claim | `pg_try_advisory_xact_lock` | a duplicate of a running request gets 409 at once, and never waits |
//! | look again | the record, under the lock | the first request may have committed between look-up and claim |
//! | effect | the handler's closure | |
//! | remember | `INSERT` of the complete record | the row exists if and only if the response was committed |
//! | commit | `COMMIT` | both, or neither |

pub mod fingerprint;
mod guard;
pub mod handlers;
pub mod key;
pub mod record;
mod response;
pub mod sweep;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;

use crate::app::State;
use crate::auth::{self, Account, Credentials};
use crate::db;
use crate::error::Error;
use crate::faults::Point;
use crate::types::cause::Request;
use crate::types::{Cause, Id};
pub use fingerprint::Fingerprint;
pub use guard::guard;
pub use key::Key;
use record::Record;
pub use response::Answer;

/// How a route that is not a `GET` deals with duplicates. The table of routes gives every such route one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Needs an `Idempotency-Key`; the answer is remembered.
    Keyed {
        /// How long a key is remembered; `None` is the server's setting.
        lifetime: Option<Duration>,
        /// The answer holds a secret that is shown once, so it is encrypted where it is stored.
        secret: bool,
    },
    /// A signed notification of the card network: its id is the key, and a signature stands for the API key.
    Signed {
        /// How long the sender may go on sending the same notification.
        lifetime: Duration,
    },
    /// Idempotent by HTTP itself (`DELETE`): the same transaction, and nothing remembered.
    Unkeyed,
}

impl Policy {
    /// What nearly every `POST` has.
    pub const KEYED: Policy = Policy::Keyed { lifetime: None, secret: false };
}

/// One call of the API, as the middleware read it.
#[derive(Debug)]
pub struct Call {
    pub request_id: Id<Request>,
    pub now: DateTime<Utc>,
    pub caller: Caller,
    /// How the caller reached this server.
    pub base_url: String,
    /// Whether the route has a policy, and so a transaction that writes.
    pub writes: bool,
    /// None if the route is unkeyed, or keys are optional and none was sent.
    pub claim: Option<Claim>,
}

/// Who calls.
#[derive(Debug)]
pub enum Caller {
    /// Whoever has this API key; whether it works is for the database to say.
    Holder(Credentials),
    /// The card network, whose signature was right, about this account.
    Network(Id<Account>),
}

/// What a request claims: a key, for exactly this request.
#[derive(Debug)]
pub struct Claim {
    pub source: Source,
    pub key: Key,
    pub fingerprint: Fingerprint,
    pub lifetime: Duration,
    pub secret: bool,
    /// The caller sent `Stripe-Version`, so it is an SDK.
    pub from_an_sdk: bool,
}

/// Who chose the key. Keys of two sources never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The caller, in the header `Idempotency-Key`.
    Api,
    /// The card network: the id of the event it notifies us of.
    Network,
}

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

/// The end of [`execute`].
pub struct Done {
    pub account: Option<Id<Account>>,
    /// None if it is not known whether the transaction committed.
    pub outcome: Option<Outcome>,
    pub answer: Result<Answer, Error>,
}

/// Runs a request that writes. `work` runs at most once, and its effect and its answer commit together.
pub fn execute(
    state: &State,
    connection: &mut PgConnection,
    call: &Call,
    work: impl FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error>,
) -> Done {
    let (account, record) = match look_up(state, connection, call) {
        Ok(found) => found,
        Err(error) => return end(state, None, Err(error)),
    };
    state.faults.reach(Point::AfterLookUp, call);
    let done = match record.filter(|record| record.is_live(call.now)) {
        Some(record) => replay(state, account, call, &record),
        None => run_once(state, connection, account, call, work),
    };
    end(state, Some(account), done)
}

/// An answer that is committed, by this request or by the first one with its key.
type Ended = (Outcome, Answer);

/// Counts what became of the request: here, on its database thread, so that one whose client has gone is counted too.
fn end(state: &State, account: Option<Id<Account>>, ended: Result<Ended, Error>) -> Done {
    let (outcome, answer) = match ended {
        Ok((outcome, answer)) => (Some(outcome), Ok(answer)),
        Err(error) => (outcome_of(&error), Err(error)),
    };
    if let Some(outcome) = outcome {
        state.metrics.outcome(outcome);
    }
    Done { account, outcome, answer }
}

/// From BEGIN to COMMIT.
fn run_once(
    state: &State,
    connection: &mut PgConnection,
    account: Id<Account>,
    call: &Call,
    work: impl FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error>,
) -> Result<Ended, Error> {
    state.database.first(connection, |connection| db::begin(connection, db::BEGIN))?;
    state.faults.reach(Point::AfterBegin, call);
    match within_transaction(state, connection, account, call, work) {
        Ok(Within::Ran { answer, expired }) => {
            state.faults.reach(Point::BeforeCommit, call);
            db::commit(connection, call.claim.is_some())?;
            state.faults.reach(Point::AfterCommit, call);
            Ok((if expired { Outcome::Expired } else { Outcome::Executed }, answer))
        }
        Ok(Within::Lost(claim)) => {
            db::rollback(connection);
            let winner = record::find(connection, account, claim)?;
            replay(state, account, call, &winner.ok_or_else(|| Error::KeyInUse(claim.key.to_string()))?)
        }
        Err(error) => {
            db::rollback(connection);
            Err(error)
        }
    }
}

/// How a transaction may end without an error.
enum Within<'a> {
    Ran {
        answer: Answer,
        expired: bool,
    },
    /// Another transaction answered this key first.
    Lost(&'a Claim),
}

/// Claim, look again, effect, remember.
fn within_transaction<'a>(
    state: &State,
    connection: &mut PgConnection,
    account: Id<Account>,
    call: &'a Call,
    work: impl FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error>,
) -> Result<Within<'a>, Error> {
    let Some(claim) = &call.claim else {
        let answer = effect(connection, call, account, work)?;
        // COMMIT of a transaction that has failed is a silent ROLLBACK. Where a record is inserted, that insert
        // would fail; here this statement does.
        record::prove_alive(connection)?;
        return Ok(Within::Ran { answer, expired: false });
    };
    // Ends the race of two requests with one key: the lock is held until COMMIT or ROLLBACK, by whoever is first.
    if !record::try_lock(connection, account, claim)? {
        return Err(Error::KeyInUse(claim.key.to_string()));
    }
    state.faults.reach(Point::AfterClaim, call);
    // A statement of its own: it sees what was committed before it began, which the first look-up may not have.
    let found = record::find(connection, account, claim)?;
    let expired = found.is_some();
    if let Some(record) = found {
        if record.is_live(call.now) {
            return Ok(Within::Lost(claim));
        }
        record::delete(connection, account, claim)?;
    }
    let answer = effect(connection, call, account, work)?;
    state.faults.reach(Point::AfterEffect, call);
    if !record::insert(state, connection, account, call, claim, &answer)? {
        return Ok(Within::Lost(claim));
    }
    state.faults.reach(Point::AfterRecord, call);
    Ok(Within::Ran { answer, expired })
}

/// The handler's closure. A panic in it is an error like another: it rolls back, and the server goes on.
fn effect(
    connection: &mut PgConnection,
    call: &Call,
    account: Id<Account>,
    work: impl FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error>,
) -> Result<Answer, Error> {
    let cause = call.cause(account);
    catch_unwind(AssertUnwindSafe(|| work(connection, &cause)))
        .unwrap_or_else(|panic| Err(Error::Internal(db::panicked(&*panic))))
}

/// The account and, if the request has a key, its record: one statement.
fn look_up(
    state: &State,
    connection: &mut PgConnection,
    call: &Call,
) -> Result<(Id<Account>, Option<Record>), Error> {
    let found = state.database.first(connection, |connection| match (&call.caller, &call.claim) {
        (Caller::Holder(credentials), Some(claim)) => {
            record::find_with_account(connection, credentials, claim)
        }
        (Caller::Holder(credentials), None) => {
            Ok(auth::queries::account(connection, credentials)?.map(|account| (account, None)))
        }
        (Caller::Network(account), claim) => {
            let record = claim.as_ref().map(|claim| record::find(connection, *account, claim)).transpose()?;
            Ok(auth::queries::account_with_id(connection, *account)?
                .map(|account| (account, record.flatten())))
        }
    })?;
    found.ok_or_else(|| call.caller.unknown())
}

/// The first answer again, if this is the same request.
fn replay(state: &State, account: Id<Account>, call: &Call, record: &Record) -> Result<Ended, Error> {
    let claim = call.claim.as_ref().expect("a record is found by a claim");
    if !record.is_of(&claim.fingerprint) {
        return Err(Error::KeyReused { key: claim.key.to_string(), to_an_sdk: claim.from_an_sdk });
    }
    Ok((Outcome::Replayed, record.answer(&state.secrets, account, claim)?))
}

fn outcome_of(error: &Error) -> Option<Outcome> {
    match error {
        Error::KeyInUse(_) => Some(Outcome::Conflict),
        Error::KeyReused { .. } => Some(Outcome::Mismatch),
        Error::OutcomeUnknown { .. } => None,
        _ => Some(Outcome::RolledBack),
    }
}

impl Caller {
    /// That there is no such account.
    pub fn unknown(&self) -> Error {
        match self {
            Caller::Holder(credentials) => credentials.unknown(),
            Caller::Network(account) => Error::no_such::<Account>(&account.to_string(), "account"),
        }
    }
}

impl Call {
    /// The cause of all that this call writes.
    pub fn cause(&self, account: Id<Account>) -> Cause {
        // The id of a notification is no key of the account's, and an event must not show it as one.
        let own = self.claim.as_ref().filter(|claim| claim.source == Source::Api);
        let key = own.map(|claim| claim.key.to_string());
        Cause::new(account, self.request_id, key, self.now, self.base_url.clone())
    }
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Api => "api",
            Source::Network => "network",
        }
    }
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
}

//! The protocol: how a duplicate finds the first answer and changes nothing.
//!
//! The contract is the table in the README; [`execute`] is how a request that writes meets the database. It runs as one job
//! on one database thread, and the claim on the key, every write of the handler and the stored answer are one PostgreSQL
//! transaction. *An answer is remembered exactly when its effect is committed.*
//!
//! | step | statement | why |
//! |---|---|---|
//! | `look_up` | the account of the API key and, in the same statement, the record of the idempotency key | a replay costs one round trip |
//! | `begin` | `BEGIN`, with bounds for locks and statements | nobody waits for ever |
//! | `claim` | `pg_try_advisory_xact_lock` | a duplicate of a running request gets 409 at once, and never waits |
//! | `look_again` | the record, under the lock | the first request may have committed between look-up and claim |
//! | `effect` | the handler's closure | it runs here and nowhere else, so at most once |
//! | `remember` | `INSERT` of the complete record | the row exists if and only if the response was committed |
//! | `commit` | `COMMIT` | both, or neither |
//!
//! Whoever finds under the lock that another was first after all rolls back, and answers with the other's record.

mod call;
pub mod fingerprint;
mod guard;
pub mod handlers;
pub mod key;
mod outcome;
pub mod record;
mod response;
pub mod sweep;

use std::panic::{AssertUnwindSafe, catch_unwind};

use diesel::pg::PgConnection;

use crate::app::State;
use crate::auth::{self, Account};
use crate::db;
use crate::error::Error;
use crate::faults::Point;
use crate::types::{Cause, Id};
pub use call::{Call, Caller, Claim, Policy, Source};
pub use fingerprint::Fingerprint;
pub use guard::guard;
pub use key::Key;
pub use outcome::Outcome;
use record::Record;
pub use response::Answer;

/// What a handler does in its transaction.
pub trait Work: FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error> {}

impl<F: FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error>> Work for F {}

/// The end of [`execute`].
pub struct Done {
    pub account: Option<Id<Account>>,
    /// None if it is not known whether the transaction committed.
    pub outcome: Option<Outcome>,
    pub answer: Result<Answer, Error>,
}

/// An answer that is committed, by this request or by the first one with its key.
type Ended = (Outcome, Answer);

/// Runs a request that writes. `work` runs at most once, and its effect and its answer commit together.
pub fn execute(state: &State, connection: &mut PgConnection, call: &Call, work: impl Work) -> Done {
    let (account, record) = match look_up(state, connection, call) {
        Ok(found) => found,
        Err(error) => return Done::new(None, Err(error)),
    };
    let mut run = Run { state, connection, account, call };
    let ended = match record {
        Some(record) if record.is_live(call.now) => run.replay(&record),
        _ => run.once(work),
    };
    Done::new(Some(account), ended)
}

/// A request on its way through the protocol.
struct Run<'a> {
    state: &'a State,
    connection: &'a mut PgConnection,
    account: Id<Account>,
    call: &'a Call,
}

/// Why a transaction does not commit.
enum Stop {
    Failed(Error),
    /// Another transaction has answered this key.
    Answered,
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Failed(error.into())
    }
}

impl Run<'_> {
    fn once(&mut self, work: impl Work) -> Result<Ended, Error> {
        self.begin()?;
        match self.transaction(work) {
            Ok(ended) => self.commit().map(|()| ended),
            Err(stop) => {
                db::rollback(self.connection);
                match stop {
                    Stop::Failed(error) => Err(error),
                    Stop::Answered => self.replay_winner(),
                }
            }
        }
    }

    /// All that commits together. A request without a key has nothing to claim and nothing to remember.
    fn transaction(&mut self, work: impl Work) -> Result<Ended, Stop> {
        self.claim()?;
        let outcome = self.look_again()?;
        let answer = self.effect(work)?;
        self.remember(&answer)?;
        Ok((outcome, answer))
    }
}

// --- The steps, in their order ---

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
    state.faults.reach(Point::AfterLookUp, call);
    found.ok_or_else(|| call.caller.unknown())
}

impl Run<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        self.state.database.first(self.connection, |connection| db::begin(connection, db::BEGIN))?;
        self.state.faults.reach(Point::AfterBegin, self.call);
        Ok(())
    }

    /// Ends the race of two requests with one key: the first holds the lock until COMMIT or ROLLBACK.
    fn claim(&mut self) -> Result<(), Stop> {
        let Some(claim) = &self.call.claim else { return Ok(()) };
        if !record::try_lock(self.connection, self.account, claim)? {
            return Err(Stop::Failed(Error::KeyInUse(claim.key.to_string())));
        }
        self.state.faults.reach(Point::AfterClaim, self.call);
        Ok(())
    }

    /// A statement of its own: it sees what was committed before it began, which the first look-up may not have.
    fn look_again(&mut self) -> Result<Outcome, Stop> {
        let Some(claim) = &self.call.claim else { return Ok(Outcome::Executed) };
        match record::find(self.connection, self.account, claim)? {
            None => Ok(Outcome::Executed),
            Some(record) if record.is_live(self.call.now) => Err(Stop::Answered),
            Some(_) => {
                record::delete(self.connection, self.account, claim)?;
                Ok(Outcome::Expired)
            }
        }
    }

    /// The handler's closure. A panic in it is an error like another: it rolls back, and the server goes on.
    fn effect(&mut self, work: impl Work) -> Result<Answer, Stop> {
        let cause = self.call.cause(self.account);
        let answer = catch_unwind(AssertUnwindSafe(|| work(self.connection, &cause)))
            .unwrap_or_else(|panic| Err(Error::Internal(db::panicked(&*panic))))?;
        self.state.faults.reach(Point::AfterEffect, self.call);
        Ok(answer)
    }

    fn remember(&mut self, answer: &Answer) -> Result<(), Stop> {
        let Some(claim) = &self.call.claim else {
            // COMMIT of a transaction that has failed is a silent ROLLBACK. Where a record is inserted, that insert
            // would fail; here this statement does.
            return Ok(db::prove_alive(self.connection)?);
        };
        if !record::insert(self.state, self.connection, self.account, self.call, claim, answer)? {
            return Err(Stop::Answered);
        }
        self.state.faults.reach(Point::AfterRecord, self.call);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.state.faults.reach(Point::BeforeCommit, self.call);
        db::commit(self.connection, self.call.claim.is_some())?;
        self.state.faults.reach(Point::AfterCommit, self.call);
        Ok(())
    }

    /// The first answer again, if this is the same request.
    fn replay(&self, record: &Record) -> Result<Ended, Error> {
        let claim = self.call.claim.as_ref().expect("a record is found by a claim");
        if !record.is_of(&claim.fingerprint) {
            return Err(Error::KeyReused {
                key: claim.key.to_string(),
                first: format!(
                    "{}, at {}",
                    record.request_id,
                    record.created_at.format("%Y-%m-%d %H:%M:%S UTC")
                ),
                to_an_sdk: claim.from_an_sdk,
            });
        }
        Ok((Outcome::Replayed, record.answer(&self.state.secrets, self.account, claim)?))
    }

    /// The answer of the request that was first after all.
    fn replay_winner(&mut self) -> Result<Ended, Error> {
        let claim = self.call.claim.as_ref().expect("only a claim can lose");
        let record = record::find(self.connection, self.account, claim)?;
        self.replay(&record.ok_or_else(|| Error::KeyInUse(claim.key.to_string()))?)
    }
}

impl Done {
    fn new(account: Option<Id<Account>>, ended: Result<Ended, Error>) -> Self {
        match ended {
            Ok((outcome, answer)) => Self { account, outcome: Some(outcome), answer: Ok(answer) },
            Err(error) => Self { account, outcome: Outcome::of(&error), answer: Err(error) },
        }
    }
}

//! The protocol as a sequence of named steps; [`crate::idempotency`] lists them in a table.

use std::panic::{AssertUnwindSafe, catch_unwind};

use diesel::pg::PgConnection;

use super::faults::{Faults, Point};
use super::record::{self, Record};
use super::{Answer, Call, Outcome};
use crate::db::{self, Database};
use crate::error::Error;
use crate::secrets::Secrets;
use crate::types::Cause;
use crate::types::ids::AccountId;

/// What the protocol needs of the server.
pub struct Engine {
    pub database: Database,
    pub secrets: Secrets,
    pub faults: Faults,
}

/// What a handler does in its transaction.
pub trait Work: FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error> {}

impl<F: FnOnce(&mut PgConnection, &Cause) -> Result<Answer, Error>> Work for F {}

/// What the look-up found before the transaction begins.
pub struct Found {
    pub account: AccountId,
    /// The record of the request's key, if one exists.
    pub record: Option<Record>,
}

/// How a request ended.
pub struct Done {
    /// `None` if the transaction may or may not have committed.
    pub outcome: Option<Outcome>,
    pub answer: Result<Answer, Error>,
}

/// An answer that this request or the first one with its key committed.
type Committed = (Outcome, Answer);

/// Runs a request that writes: `work` runs at most once, and its effect and its answer commit together.
pub fn execute(
    engine: &Engine,
    connection: &mut PgConnection,
    call: &Call,
    found: Found,
    work: impl Work,
) -> Done {
    let mut run = Run { engine, connection, account: found.account, call };
    Done::new(match found.record {
        Some(record) if record.is_live(call.now) => run.replay(&record),
        _ => run.once(work),
    })
}

/// A request on its way through the protocol.
struct Run<'a> {
    engine: &'a Engine,
    connection: &'a mut PgConnection,
    account: AccountId,
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
    fn once(&mut self, work: impl Work) -> Result<Committed, Error> {
        self.begin()?;
        match self.transaction(work) {
            Ok(committed) => self.commit().map(|()| committed),
            Err(stop) => {
                db::rollback(self.connection);
                match stop {
                    Stop::Failed(error) => Err(error),
                    Stop::Answered => self.replay_winner(),
                }
            }
        }
    }

    /// The steps that commit together. A request without a key has nothing to claim and nothing to remember.
    fn transaction(&mut self, work: impl Work) -> Result<Committed, Stop> {
        self.claim()?;
        let outcome = self.look_again()?;
        let answer = self.effect(work)?;
        self.remember(&answer)?;
        Ok((outcome, answer))
    }
}

// --- The steps, in their order ---

impl Run<'_> {
    fn begin(&mut self) -> Result<(), Error> {
        self.engine
            .database
            .with_reconnect(self.connection, |connection| db::begin(connection, db::BEGIN))?;
        self.engine.faults.reach(Point::AfterBegin, self.call);
        Ok(())
    }

    /// Ends the race of two requests with one key: the first holds the lock until COMMIT or ROLLBACK.
    fn claim(&mut self) -> Result<(), Stop> {
        let Some(claim) = &self.call.claim else { return Ok(()) };
        if !record::try_lock(self.connection, self.account, claim)? {
            return Err(Stop::Failed(Error::KeyInUse(claim.key.to_string())));
        }
        self.engine.faults.reach(Point::AfterClaim, self.call);
        Ok(())
    }

    /// Reads the record in a statement of its own, which sees what was committed after the first look-up.
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

    /// Runs the handler's closure. A panic in it is treated like an error: it rolls back, and the server goes on.
    fn effect(&mut self, work: impl Work) -> Result<Answer, Stop> {
        let cause = self.call.cause(self.account);
        let answer = catch_unwind(AssertUnwindSafe(|| work(self.connection, &cause)))
            .unwrap_or_else(|panic| Err(Error::Internal(db::panicked(&*panic))))?;
        self.engine.faults.reach(Point::AfterEffect, self.call);
        Ok(answer)
    }

    fn remember(&mut self, answer: &Answer) -> Result<(), Stop> {
        let Some(claim) = &self.call.claim else {
            // PostgreSQL answers the COMMIT of a failed transaction with a silent ROLLBACK. The insert of a record would
            // fail before that. No record is inserted here, so another statement must find the failure.
            return Ok(db::check_transaction(self.connection)?);
        };
        if !record::insert(&self.engine.secrets, self.connection, self.account, self.call, claim, answer)? {
            return Err(Stop::Answered);
        }
        self.engine.faults.reach(Point::AfterRecord, self.call);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.engine.faults.reach(Point::BeforeCommit, self.call);
        db::commit(self.connection, self.call.claim.is_some())?;
        self.engine.faults.reach(Point::AfterCommit, self.call);
        Ok(())
    }

    /// Answers with the record, if this is the same request.
    fn replay(&self, record: &Record) -> Result<Committed, Error> {
        let claim = self.call.claim.as_ref().expect("only a request with a claim finds a record");
        if !record.may_answer(&claim.fingerprint) {
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
        Ok((Outcome::Replayed, record.answer(&self.engine.secrets, self.account, claim)?))
    }

    /// Answers with the record of the request that committed first.
    fn replay_winner(&mut self) -> Result<Committed, Error> {
        let claim = self.call.claim.as_ref().expect("only a request with a claim loses the race");
        let record = record::find(self.connection, self.account, claim)?;
        self.replay(&record.ok_or_else(|| Error::KeyInUse(claim.key.to_string()))?)
    }
}

impl Done {
    pub fn new(result: Result<Committed, Error>) -> Self {
        match result {
            Ok((outcome, answer)) => Self { outcome: Some(outcome), answer: Ok(answer) },
            Err(error) => Self { outcome: Outcome::of(&error), answer: Err(error) },
        }
    }
}

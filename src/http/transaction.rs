//! The extractors of a handler's transaction: [`Tx`] to write, [`Db`] to read.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use super::State;
use super::look_up::{Caller, look_up};
use super::trace::Trace;
use crate::db::{BEGIN_READ_ONLY, TimedOut, begin, rollback};
use crate::error::Error;
use crate::idempotency::{self, Answer, Call, Done, Outcome, Work};

/// The one transaction of a request that writes.
///
/// A handler can extract it once, and [`Tx::run`] consumes it, so a request cannot write in two transactions.
pub struct Tx(Ticket);

/// The one read-only transaction of a request that reads.
pub struct Db(Ticket);

/// A request that has passed the [`guard`](super::guard::guard).
pub struct Admitted {
    pub caller: Caller,
    pub call: Call,
    /// Whether the route has a policy, and may write.
    pub writes: bool,
}

struct Ticket {
    admitted: Admitted,
    state: State,
    trace: Trace,
}

impl Tx {
    /// The state of the server, for a handler that needs its secrets.
    pub fn state(&self) -> State {
        self.0.state.clone()
    }

    /// Runs `work` as the effect of this request, once for its key, and remembers its answer if it commits.
    ///
    /// `Ok` commits, whatever status the answer has. `Err` rolls back and leaves nothing behind.
    ///
    /// # Errors
    /// The errors of `work` and of [`idempotency::execute`], and [`Error::OutcomeUnknown`] if the job did not end in time.
    pub async fn run(self, work: impl Work + Send + 'static) -> Result<Answer, Error> {
        let Ticket { admitted: Admitted { caller, call, .. }, state, trace } = self.0;
        let keyed = call.claim.is_some();
        if let Some(claim) = &call.claim {
            trace.key(&claim.key);
        }
        let job_state = state.clone();
        let job = state
            .engine
            .database
            .run(move |connection| {
                let engine = &job_state.engine;
                let (account, done) = match look_up(engine, connection, &caller, &call) {
                    Ok(found) => {
                        (Some(found.account), idempotency::execute(engine, connection, &call, found, work))
                    }
                    Err(error) => (None, Done::new(Err(error))),
                };
                // The database thread counts the outcome, so a request whose client has hung up is counted too.
                if let Some(outcome) = done.outcome {
                    job_state.metrics.outcome(outcome);
                }
                Ok((account, done))
            })
            .await
            .map_err(|TimedOut| Error::OutcomeUnknown {
                keyed,
                detail: "the job did not end in time".to_owned(),
            })?;
        let (account, done) = job.inspect_err(|_| {
            // No connection was free, and the job never began.
            state.metrics.outcome(Outcome::RolledBack);
            trace.outcome(Outcome::RolledBack);
        })?;
        trace.account(account);
        if let Some(outcome) = done.outcome {
            trace.outcome(outcome);
        }
        if matches!(done.outcome, Some(Outcome::Executed | Outcome::Expired | Outcome::Replayed)) {
            trace.committed();
            if let Ok(answer) = &done.answer {
                trace.answered(answer);
            }
            // There may be events to send.
            state.committed.notify_one();
        }
        done.answer
    }
}

impl Db {
    /// Runs `work` in a read-only transaction, so a handler that reads cannot write by mistake.
    ///
    /// # Errors
    /// The errors of `work`, an unknown API key, or [`Error::Unavailable`].
    pub async fn read(self, work: impl Work + Send + 'static) -> Result<Answer, Error> {
        let Ticket { admitted: Admitted { caller, call, .. }, state, trace } = self.0;
        let database = state.engine.database.clone();
        let (account, answer) = state
            .engine
            .database
            .run(move |connection| {
                let account = database
                    .with_reconnect(connection, |connection| caller.account(connection))?
                    .ok_or_else(|| caller.unknown())?;
                let cause = call.cause(account);
                database.with_reconnect(connection, |connection| begin(connection, BEGIN_READ_ONLY))?;
                let answer = work(connection, &cause);
                rollback(connection);
                Ok((account, answer))
            })
            .await??;
        trace.account(Some(account));
        answer
    }
}

impl Ticket {
    /// Takes the admitted request out of the extensions, so that a handler cannot take it twice.
    fn take(request: &HttpRequest) -> Result<Self, Error> {
        let missing = |what: &str| {
            Error::Internal(format!(
                "{} asked for its transaction, but {what}: is the route in the table of routes of src/app/mod.rs, and \
                 does its handler ask only once?",
                request.path()
            ))
        };
        let admitted = request
            .extensions_mut()
            .remove::<Admitted>()
            .ok_or_else(|| missing("the guard has left none"))?;
        let trace =
            request.extensions().get::<Trace>().cloned().ok_or_else(|| missing("no trace was begun"))?;
        let state = request.app_data::<State>().cloned().ok_or_else(|| missing("the app has no state"))?;
        Ok(Self { admitted, state, trace })
    }
}

impl FromRequest for Tx {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ticket::take(request).and_then(|ticket| {
            if ticket.admitted.writes {
                Ok(Self(ticket))
            } else {
                Err(Error::Internal("a route without a policy asked to write".to_owned()))
            }
        }))
    }
}

impl FromRequest for Db {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ticket::take(request).map(Self))
    }
}

//! The middleware around every answer, which gives each request an id and a line in the log.
//!
//! A line has the route's pattern and never its path, query, headers or body, so no API key, secret or card number can stand
//! in it. Of an idempotency key it has the beginning, and of an answer the id of its object: a duplicate and its original
//! can be found by them.

use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use chrono::{DateTime, Utc};
use futures_util::FutureExt;

use super::State;
use super::metrics::known_method;
use crate::db::panicked;
use crate::error::Error;
use crate::idempotency::{Answer, Key, Outcome, key};
use crate::types::Id;
use crate::types::ids::{AccountId, RequestId};

/// The facts about a request for its line, which are collected on its way.
#[derive(Clone)]
pub struct Trace(Rc<Facts>);

struct Facts {
    request_id: RequestId,
    now: DateTime<Utc>,
    account: Cell<Option<AccountId>>,
    outcome: Cell<Option<Outcome>>,
    committed: Cell<bool>,
    /// The idempotency key, shortened.
    key: RefCell<Option<String>>,
    /// The request whose answer this one replayed.
    original: Cell<Option<RequestId>>,
    /// The id of the object that the answer shows.
    object: RefCell<Option<String>>,
}

impl Trace {
    pub fn new(now: DateTime<Utc>) -> Self {
        let request_id = Id::new(now, &uuid::ContextV7::new());
        Self(Rc::new(Facts {
            request_id,
            now,
            account: Cell::new(None),
            outcome: Cell::new(None),
            committed: Cell::new(false),
            key: RefCell::new(None),
            original: Cell::new(None),
            object: RefCell::new(None),
        }))
    }

    pub fn request_id(&self) -> RequestId {
        self.0.request_id
    }

    /// The time at which the request arrived.
    pub fn now(&self) -> DateTime<Utc> {
        self.0.now
    }

    pub fn account(&self, account: Option<AccountId>) {
        self.0.account.set(account);
    }

    pub fn outcome(&self, outcome: Outcome) {
        self.0.outcome.set(Some(outcome));
    }

    /// Notes that the answer was committed, by this request or by the first one with its key.
    pub fn committed(&self) {
        self.0.committed.set(true);
    }

    /// Notes the idempotency key of the request.
    pub fn key(&self, key: &Key) {
        self.0.key.replace(Some(key.shortened()));
    }

    /// Notes what a committed answer shows, so that a duplicate can be found from the log.
    pub fn answered(&self, answer: &Answer) {
        self.0.original.set(answer.original);
        self.0.object.replace(answer.object_id());
    }

    pub fn has_committed(&self) -> bool {
        self.0.committed.get()
    }
}

/// The line of a request, which is written when this is dropped, even if the client has hung up.
struct Line {
    state: State,
    trace: Trace,
    method: String,
    route: String,
    begun: Instant,
    status: u16,
    /// The code of the error, or its type if it has none.
    error: Option<&'static str>,
}

impl Drop for Line {
    fn drop(&mut self) {
        let facts = &self.trace.0;
        let latency = self.begun.elapsed();
        let account = facts.account.get().map(|account| account.to_string());
        let outcome = facts.outcome.get();
        let original = facts.original.get().map(|original| original.to_string());
        let (key, object) = (facts.key.borrow(), facts.object.borrow());
        self.state.metrics.request(&self.method, &self.route, self.status, latency);
        log::info!(
            target: "oncepay::request",
            request_id = facts.request_id.to_string(),
            account = account.as_deref().unwrap_or("-"),
            method = self.method,
            route = self.route,
            status = self.status,
            latency_ms = (latency.as_secs_f64() * 1e6).round() / 1e3,
            idempotency = outcome.map_or("-", Outcome::as_str),
            key = key.as_deref().unwrap_or("-"),
            original = original.as_deref().unwrap_or("-"),
            object = object.as_deref().unwrap_or("-"),
            error = self.error.unwrap_or("-");
            "request"
        );
    }
}

/// nginx's status for a request whose client hung up before the answer.
const CLIENT_GONE: u16 = 499;

/// Begins the trace, catches panics, adds the headers of every answer, and writes the line.
///
/// # Errors
/// A panic, or an error of actix itself, with its response.
pub async fn trace(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    let state = request.app_data::<State>().cloned().expect("src/app/mod.rs sets the state");
    let trace = Trace::new(state.clock.now());
    request.extensions_mut().insert(trace.clone());
    let mut line = Line {
        state,
        trace: trace.clone(),
        method: known_method(request.method()).to_owned(),
        route: request.match_pattern().unwrap_or_else(|| "unknown".to_owned()),
        begun: Instant::now(),
        status: CLIENT_GONE,
        error: None,
    };
    let echoed = [key::HEADER, "Stripe-Version"].map(|name| (name, request.headers().get(name).cloned()));
    let decorate = |headers: &mut HeaderMap| {
        let request_id =
            HeaderValue::from_str(&trace.request_id().to_string()).expect("hex is a header value");
        headers.insert(HeaderName::from_static("request-id"), request_id);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in echoed {
            if let Some(value) = value {
                headers.insert(name.parse().expect("a header name"), value);
            }
        }
    };
    let error = match AssertUnwindSafe(next.call(request)).catch_unwind().await {
        Ok(Ok(mut answer)) => {
            let error = answer.response().error().and_then(|error| error.as_error::<Error>());
            log_internals(&trace, error);
            line.error = error.map(Error::name);
            decorate(answer.headers_mut());
            line.status = answer.status().as_u16();
            return Ok(answer);
        }
        Ok(Err(error)) => error,
        Err(panic) => Error::Internal(panicked(&*panic)).into(),
    };
    log_internals(&trace, error.as_error::<Error>());
    line.error = error.as_error::<Error>().map(Error::name);
    let mut answer = error.error_response();
    decorate(answer.headers_mut());
    line.status = answer.status().as_u16();
    Err(InternalError::from_response(error, answer).into())
}

/// How long nothing more is logged of what is full.
const FULL_PAUSE: Duration = Duration::from_secs(60);

/// When it was last logged that something is full.
static FULL_LOGGED: Mutex<Option<Instant>> = Mutex::new(None);

/// Whether it is time to log again that something is full. One line for each request would fill a disk that is full.
fn is_time_for_full() -> bool {
    let mut last = FULL_LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_time = last.is_none_or(|last| last.elapsed() >= FULL_PAUSE);
    if is_time {
        *last = Some(Instant::now());
    }
    is_time
}

fn log_internals(trace: &Trace, error: Option<&Error>) {
    if let Some(Error::NoRoom(what)) = error {
        if is_time_for_full() {
            log::error!("the database has no room, and requests are answered 503: {what}");
        }
    } else if let Some(internals) = error.and_then(Error::internals) {
        log::error!(request_id = trace.request_id().to_string(); "{internals}");
    }
}

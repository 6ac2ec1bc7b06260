//! The middleware around every answer, which gives each request an id and a line in the log.
//!
//! The line has the pattern of the route, and never the path, query, headers or body. So it cannot show a key, a secret or a
//! card number.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Instant;

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
use crate::idempotency::{Outcome, key};
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

fn log_internals(trace: &Trace, error: Option<&Error>) {
    if let Some(internals) = error.and_then(Error::internals) {
        log::error!(request_id = trace.request_id().to_string(); "{internals}");
    }
}

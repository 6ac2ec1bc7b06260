//! One line a request, and the middleware around every answer that writes it.
//!
//! A line has the route's pattern and never its path, query, headers or body: so no key, secret or card number can
//! stand in it.

use std::cell::Cell;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Instant;

use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::FutureExt;
use log::kv::{self, Key, Value, VisitSource};
use log::{Level, Log, Metadata, Record};

use crate::app::State;
use crate::auth::Account;
use crate::db::panicked;
use crate::error::Error;
use crate::idempotency::{Outcome, key};
use crate::types::Id;
use crate::types::cause::Request;

/// What is found out about a request on its way, for its line.
#[derive(Clone)]
pub struct Trace(Rc<Facts>);

struct Facts {
    request_id: Id<Request>,
    now: DateTime<Utc>,
    account: Cell<Option<Id<Account>>>,
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

    pub fn request_id(&self) -> Id<Request> {
        self.0.request_id
    }

    /// When the request came.
    pub fn now(&self) -> DateTime<Utc> {
        self.0.now
    }

    pub fn account(&self, account: Option<Id<Account>>) {
        self.0.account.set(account);
    }

    pub fn outcome(&self, outcome: Outcome) {
        self.0.outcome.set(Some(outcome));
    }

    /// Notes that the answer is of a committed transaction, this one or the first one with its key.
    pub fn committed(&self) {
        self.0.committed.set(true);
    }

    pub fn has_committed(&self) -> bool {
        self.0.committed.get()
    }
}

/// Writes the line when it is dropped, so that a request whose client has gone has one too.
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

/// The middleware around all that answers: begins the trace, catches panics, adds the headers that every answer has, and writes
/// the line.
///
/// # Errors
/// A panic or an error of actix itself, as its answer.
pub async fn trace(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    let state = request.app_data::<State>().cloned().expect("app.rs gives the app its state");
    let trace = Trace::new(state.clock.now());
    request.extensions_mut().insert(trace.clone());
    let mut line = Line {
        state,
        trace: trace.clone(),
        method: crate::metrics::known_method(request.method()).to_owned(),
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

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to standard error, panics too. `RUST_LOG` says what is logged; by default warnings, and info of
/// oncepay.
pub fn init(format: Format) {
    let filter = env_logger::Env::default().default_filter_or("warn,oncepay=info");
    let mut builder = env_logger::Builder::from_env(filter);
    if format == Format::Json {
        builder.format(|out, record| {
            let mut members = Members::default();
            members
                .0
                .insert("time".to_owned(), Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true).into());
            members.0.insert("level".to_owned(), record.level().as_str().into());
            members.0.insert("target".to_owned(), record.target().into());
            members.0.insert("message".to_owned(), record.args().to_string().into());
            let _ = record.key_values().visit(&mut members);
            writeln!(out, "{}", serde_json::Value::Object(members.0))
        });
    }
    let lines = Lines(builder.build());
    log::set_max_level(lines.0.filter());
    log::set_boxed_logger(Box::new(lines)).expect("logging is started once");
    std::panic::set_hook(Box::new(|panic| log::error!(target: "oncepay::panic", "{panic}")));
}

/// Crates that read requests. What they log for their own developers has whole headers in it, so nobody gets to see
/// it, whatever `RUST_LOG` says.
const READERS: [&str; 3] = ["actix_http", "actix_web", "actix_router"];

/// The logger of env_logger, but for what [`READERS`] say below info.
struct Lines(env_logger::Logger);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let told_by = metadata.target().split("::").next().unwrap_or_default();
        (metadata.level() <= Level::Info || !READERS.contains(&told_by)) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// The pairs of a log record as members of a JSON object.
#[derive(Default)]
struct Members(serde_json::Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for Members {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let value = match (value.to_i64(), value.to_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(number)) => number.into(),
            _ => value.to_string().into(),
        };
        self.0.insert(key.as_str().to_owned(), value);
        Ok(())
    }
}

//! The table of routes, and the middleware in order. Server and tests build the same app from here.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, PathConfig, ServiceConfig};
use actix_web::{App, HttpRequest, HttpServer};
use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::card_network::simulation;
use crate::db::Database;
use crate::error::Error;
use crate::faults::Faults;
use crate::idempotency::{Policy, guard};
use crate::logs::trace;
use crate::metrics::Metrics;
use crate::secrets::Secrets;
use crate::wire::unread::close_after_answer;
use crate::{
    balance, charges, customers, disputes, events, idempotency, metrics, notifications, payment_intents,
    payment_methods, refunds, tokens, webhooks,
};

/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a stopping server waits for what runs.
const SHUTDOWN_SECONDS: u64 = 25;

/// A row of the table of routes.
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// How it deals with duplicates. Only a `GET` has none.
    pub policy: Option<Policy>,
    handler: fn() -> actix_web::Route,
}

impl Route {
    pub fn get(path: &'static str, handler: fn() -> actix_web::Route) -> Self {
        Self { method: Method::GET, path, policy: None, handler }
    }

    pub fn post(path: &'static str, policy: Policy, handler: fn() -> actix_web::Route) -> Self {
        Self { method: Method::POST, path, policy: Some(policy), handler }
    }

    pub fn delete(path: &'static str, policy: Policy, handler: fn() -> actix_web::Route) -> Self {
        Self { method: Method::DELETE, path, policy: Some(policy), handler }
    }
}

/// All routes under `/v1`. Beside them [`metrics::mount`] mounts what machines ask for, and nothing else is there.
pub fn routes() -> Vec<Route> {
    [
        customers::handlers::routes(),
        payment_methods::handlers::routes(),
        tokens::handlers::routes(),
        payment_intents::handlers::routes(),
        charges::handlers::routes(),
        refunds::handlers::routes(),
        balance::handlers::routes(),
        events::handlers::routes(),
        webhooks::handlers::routes(),
        notifications::handlers::routes(),
        disputes::handlers::routes(),
        idempotency::handlers::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Why a table of routes is refused when the server starts.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("{0} {1} changes something, but has no policy for duplicates")]
    NoPolicy(Method, &'static str),
    #[error(
        "{0} {1} has the wrong policy: a POST is Keyed, a DELETE is Unkeyed, and there is no other method that writes"
    )]
    WrongPolicy(Method, &'static str),
    #[error("{0} {1} stands in the table twice")]
    Twice(Method, &'static str),
}

/// Checks a table of routes: no `POST` outside the contract, and no route twice.
///
/// # Errors
/// The first route that breaks a rule.
pub fn check(routes: &[Route]) -> Result<(), RouteError> {
    for (number, route) in routes.iter().enumerate() {
        let (method, path) = (route.method.clone(), route.path);
        match route.policy {
            None if method == Method::GET => {}
            None => return Err(RouteError::NoPolicy(method, path)),
            // A notification's signature stands for its key.
            Some(Policy::Keyed { .. } | Policy::Signed { .. }) if method == Method::POST => {}
            Some(Policy::Unkeyed) if method == Method::DELETE => {}
            Some(_) => return Err(RouteError::WrongPolicy(method, path)),
        }
        if routes[..number].iter().any(|other| other.method == method && other.path == path) {
            return Err(RouteError::Twice(method, path));
        }
    }
    Ok(())
}

/// What all requests share. Nothing correct depends on it being one: several instances may serve one database.
pub type State = Arc<Shared>;

pub struct Shared {
    pub database: Database,
    pub secrets: Secrets,
    /// How long a key is remembered, unless its route says otherwise.
    pub key_lifetime: Duration,
    pub key_is_required: bool,
    pub webhooks: webhooks::Settings,
    pub network: simulation::Settings,
    /// Wakes the worker when there may be something to send.
    pub wake: Notify,
    pub clock: Clock,
    pub metrics: Metrics,
    pub faults: Faults,
}

/// The time of day, which a test may move.
#[derive(Debug, Default)]
pub struct Clock {
    ahead_milliseconds: AtomicI64,
}

impl Clock {
    pub fn now(&self) -> DateTime<Utc> {
        Utc::now() + chrono::Duration::milliseconds(self.ahead_milliseconds.load(Ordering::Relaxed))
    }

    /// Moves this clock, and no other, forward.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_milliseconds.fetch_add(by, Ordering::Relaxed);
    }
}

/// Starts serving on `listener`. The server runs until it is told to stop; see [`actix_web::dev::ServerHandle`].
///
/// # Errors
/// The listener is no good, or the table of routes breaks a rule.
pub fn serve(
    state: State,
    routes: fn() -> Vec<Route>,
    listener: TcpListener,
    workers: usize,
) -> std::io::Result<Server> {
    check(&routes()).map_err(std::io::Error::other)?;
    let server = HttpServer::new(move || {
        let state = state.clone();
        App::new()
            // Innermost first: whatever a route answers passes the trace, which writes its line.
            .configure(move |config| mount(config, &state, routes()))
            .wrap(from_fn(trace))
            .wrap(from_fn(close_after_answer))
    })
    .workers(workers)
    .keep_alive(KEEP_ALIVE)
    // The head of a request must come within 5 s; of its body, the guard has its own limit.
    .client_request_timeout(Duration::from_secs(5))
    // What a client still sends after it was answered is not waited for.
    .client_disconnect_timeout(Duration::from_secs(1))
    .shutdown_timeout(SHUTDOWN_SECONDS)
    // actix would drop what runs at SIGINT; cli.rs tells this server when to stop.
    .disable_signals()
    .listen(listener)?
    .run();
    Ok(server)
}

/// Mounts the table. Around each handler stands the guard of the contract, with the route's policy; what the table
/// does not have is answered here, before any credentials are asked for.
pub fn mount(config: &mut ServiceConfig, state: &State, routes: Vec<Route>) {
    config.app_data(state.clone());
    config.app_data(PathConfig::default().error_handler(|_, request| unknown(request).into()));
    let mut by_path: BTreeMap<&'static str, Vec<Route>> = BTreeMap::new();
    for route in routes {
        by_path.entry(route.path).or_default().push(route);
    }
    for (path, routes) in by_path {
        let allow = routes.iter().map(|route| route.method.to_string()).collect::<Vec<_>>().join(", ");
        let mut resource = web::resource(path);
        for route in routes {
            let policy = route.policy;
            let guarded = (route.handler)().wrap(from_fn(move |request, next| guard(policy, request, next)));
            resource = resource.route(guarded.method(route.method));
        }
        config.service(resource.default_service(not_allowed(allow)));
    }
    metrics::mount(config);
    config.default_service(web::to(async |request: HttpRequest| -> Result<&'static str, Error> {
        Err(unknown(&request))
    }));
}

/// The answer to a method that a path does not have.
pub fn not_allowed(allow: String) -> actix_web::Route {
    web::to(move |request: HttpRequest| {
        let (method, path) = shown(&request);
        let error = Error::MethodNotAllowed { method, path, allow: allow.clone() };
        async { Err::<&'static str, Error>(error) }
    })
}

fn unknown(request: &HttpRequest) -> Error {
    let (method, path) = shown(request);
    Error::RouteUnknown { method, path }
}

fn shown(request: &HttpRequest) -> (String, String) {
    (crate::error::quoted(request.method().as_str()), crate::error::quoted(request.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn nothing() -> &'static str {
        ""
    }

    fn route(method: Method, policy: Option<Policy>) -> Route {
        Route { method, path: "/v1/things", policy, handler: || web::to(nothing) }
    }

    #[test]
    fn the_table_is_in_order() {
        assert_eq!(check(&routes()), Ok(()));
        assert!(routes().iter().all(|route| route.path.starts_with("/v1/")));
    }

    #[test]
    fn a_route_that_writes_needs_a_policy() {
        for method in [Method::POST, Method::DELETE, Method::PUT, Method::PATCH] {
            assert!(matches!(check(&[route(method, None)]), Err(RouteError::NoPolicy(..))));
        }
        assert!(matches!(
            check(&[route(Method::POST, Some(Policy::Unkeyed))]),
            Err(RouteError::WrongPolicy(..))
        ));
        for method in [Method::GET, Method::DELETE, Method::PUT, Method::PATCH] {
            let refused = check(&[route(method, Some(Policy::KEYED))]);
            assert!(matches!(refused, Err(RouteError::WrongPolicy(..))));
        }
        assert_eq!(check(&[route(Method::DELETE, Some(Policy::Unkeyed))]), Ok(()));
        assert_eq!(check(&[route(Method::POST, Some(Policy::KEYED)), route(Method::GET, None)]), Ok(()));
        assert!(matches!(
            check(&[route(Method::GET, None), route(Method::GET, None)]),
            Err(RouteError::Twice(..))
        ));
    }
}

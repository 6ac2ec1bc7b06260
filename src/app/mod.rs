//! The table of routes and the middleware in order, for the server and for the tests.

mod account;
mod directory;
mod idempotency_keys;
mod probes;
pub mod running;
pub mod sweeper;
pub mod workers;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, PathConfig, ServiceConfig};
use actix_web::{App, HttpRequest, HttpServer};

use crate::card_network::simulation::NetworkSettings;
use crate::error::{Error, quoted};
use crate::http::guard::guard;
use crate::http::hosts::check_host;
use crate::http::route::check;
use crate::http::trace::trace;
use crate::http::unread::close_after_answer;
use crate::http::{Route, State};
use crate::notifications::Receiver;
use crate::payments::{
    self, balance, charges, customers, disputes, payment_intents, payment_methods, refunds, tokens,
};
use crate::webhooks::WebhookSettings;
use crate::wire::{SEARCHES, is_unsupported_path};
use crate::{events, notifications, webhooks};
pub use directory::DIRECTORY;

/// A server: the state that its requests share, and the settings of webhooks and of the card network.
#[derive(Clone)]
pub struct Service {
    pub state: State,
    pub webhooks: WebhookSettings,
    pub network: NetworkSettings,
}

/// How long an idle connection stays open.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a stopping server waits for its running requests.
const SHUTDOWN_SECONDS: u64 = 25;

/// All routes under `/v1`. The only other routes are those of `probes::mount`.
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
        account::routes(),
        idempotency_keys::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Starts a server on `listener`, which runs until [`actix_web::dev::ServerHandle::stop`].
///
/// # Errors
/// The listener cannot be used, or the table of routes breaks a rule.
pub fn serve(
    service: Service,
    routes: fn() -> Vec<Route>,
    listener: TcpListener,
    workers: usize,
) -> std::io::Result<Server> {
    check(&routes()).map_err(std::io::Error::other)?;
    let server = HttpServer::new(move || {
        let service = service.clone();
        App::new()
            // The innermost middleware comes first. The guard wraps each handler and runs after the route is chosen,
            // because it needs the policy of the route.
            .configure(move |config| mount(config, &service, routes()))
            // A request under a foreign name is refused before its route is chosen, whatever it asks for.
            .wrap(from_fn(check_host))
            // The trace stands around all routes and around what is answered where there is none: so each request has
            // its id and its line in the log, and whatever panics within is caught.
            .wrap(from_fn(trace))
            // This one is outermost: it must hold the body before any other code can drop it, and attach it to every
            // answer. If nobody holds a chunked body, actix reads it to its end.
            .wrap(from_fn(close_after_answer))
    })
    .workers(workers)
    .keep_alive(KEEP_ALIVE)
    // The head of a request must arrive within 5 s. The guard limits the time of the body.
    .client_request_timeout(Duration::from_secs(5))
    // A closing connection waits only briefly for a client that still sends.
    .client_disconnect_timeout(Duration::from_secs(1))
    .shutdown_timeout(SHUTDOWN_SECONDS)
    // At SIGINT, actix would drop the running requests. src/app/running.rs handles signals and stops this server.
    .disable_signals()
    .listen(listener)?
    .run();
    Ok(server)
}

/// Mounts the routes, each handler wrapped in the guard with the policy of its route.
///
/// Unknown paths and methods are answered here, before credentials are checked.
pub fn mount(config: &mut ServiceConfig, service: &Service, routes: Vec<Route>) {
    config.app_data(service.state.clone());
    config.app_data(Data::new(service.state.hosts.clone()));
    config.app_data(Data::new(service.webhooks));
    let secret = service.network.secret.clone();
    config.app_data(Data::new(Receiver { secret, apply: payments::apply_notification }));
    config.app_data(PathConfig::default().error_handler(|_, request| unknown_error(request).into()));
    let mut by_path: BTreeMap<&'static str, Vec<Route>> = BTreeMap::new();
    for route in routes {
        by_path.entry(route.path).or_default().push(route);
    }
    for path in SEARCHES {
        config.service(web::resource(*path).to(unknown));
    }
    for (path, routes) in by_path {
        let mut resource = web::resource(path);
        let mut allowed = Vec::new();
        for route in routes {
            for method in answered(&route.method) {
                let policy = route.policy;
                let guarded =
                    (route.handler)().wrap(from_fn(move |request, next| guard(policy, request, next)));
                allowed.push(method.to_string());
                resource = resource.route(guarded.method(method));
            }
        }
        config.service(resource.default_service(not_allowed(allowed.join(", "))));
    }
    probes::mount(config);
    config.default_service(web::to(unknown));
}

/// The methods that a route answers: a `HEAD` is answered like a `GET`, and the server leaves out the body.
fn answered(method: &Method) -> Vec<Method> {
    match *method {
        Method::GET => vec![Method::GET, Method::HEAD],
        _ => vec![method.clone()],
    }
}

/// The answer to a request with a method that its path does not have.
pub fn not_allowed(allow: String) -> actix_web::Route {
    web::to(move |request: HttpRequest| {
        let (method, path) = shown(&request);
        let error = Error::MethodNotAllowed { method, path, allow: allow.clone() };
        async { Err::<&'static str, Error>(error) }
    })
}

/// The answer to a request with an unknown path.
async fn unknown(request: HttpRequest) -> Result<&'static str, Error> {
    Err(unknown_error(&request))
}

fn unknown_error(request: &HttpRequest) -> Error {
    let (method, path) = shown(request);
    if is_unsupported_path(request.path()) {
        return Error::RouteUnsupported { path };
    }
    Error::RouteUnknown { method, path }
}

fn shown(request: &HttpRequest) -> (String, String) {
    // A card number is found only in a decoded path, because the characters between its digits may be escaped.
    let path = percent_encoding::percent_decode_str(request.path()).decode_utf8_lossy();
    (quoted(request.method().as_str()), quoted(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert_eq!(check(&routes()), Ok(()));
        // Of the accounts that Stripe has, only the caller's own one is here.
        let is_own = |path: &str| path == "/v1/accounts/{account}";
        for path in routes().iter().map(|route| route.path) {
            assert!(path.starts_with("/v1/"), "{path}");
            assert!(is_own(path) || !is_unsupported_path(path), "{path}");
        }
    }
}

//! The table of routes, and the middleware in order. Server and tests build the same app from here.

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

use crate::card_network::simulation;
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
use crate::wire::{SEARCHES, is_unsupported_path};
use crate::{events, notifications, webhooks};
pub use directory::DIRECTORY;

/// A server: what its requests share, and the settings of the rooms that have some.
#[derive(Clone)]
pub struct Service {
    pub state: State,
    pub webhooks: webhooks::Settings,
    pub network: simulation::Settings,
}

/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// How long a stopping server waits for what runs.
const SHUTDOWN_SECONDS: u64 = 25;

/// All routes under `/v1`. Beside them [`probes::mount`] mounts what machines ask for, and nothing else is there.
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

/// Starts serving on `listener`. The server runs until it is told to stop; see [`actix_web::dev::ServerHandle`].
///
/// # Errors
/// The listener is no good, or the table of routes breaks a rule.
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
            // Innermost first. The guard stands around each handler and behind the choice of the route, since it goes
            // by the policy that the route has.
            .configure(move |config| mount(config, &service, routes()))
            // A request under a foreign name is refused before its route is chosen, whatever it asks for.
            .wrap(from_fn(check_host))
            // The trace stands around all routes and around what is answered where there is none: so each request has
            // its id and its line in the log, and whatever panics within is caught.
            .wrap(from_fn(trace))
            // Outermost, since it must take the body before anybody within can let go of it, and give it to every
            // answer that comes out, whoever made it. Of a body in chunks that nobody holds, actix reads on to the end.
            .wrap(from_fn(close_after_answer))
    })
    .workers(workers)
    .keep_alive(KEEP_ALIVE)
    // The head of a request must come within 5 s; of its body, the guard has its own limit.
    .client_request_timeout(Duration::from_secs(5))
    // What a client still sends after it was answered is not waited for.
    .client_disconnect_timeout(Duration::from_secs(1))
    .shutdown_timeout(SHUTDOWN_SECONDS)
    // actix would drop what runs at SIGINT; running.rs tells this server when to stop.
    .disable_signals()
    .listen(listener)?
    .run();
    Ok(server)
}

/// Mounts the table. Around each handler stands the guard of the contract, with the route's policy; what the table
/// does not have is answered here, before any credentials are asked for.
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

/// The methods that a route answers: a `HEAD` is answered like its `GET`, and the server leaves out the body.
fn answered(method: &Method) -> Vec<Method> {
    match *method {
        Method::GET => vec![Method::GET, Method::HEAD],
        _ => vec![method.clone()],
    }
}

/// The answer to a method that a path does not have.
pub fn not_allowed(allow: String) -> actix_web::Route {
    web::to(move |request: HttpRequest| {
        let (method, path) = shown(&request);
        let error = Error::MethodNotAllowed { method, path, allow: allow.clone() };
        async { Err::<&'static str, Error>(error) }
    })
}

/// The answer to a path that the table does not have.
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
    // What stands between the digits of a card number may be escaped.
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

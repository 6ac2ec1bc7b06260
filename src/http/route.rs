//! Routes as data, and the rules for a table of routes.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::Method;
use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::error::Error;
use crate::idempotency::Key;
use crate::types::ids::AccountId;

/// A row of the table of routes.
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The policy for duplicates; only a `GET` has none.
    pub policy: Option<Policy>,
    pub handler: fn() -> actix_web::Route,
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

/// How a route that writes treats duplicates.
#[derive(Debug, Clone, Copy)]
pub enum Policy {
    /// The request needs an `Idempotency-Key`, and its answer is remembered.
    Keyed {
        /// How long a key is remembered; `None` stands for the server's setting.
        lifetime: Option<Duration>,
        /// Whether the answer holds a secret that is shown once, so that the record is encrypted.
        secret: bool,
    },
    /// The request is a signed notification: its id is the key, and its signature replaces the API key.
    Signed {
        /// How long the sender may repeat a notification.
        lifetime: Duration,
        admit: Admit,
    },
    /// HTTP makes the method idempotent (`DELETE`): the request runs in a transaction, and its answer is not remembered.
    Unkeyed,
}

impl Policy {
    /// The policy of nearly every `POST`.
    pub const KEYED: Policy = Policy::Keyed { lifetime: None, secret: false };
}

/// Checks the signature of a notification over its raw body at a time, and returns the account, the key and the body.
///
/// # Errors
/// The signature is wrong, or the body has no account or no id.
pub type Admit = fn(&HttpRequest, &[u8], DateTime<Utc>) -> Result<(AccountId, Key, Value), Error>;

/// Why a table of routes is refused when the server starts.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("{0} {1} changes something, but has no policy for duplicates")]
    NoPolicy(Method, &'static str),
    #[error(
        "{0} {1} has the wrong policy: a POST is Keyed, a DELETE is Unkeyed, and there is no other method that writes"
    )]
    WrongPolicy(Method, &'static str),
    #[error("{0} {1} is in the table twice")]
    Twice(Method, &'static str),
}

/// Checks that every route that writes has the right policy, and that no route is in the table twice.
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

#[cfg(test)]
mod tests {
    use actix_web::web;

    use super::*;

    async fn nothing() -> &'static str {
        ""
    }

    fn route(method: Method, policy: Option<Policy>) -> Route {
        Route { method, path: "/v1/things", policy, handler: || web::to(nothing) }
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

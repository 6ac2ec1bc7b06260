//! A route as data, and what must be true of every table of them.

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
    /// How it deals with duplicates. Only a `GET` has none.
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

/// How a route that is not a `GET` deals with duplicates. The table of routes gives every such route one.
#[derive(Debug, Clone, Copy)]
pub enum Policy {
    /// Needs an `Idempotency-Key`; the answer is remembered.
    Keyed {
        /// How long a key is remembered; `None` is the server's setting.
        lifetime: Option<Duration>,
        /// The answer holds a secret that is shown once, so it is encrypted where it is stored.
        secret: bool,
    },
    /// A signed notification: its id is the key, and its signature stands for the API key.
    Signed {
        /// How long the sender may go on sending the same notification.
        lifetime: Duration,
        /// Judges the signature, and reads whom the notification is about and its id.
        admit: Admit,
    },
    /// Idempotent by HTTP itself (`DELETE`): the same transaction, and nothing remembered.
    Unkeyed,
}

impl Policy {
    /// What nearly every `POST` has.
    pub const KEYED: Policy = Policy::Keyed { lifetime: None, secret: false };
}

/// Judges the signature of a notification by its request, its raw body and the time; then parses the body, and reads
/// whom it is about and its id.
///
/// # Errors
/// A signature that is not the sender's, or a body without account or id.
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

//! Which host names are answered.
//!
//! While the well-known demo key works, a web page could rebind its own name to 127.0.0.1 and use that key as if it were
//! this server's page (DNS rebinding). Its requests carry the page's name, so only local names are answered then.

use std::net::{Ipv4Addr, Ipv6Addr};

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HOST, HeaderName, ORIGIN};
use actix_web::middleware::Next;
use actix_web::web::Data;

use crate::error::{Error, quoted};

/// The host names that a server answers.
#[derive(Debug, Clone, Default)]
pub enum Hosts {
    #[default]
    Any,
    /// Loopback names and addresses, and these names besides, in lower case.
    LocalAnd(Vec<String>),
}

impl Hosts {
    /// Loopback names and addresses, and `names` besides.
    pub fn local_and(names: Vec<String>) -> Self {
        Hosts::LocalAnd(
            names.iter().map(|name| normal(name).to_owned()).map(|name| name.to_lowercase()).collect(),
        )
    }

    /// Whether a host is answered, as it stands in `Host` or in a URL: with or without a port.
    fn allow(&self, host: &str) -> bool {
        let Hosts::LocalAnd(names) = self else { return true };
        let Some(name) = without_port(host) else { return false };
        let name = normal(name).to_lowercase();
        is_local(&name) || names.contains(&name)
    }
}

/// The middleware that refuses requests under a foreign name.
///
/// # Errors
/// What `next` returns; what is refused is an answer.
pub async fn check_host(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    let hosts = request.app_data::<Data<Hosts>>().cloned().expect("src/app/mod.rs gives the app its hosts");
    match refused(&hosts, &request) {
        Some(name) => Ok(request.error_response(Error::HostRefused(quoted(&name)))),
        None => next.call(request).await,
    }
}

/// The first name of a request that is not answered.
fn refused(hosts: &Hosts, request: &ServiceRequest) -> Option<String> {
    if matches!(hosts, Hosts::Any) {
        return None;
    }
    let values = |name: HeaderName| {
        request.headers().get_all(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut named: Vec<String> = values(HOST).collect();
    // A request line may name a host of its own, and that one counts (RFC 9112, section 3.2.2).
    named.extend(request.head().uri.authority().map(ToString::to_string));
    if named.is_empty() {
        return Some("none".to_owned());
    }
    let origins = values(ORIGIN).map(|origin| match origin.split_once("://") {
        Some((_, host)) => host.to_owned(),
        None => origin,
    });
    named.extend(origins);
    named.into_iter().find(|name| !hosts.allow(name))
}

/// The host of `host:port`, of `host`, or of `[IPv6]:port`; `None` if it is none of these.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// A name without the full stop of the root.
fn normal(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn is_local(name: &str) -> bool {
    let v4 = |address: Ipv4Addr| address.is_loopback();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(v4)
        || name
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.is_loopback() || address.to_ipv4_mapped().is_some_and(v4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_names_are_answered_and_others_are_not() {
        let hosts = Hosts::local_and(vec!["Payments.Test".to_owned()]);
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST:1",
            "localhost.",
            "app.localhost:80",
            "127.0.0.1",
            "127.8.9.1:8080",
            "[::1]",
            "[::1]:8080",
            "[::ffff:127.0.0.1]:80",
            "payments.test",
            "PAYMENTS.test.:443",
        ] {
            assert!(hosts.allow(host), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "evil-localhost",
            "0.0.0.0",
            "10.0.0.1:80",
            "127.0.0.1:x",
            "127.0.0.1:",
            "localhost:80:80",
            "[::1",
            "::1",
            "user@localhost",
            "localhost/",
            "null",
            "[::2]",
            "127.1",
            "2130706433",
        ] {
            assert!(!hosts.allow(host), "{host}");
        }
        assert!(Hosts::Any.allow("evil.test"));
    }
}

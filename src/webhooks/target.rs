//! Where a webhook may go. An endpoint is named by whoever has an API key, and must not make this server talk to what
//! only this server can reach: itself, its network, or the metadata service of its cloud.
//!
//! An address is checked when it is connected to, not when it is named: a name can be given another address in between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Why an address was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("is not a valid URL")]
    Invalid,
    #[error("must begin with https:// or http://")]
    Scheme,
    #[error("must not hold a user name or password")]
    Credentials,
    #[error("leads to a private address ({0}); the setting webhook-allow-private allows that")]
    Private(IpAddr),
}

/// Reads the URL of an endpoint. The host is read as it will be when it is called, so odd notations of an address,
/// such as `http://0x7f.1/`, are that address.
///
/// # Errors
/// See [`TargetError`]; names are not looked up here.
pub fn parse(text: &str, allow_private: bool) -> Result<Url, TargetError> {
    let url = Url::parse(text).map_err(|_| TargetError::Invalid)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(TargetError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(TargetError::Credentials);
    }
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err(TargetError::Invalid),
    };
    match address {
        Some(address) if !allow_private && !is_public(address) => Err(TargetError::Private(address)),
        _ => Ok(url),
    }
}

/// Whether an address is one of the public internet (the special ones are listed by IANA, RFC 6890 and later).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_unspecified()
        || a == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || (a == 100 && (64..128).contains(&b)) // shared, behind a carrier's translation
        || (a == 192 && b == 0 && c == 0) // protocol assignments
        || (a == 192 && b == 88 && c == 99) // 6to4 relays
        || (a == 198 && (18..20).contains(&b)) // benchmarks
        || a >= 240; // reserved
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Only 2000::/3 is given out; in it, some ranges are not for the public.
    let given_out = segments[0] & 0xe000 == 0x2000;
    let special = match (segments[0], segments[1]) {
        (0x2001, 0..0x0200) => true, // protocol assignments, Teredo among them
        (0x2001, 0x0db8) | (0x3fff, 0..0x1000) => true, // documentation
        _ => false,
    };
    given_out && !special
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, translated (RFC 6052), or 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] if address != Ipv6Addr::LOCALHOST => Some(from(high, low)),
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

/// Looks names up, and leaves out addresses that may not be connected to.
#[derive(Debug, Clone, Copy)]
pub struct Resolver {
    pub allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (allowed, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.into_iter().partition(|address| allow_private || is_public(address.ip()));
            match refused.first() {
                Some(address) if allowed.is_empty() => Err(TargetError::Private(address.ip()).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_in_every_notation() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://0/",
            "http://10.0.0.1/",
            "http://172.16.0.1/",
            "http://192.168.1.1:8080/",
            "http://169.254.169.254/x",
            "http://100.64.0.1/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
            "http://[fd12::1]/",
            "http://[ff02::1]/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://①②⑦.0.0.1/",
            "http://127.0.0.1./",
            "http://198.18.0.1/",
            "http://[2001:db8::1]/",
            "http://[2001::1]/",
        ] {
            assert!(
                matches!(parse(url, false), Err(TargetError::Private(_))),
                "{url}: {:?}",
                parse(url, false)
            );
            assert!(parse(url, true).is_ok(), "{url}");
        }
    }

    #[test]
    fn public_addresses_and_names_are_let_through() {
        for url in
            ["https://example.com/hook", "http://8.8.8.8/", "https://[2606:4700::1111]/", "http://localhost/"]
        {
            assert!(parse(url, false).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_web_server_is_refused() {
        for (url, expected) in [
            ("", TargetError::Invalid),
            ("example.com", TargetError::Invalid),
            ("http://", TargetError::Invalid),
            ("ftp://example.com/", TargetError::Scheme),
            ("file:///etc/passwd", TargetError::Scheme),
            ("http://user:pass@example.com/", TargetError::Credentials),
        ] {
            assert_eq!(parse(url, true), Err(expected), "{url}");
        }
    }
}

//! The header `Stripe-Signature: t=…,v1=…`, which proves who sent a body and when (docs.stripe.com/webhooks/signature).
//!
//! The signature covers the time, a full stop and the raw body, so nobody can send an old delivery again as a new one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The header's name.
pub const HEADER: &str = "Stripe-Signature";

/// How old a signature may be.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// Why a signature was refused; the text completes a sentence that begins with the name of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("is missing")]
    Missing,
    #[error("is not of the form t=…,v1=…")]
    Malformed,
    #[error("has a time that differs from ours by more than {} seconds", TOLERANCE.as_secs())]
    OutOfTime,
    #[error("was made for another body or with another secret")]
    Wrong,
}

/// The value of the header for `body`, signed with each of `secrets`; there are two while one replaces the other.
pub fn sign(secrets: &[String], now: DateTime<Utc>, body: &[u8]) -> String {
    let time = now.timestamp();
    let signatures = secrets.iter().map(|secret| format!(",v1={}", hex::encode(mac(secret, time, body))));
    format!("t={time}{}", signatures.collect::<String>())
}

/// Checks the signature of a request.
pub fn verify(
    header: Option<&str>,
    secret: &str,
    now: DateTime<Utc>,
    body: &[u8],
) -> Result<(), SignatureError> {
    let header = header.ok_or(SignatureError::Missing)?;
    let (mut time, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", value)) => time = value.parse::<i64>().ok(),
            Some(("v1", value)) => {
                signatures.push(hex::decode(value).map_err(|_| SignatureError::Malformed)?)
            }
            _ => {}
        }
    }
    let time = time.ok_or(SignatureError::Malformed)?;
    if signatures.is_empty() {
        return Err(SignatureError::Malformed);
    }
    if now.timestamp().abs_diff(time) > TOLERANCE.as_secs() {
        return Err(SignatureError::OutOfTime);
    }
    let expected = mac(secret, time, body);
    // The comparison takes constant time, so that a forger cannot find the right bytes one by one.
    let matches = signatures.iter().any(|signature| bool::from(signature.as_slice().ct_eq(&expected)));
    if matches { Ok(()) } else { Err(SignatureError::Wrong) }
}

fn mac(secret: &str, time: i64, body: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{time}.").as_bytes());
    mac.update(body);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        Utc.timestamp_opt(seconds, 0).unwrap()
    }

    #[test]
    fn a_signature_is_the_documented_one() {
        // echo -n '12.{}' | openssl dgst -sha256 -hmac whsec_x
        let header = sign(&["whsec_x".to_owned()], at(12), b"{}");
        assert_eq!(header, format!("t=12,v1={}", hex::encode(mac("whsec_x", 12, b"{}"))));
        assert!(!header.contains(", "));
    }

    #[test]
    fn a_signature_holds_for_its_body_secret_and_time_only() {
        let header = sign(&["new".to_owned(), "old".to_owned()], at(1000), b"body");
        for secret in ["new", "old"] {
            assert_eq!(verify(Some(&header), secret, at(1300), b"body"), Ok(()));
            assert_eq!(verify(Some(&header), secret, at(700), b"body"), Ok(()));
        }
        let refused = |header: Option<&str>, secret, now, body: &[u8]| {
            verify(header, secret, at(now), body).unwrap_err()
        };
        assert_eq!(refused(Some(&header), "new", 1301, b"body"), SignatureError::OutOfTime);
        assert_eq!(refused(Some(&header), "new", 699, b"body"), SignatureError::OutOfTime);
        assert_eq!(refused(Some(&header), "new", 1000, b"Body"), SignatureError::Wrong);
        assert_eq!(refused(Some(&header), "other", 1000, b"body"), SignatureError::Wrong);
        assert_eq!(
            refused(Some(&header.replace("t=1000", "t=1001")), "new", 1001, b"body"),
            SignatureError::Wrong
        );
        assert_eq!(refused(None, "new", 1000, b"body"), SignatureError::Missing);
        for malformed in [
            "",
            "t=1000",
            "v1=00",
            "t=x,v1=00",
            "t=1000,v1=zz",
            "t=99999999999999999999,v1=00",
            "t=1000,v0=00",
        ] {
            assert_eq!(
                refused(Some(malformed), "new", 1000, b"body"),
                SignatureError::Malformed,
                "{malformed}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_signed_verifies(body in prop::collection::vec(any::<u8>(), 0..99), secret in ".{1,20}", time in 0_i64..4_000_000_000) {
            let header = sign(std::slice::from_ref(&secret), at(time), &body);
            prop_assert_eq!(verify(Some(&header), &secret, at(time), &body), Ok(()));
        }

        #[test]
        fn no_header_panics(header in ".{0,60}") {
            prop_assert!(verify(Some(&header), "secret", at(1000), b"").is_err());
        }
    }
}

//! Accounts and their API keys.
//!
//! Each request sends a key, as `Authorization: Bearer KEY` or as the user name of HTTP Basic. Only the hash of a key is
//! stored. Each request looks it up, so a revoked key stops working at once on every instance.

pub mod keys;
pub mod queries;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The API key of a request, as a hash.
#[derive(Debug, Clone)]
pub struct Credentials {
    hash: [u8; 32],
    hint: String,
}

impl Credentials {
    /// Reads the key in the header `Authorization`, without checking that an account has it.
    ///
    /// # Errors
    /// [`Error::CredentialsMissing`] if the header has no key, [`Error::CredentialsPublishable`] if the key is a
    /// publishable one.
    pub fn of(header: Option<&str>) -> Result<Self, Error> {
        let (scheme, rest) =
            header.and_then(|value| value.split_once(' ')).ok_or(Error::CredentialsMissing)?;
        let key = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => rest.trim().to_owned(),
            "basic" => basic_user(rest.trim()).ok_or(Error::CredentialsMissing)?,
            _ => return Err(Error::CredentialsMissing),
        };
        if key.is_empty() {
            return Err(Error::CredentialsMissing);
        }
        if key.starts_with("pk_") {
            return Err(Error::CredentialsPublishable(hint(&key)));
        }
        Ok(Self::of_key(&key))
    }

    pub fn of_key(key: &str) -> Self {
        Self { hash: Sha256::digest(key.as_bytes()).into(), hint: hint(key) }
    }

    pub fn hash(&self) -> &[u8] {
        &self.hash
    }

    /// The error of a key that no account has, or that was revoked.
    pub fn unknown(&self) -> Error {
        Error::CredentialsUnknown(self.hint.clone())
    }
}

/// The user name of HTTP Basic (RFC 7617).
fn basic_user(encoded: &str) -> Option<String> {
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    decoded.split_once(':').map(|(user, _)| user.to_owned())
}

/// The prefixes of keys that a hint may show, because they reveal only the kind of a key.
const KEY_PREFIXES: [&str; 6] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_", "pk_test_", "pk_live_"];

/// The prefix and the last four characters of a key, to tell keys apart: `sk_test_****demo`. A short key is hidden whole.
fn hint(key: &str) -> String {
    let characters: Vec<char> = key.chars().collect();
    if characters.len() < 20 || !key.is_ascii() {
        return "****".to_owned();
    }
    let end: String = characters[characters.len() - 4..].iter().collect();
    let start = KEY_PREFIXES.into_iter().find(|prefix| key.starts_with(prefix)).unwrap_or("");
    format!("{start}****{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_as_bearer_or_as_basic_user() {
        let key = Credentials::of_key("sk_test_oncepay_demo");
        for value in [
            "Bearer sk_test_oncepay_demo",
            "bearer  sk_test_oncepay_demo",
            "Basic c2tfdGVzdF9vbmNlcGF5X2RlbW86",
            "basic c2tfdGVzdF9vbmNlcGF5X2RlbW86aWdub3JlZA==",
        ] {
            assert_eq!(Credentials::of(Some(value)).unwrap().hash(), key.hash(), "{value}");
        }
    }

    #[test]
    fn anything_else_is_no_key() {
        for value in
            ["", "Bearer", "Bearer ", "Basic !!!", "Basic OnBhc3M=", "Digest abc", "sk_test_oncepay_demo"]
        {
            assert!(matches!(Credentials::of(Some(value)), Err(Error::CredentialsMissing)), "{value}");
        }
        assert!(matches!(Credentials::of(None), Err(Error::CredentialsMissing)));
    }

    #[test]
    fn a_publishable_key_is_refused_as_what_it_is() {
        for value in ["Bearer pk_test_51abcdefghijklmnop", "Basic cGtfbGl2ZV81MWFiY2RlZmdoaWprbG1ub3A6"] {
            let Err(Error::CredentialsPublishable(hint)) = Credentials::of(Some(value)) else {
                panic!("{value}")
            };
            assert!(hint.starts_with("pk_") && hint.ends_with("_****mnop"), "{hint}");
        }
    }

    #[test]
    fn a_hint_does_not_give_the_key_away() {
        assert_eq!(hint("sk_test_oncepay_demo"), "sk_test_****demo");
        assert_eq!(hint("hunter2"), "****");
        assert_eq!(hint("é".repeat(30).as_str()), "****");
    }
}

//! Accounts and their API keys.
//!
//! A key is presented with each request, as `Authorization: Bearer KEY` or as the user name of HTTP Basic. Only its
//! hash is stored, and it is looked up with each request, so a revoked key stops working at once, everywhere.

pub mod keys;
pub mod queries;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The API key that came with a request, as its hash.
#[derive(Debug, Clone)]
pub struct Credentials {
    hash: [u8; 32],
    hint: String,
}

impl Credentials {
    /// Reads the value of the header `Authorization`. Whether the key is right is for the database to say.
    ///
    /// # Errors
    /// [`Error::CredentialsMissing`] if there is no key in it, [`Error::CredentialsPublishable`] if it is one that
    /// browsers use.
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

    /// That no account has this key, or has it no longer.
    pub fn unknown(&self) -> Error {
        Error::CredentialsUnknown(self.hint.clone())
    }
}

/// The user name of HTTP Basic (RFC 7617).
fn basic_user(encoded: &str) -> Option<String> {
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    decoded.split_once(':').map(|(user, _)| user.to_owned())
}

/// What keys begin with that tells of nothing but their kind.
const KEY_PREFIXES: [&str; 6] = ["sk_test_", "sk_live_", "rk_test_", "rk_live_", "pk_test_", "pk_live_"];

/// The ends of a key, to tell keys apart: `sk_test_****demo`. Of a short key nothing is shown.
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

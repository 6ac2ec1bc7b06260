//! The server's secret, and the keys that are derived from it for fingerprints and sealed answers.
//!
//! While a secret is being replaced, the server has the new one and the older one. It hashes and seals with the first, and
//! still recognises and opens what the others made.

use std::sync::Arc;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;

/// The shortest secret that is accepted, in bytes.
pub const MIN_BYTES: usize = 16;

const NONCE_BYTES: usize = 24;

/// The length of the mark of a secret.
pub const MARK_BYTES: usize = 4;
/// The length of a hash with the mark before it.
pub const HASH_BYTES: usize = MARK_BYTES + 32;

/// The server's secrets, the current one first. Clones share them.
#[derive(Clone)]
pub struct Secrets(Arc<Vec<Derived>>);

/// The keys that are derived from one secret, one for each purpose.
struct Derived {
    /// Tells which secret a fingerprint was made with, and reveals nothing about the secret.
    mark: [u8; MARK_BYTES],
    fingerprint: SecretBox<[u8; 32]>,
    seal: SecretBox<[u8; 32]>,
}

/// Why the server does not accept its secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    #[error("the secret key is missing")]
    Missing,
    #[error("the secret key is shorter than {MIN_BYTES} bytes")]
    Short,
}

impl Secrets {
    /// Derives the keys of `secrets`, the current one first.
    ///
    /// # Errors
    /// There is no secret, or one is too short.
    pub fn new(secrets: Vec<String>) -> Result<Self, SecretsError> {
        if secrets.is_empty() {
            return Err(SecretsError::Missing);
        }
        if secrets.iter().any(|secret| secret.len() < MIN_BYTES) {
            return Err(SecretsError::Short);
        }
        let mark = |secret: &String| {
            hash(secret.as_bytes(), b"oncepay mark").first_chunk().copied().expect("4 of 32 bytes")
        };
        let derived = |secret: &String| Derived {
            mark: mark(secret),
            fingerprint: SecretBox::new(Box::new(hash(secret.as_bytes(), b"oncepay fingerprint"))),
            seal: SecretBox::new(Box::new(hash(secret.as_bytes(), b"oncepay seal"))),
        };
        Ok(Self(Arc::new(secrets.iter().map(derived).collect())))
    }

    /// The HMAC-SHA-256 of `bytes` under each secret, the current one first; each begins with the mark of its secret.
    pub fn hashes(&self, bytes: &[u8]) -> Vec<[u8; HASH_BYTES]> {
        let marked = |keys: &Derived| {
            let mut marked = [0; HASH_BYTES];
            marked[..MARK_BYTES].copy_from_slice(&keys.mark);
            marked[MARK_BYTES..].copy_from_slice(&hash(keys.fingerprint.expose_secret(), bytes));
            marked
        };
        self.0.iter().map(marked).collect()
    }

    /// The secret with which the simulated card network signs; instances with the same server secret have the same one.
    pub fn network_secret(&self) -> String {
        format!("whsec_{}", hex::encode(hash(self.0[0].seal.expose_secret(), b"card network")))
    }

    /// Encrypts `body` with XChaCha20-Poly1305 under the current secret, bound to `context`.
    pub fn seal(&self, body: &[u8], context: &str) -> Vec<u8> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).expect("the operating system has random bytes");
        let payload = Payload { msg: body, aad: context.as_bytes() };
        let sealed =
            cipher(&self.0[0]).encrypt(&XNonce::from(nonce), payload).expect("the body fits into memory");
        [nonce.as_slice(), &sealed].concat()
    }

    /// Seals with the current secret what an older one sealed; `None` if the current one sealed it, or if no secret opens it.
    pub fn seal_anew(&self, sealed: &[u8], context: &str) -> Option<Vec<u8>> {
        let (current, older) = self.0.split_first()?;
        if open(current, sealed, context).is_some() {
            return None;
        }
        let body = older.iter().find_map(|keys| open(keys, sealed, context))?;
        Some(self.seal(&body, context))
    }

    /// Whether a secret is being replaced.
    pub fn are_being_replaced(&self) -> bool {
        self.0.len() > 1
    }

    /// Decrypts what [`Secrets::seal`] made with the same `context`; `None` if no secret opens it.
    pub fn open(&self, sealed: &[u8], context: &str) -> Option<Vec<u8>> {
        self.0.iter().find_map(|keys| open(keys, sealed, context))
    }
}

fn open(keys: &Derived, sealed: &[u8], context: &str) -> Option<Vec<u8>> {
    let (nonce, body) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    cipher(keys).decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: context.as_bytes() }).ok()
}

fn cipher(keys: &Derived) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*keys.seal.expose_secret()))
}

fn hash(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut mac =
        <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

/// `bytes` random bytes in hex.
pub fn random_text(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).expect("the operating system has random bytes");
    hex::encode(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(all: &[&str]) -> Secrets {
        Secrets::new(all.iter().map(|secret| (*secret).to_owned()).collect()).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_with_its_secret_and_context_only() {
        let (old, new) = ("an older secret, long enough", "a newer secret, long enough");
        let sealed = secrets(&[old]).seal(b"whsec_1", "here");
        assert!(!sealed.windows(7).any(|window| window == b"whsec_1"));
        assert_eq!(secrets(&[new, old]).open(&sealed, "here").as_deref(), Some(b"whsec_1".as_slice()));
        assert_eq!(secrets(&[old]).open(&sealed, "there"), None);
        assert_eq!(secrets(&[new]).open(&sealed, "here"), None);
        assert_eq!(secrets(&[old]).open(&sealed[..10], "here"), None);
        let anew = secrets(&[new, old]).seal_anew(&sealed, "here").unwrap();
        assert_eq!(secrets(&[new]).open(&anew, "here").as_deref(), Some(b"whsec_1".as_slice()));
        assert_eq!(secrets(&[new, old]).seal_anew(&anew, "here"), None);
        assert_eq!(secrets(&[new]).seal_anew(&sealed, "here"), None);
        let mut changed = sealed;
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(secrets(&[old]).open(&changed, "here"), None);
    }

    #[test]
    fn a_secret_has_a_least_length() {
        assert_eq!(Secrets::new(vec![]).err(), Some(SecretsError::Missing));
        assert_eq!(Secrets::new(vec!["x".repeat(15)]).err(), Some(SecretsError::Short));
        assert!(Secrets::new(vec!["x".repeat(16)]).is_ok());
    }
}

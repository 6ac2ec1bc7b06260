//! A request as the protocol sees it: its id, its time and its claim on a key.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Fingerprint, Key};
use crate::types::Cause;
use crate::types::ids::{AccountId, RequestId};

/// One call of the API.
#[derive(Debug)]
pub struct Call {
    pub request_id: RequestId,
    pub now: DateTime<Utc>,
    /// The scheme and host by which the caller reached this server: `http://localhost:8080`.
    pub base_url: String,
    /// `None` if the route is unkeyed, or if keys are optional and the caller sent none.
    pub claim: Option<Claim>,
}

/// A claim on a key, for exactly this request.
#[derive(Debug)]
pub struct Claim {
    pub source: KeySource,
    pub key: Key,
    pub fingerprint: Fingerprint,
    pub lifetime: Duration,
    /// Whether the answer holds a secret, so that it is stored encrypted.
    pub secret: bool,
    /// Whether the caller sent `Stripe-Version`, as SDKs do.
    pub from_an_sdk: bool,
}

/// Who chose the key; keys of two sources never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The caller, in the header `Idempotency-Key`.
    Api,
    /// The card network: the key is the id of its notification.
    Network,
}

impl Call {
    /// The cause of everything that this call writes.
    pub fn cause(&self, account: AccountId) -> Cause {
        // Events show the key. The id of a notification was not chosen by the account, so no event shows it.
        let from_caller = self.claim.as_ref().filter(|claim| claim.source == KeySource::Api);
        let key = from_caller.map(|claim| claim.key.to_string());
        Cause::new(account, self.request_id, key, self.now, self.base_url.clone())
    }
}

impl KeySource {
    pub fn as_str(self) -> &'static str {
        match self {
            KeySource::Api => "api",
            KeySource::Network => "network",
        }
    }
}

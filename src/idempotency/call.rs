//! A request as the protocol sees it: what caused it, and what it claims.

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
    /// How the caller reached this server.
    pub base_url: String,
    /// None if the route is unkeyed, or keys are optional and none was sent.
    pub claim: Option<Claim>,
}

/// What a request claims: a key, for exactly this request.
#[derive(Debug)]
pub struct Claim {
    pub source: KeySource,
    pub key: Key,
    pub fingerprint: Fingerprint,
    pub lifetime: Duration,
    pub secret: bool,
    /// The caller sent `Stripe-Version`, so it is an SDK.
    pub from_an_sdk: bool,
}

/// Who chose the key. Keys of two sources never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The caller, in the header `Idempotency-Key`.
    Api,
    /// The card network: the id of the event it notifies us of.
    Network,
}

impl Call {
    /// The cause of all that this call writes.
    pub fn cause(&self, account: AccountId) -> Cause {
        // The id of a notification is no key of the account's, and an event must not show it as one.
        let own = self.claim.as_ref().filter(|claim| claim.source == KeySource::Api);
        let key = own.map(|claim| claim.key.to_string());
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

//! A request as the middleware hands it over: what its route asks of it, who calls, and what is claimed.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Fingerprint, Key};
use crate::auth::{Account, Credentials};
use crate::error::Error;
use crate::types::cause::Request;
use crate::types::{Cause, Id};

/// How a route that is not a `GET` deals with duplicates. The table of routes gives every such route one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Needs an `Idempotency-Key`; the answer is remembered.
    Keyed {
        /// How long a key is remembered; `None` is the server's setting.
        lifetime: Option<Duration>,
        /// The answer holds a secret that is shown once, so it is encrypted where it is stored.
        secret: bool,
    },
    /// A signed notification of the card network: its id is the key, and a signature stands for the API key.
    Signed {
        /// How long the sender may go on sending the same notification.
        lifetime: Duration,
    },
    /// Idempotent by HTTP itself (`DELETE`): the same transaction, and nothing remembered.
    Unkeyed,
}

impl Policy {
    /// What nearly every `POST` has.
    pub const KEYED: Policy = Policy::Keyed { lifetime: None, secret: false };
}

/// One call of the API, as the middleware read it.
#[derive(Debug)]
pub struct Call {
    pub request_id: Id<Request>,
    pub now: DateTime<Utc>,
    pub caller: Caller,
    /// How the caller reached this server.
    pub base_url: String,
    /// Whether the route has a policy, and so a transaction that writes.
    pub writes: bool,
    /// None if the route is unkeyed, or keys are optional and none was sent.
    pub claim: Option<Claim>,
}

/// Who calls.
#[derive(Debug)]
pub enum Caller {
    /// Whoever has this API key; whether it works is for the database to say.
    Holder(Credentials),
    /// The card network, whose signature was right, about this account.
    Network(Id<Account>),
}

/// What a request claims: a key, for exactly this request.
#[derive(Debug)]
pub struct Claim {
    pub source: Source,
    pub key: Key,
    pub fingerprint: Fingerprint,
    pub lifetime: Duration,
    pub secret: bool,
    /// The caller sent `Stripe-Version`, so it is an SDK.
    pub from_an_sdk: bool,
}

/// Who chose the key. Keys of two sources never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The caller, in the header `Idempotency-Key`.
    Api,
    /// The card network: the id of the event it notifies us of.
    Network,
}

impl Caller {
    /// That there is no such account.
    pub fn unknown(&self) -> Error {
        match self {
            Caller::Holder(credentials) => credentials.unknown(),
            Caller::Network(account) => Error::no_such::<Account>(&account.to_string(), "account"),
        }
    }
}

impl Call {
    /// The cause of all that this call writes.
    pub fn cause(&self, account: Id<Account>) -> Cause {
        // The id of a notification is no key of the account's, and an event must not show it as one.
        let own = self.claim.as_ref().filter(|claim| claim.source == Source::Api);
        let key = own.map(|claim| claim.key.to_string());
        Cause::new(account, self.request_id, key, self.now, self.base_url.clone())
    }
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Api => "api",
            Source::Network => "network",
        }
    }
}

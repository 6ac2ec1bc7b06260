//! Who asked for it, by which request, and when.

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::ContextV7;

use super::ids::{AccountId, RequestId};
use super::{Id, Kind};

/// Why a row is written. Every verb of the domain takes one after the connection, and every effect keeps its
/// `request_id`, which the remembered answer carries too: so an audit can join the two.
///
/// Time is a value: no business rule asks the clock or SQL's `now()`, so that a test can move it.
pub struct Cause {
    pub account: AccountId,
    pub request_id: RequestId,
    pub idempotency_key: Option<String>,
    pub now: DateTime<Utc>,
    /// How the caller reached this server, for pages that it sends people to: `http://localhost:8080`.
    pub base_url: String,
    ids: ContextV7,
}

impl Cause {
    pub fn new(
        account: AccountId,
        request_id: RequestId,
        idempotency_key: Option<String>,
        now: DateTime<Utc>,
        base_url: String,
    ) -> Self {
        Self { account, request_id, idempotency_key, now, base_url, ids: ContextV7::new() }
    }

    /// The cause of what nobody asked for: the end of a hold whose time is over.
    pub fn of_the_service(account: AccountId, now: DateTime<Utc>) -> Self {
        Self::new(account, Id::new(now, &ContextV7::new()), None, now, String::new())
    }

    /// A new id at this cause's time. Its own counter keeps the ids of one request in the order they were made,
    /// and never moves an id into another millisecond than `now`.
    pub fn new_id<K: Kind>(&self) -> Id<K> {
        Id::new(self.now, &self.ids)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} by {} at {}", self.request_id, self.account, self.now)
    }
}

//! The cause of a write: the account, the request and the time.

use std::fmt;

use chrono::{DateTime, Utc};
use uuid::ContextV7;

use super::ids::{AccountId, RequestId};
use super::{Id, Kind};

/// The cause of a write, which every verb of the domain takes after the connection.
///
/// Every row stores its `request_id`. The remembered answer has it too, so an audit can join the two. Time is a value: no
/// business rule reads the clock or calls SQL's `now()`, so a test can move the time.
pub struct Cause {
    pub account: AccountId,
    pub request_id: RequestId,
    pub idempotency_key: Option<String>,
    pub now: DateTime<Utc>,
    /// The scheme and host by which the caller reached this server, for links to its pages: `http://localhost:8080`.
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

    /// The cause of a write that no caller asked for, such as the end of an expired hold.
    pub fn of_the_service(account: AccountId, now: DateTime<Utc>) -> Self {
        Self::new(account, Id::new(now, &ContextV7::new()), None, now, String::new())
    }

    /// Makes an id with the time of this cause.
    ///
    /// A counter keeps the ids of one request in the order in which they were made. It never moves an id out of the
    /// millisecond of `now`.
    pub fn new_id<K: Kind>(&self) -> Id<K> {
        Id::new(self.now, &self.ids)
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} by {} at {}", self.request_id, self.account, self.now)
    }
}

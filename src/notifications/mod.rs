//! Webhooks in: what the card network notifies this service of.
//!
//! The sender delivers a notification until it is answered, and sometimes twice, at 2:17 and at 2:18. Its id is the
//! idempotency key: one transaction claims it, applies it and stores the answer, like any other request; the second
//! delivery finds the first answer and changes nothing. Out of order, each notification still ends in the right state,
//! because it says all that is needed, and what is final stays.

pub mod handlers;

use diesel::pg::PgConnection;

use crate::disputes::{self, Allegation, Verdict};
use crate::error::Error;
use crate::refunds::{self, Refund};
use crate::types::{Cause, Id};

/// How long a sender may go on sending: three days, and most of a fourth to spare.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(94 * 3600);

/// A notification.
#[derive(Debug)]
pub struct Notification(pub News);

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    RefundSucceeded(Id<Refund>),
    RefundFailed(Id<Refund>),
    DisputeCreated(Allegation),
    DisputeClosed(Allegation, Verdict),
}

/// Applies a notification.
///
/// # Errors
/// It speaks of what is not there. The sender will try again, and it may be there then.
pub fn apply(connection: &mut PgConnection, cause: &Cause, news: News) -> Result<(), Error> {
    match news {
        News::RefundSucceeded(refund) => refunds::settle(connection, cause, refund).map(drop),
        News::RefundFailed(refund) => refunds::fail(connection, cause, refund).map(drop),
        News::DisputeCreated(allegation) => disputes::open(connection, cause, allegation).map(drop),
        News::DisputeClosed(allegation, verdict) => {
            disputes::close_by_network(connection, cause, allegation, verdict).map(drop)
        }
    }
}

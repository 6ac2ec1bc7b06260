//! The nouns of payments, each a folder with the same files: the noun and its verbs in `mod.rs`, routes and parameters in
//! `handlers.rs`, SQL in `queries.rs`.
//!
//! They stand in one order, and each may use those above it in this list: the ledger knows nobody, and refunds know all that
//! can be refunded.

pub mod balance;
pub mod charges;
pub mod customers;
pub mod disputes;
pub mod payment_intents;
pub mod payment_methods;
pub mod refunds;
pub mod tokens;

use diesel::pg::PgConnection;

use crate::card_network::Notification;
use crate::error::Error;
use crate::types::Cause;

/// Applies what the card network says by itself.
///
/// # Errors
/// The notification is about something that is not there. The sender will try again, and it may be there then.
pub fn apply_notification(
    connection: &mut PgConnection,
    cause: &Cause,
    notification: Notification,
) -> Result<(), Error> {
    match notification {
        Notification::RefundSucceeded(notice) => refunds::settle(connection, cause, notice.refund).map(drop),
        Notification::RefundFailed(notice) => refunds::fail(connection, cause, notice.refund).map(drop),
        Notification::DisputeCreated(notice) => disputes::open(connection, cause, notice).map(drop),
        Notification::DisputeClosed(notice) => {
            disputes::close_by_network(connection, cause, notice).map(drop)
        }
    }
}

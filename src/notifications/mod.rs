//! Receives the notifications of the card network.
//!
//! The network sends a notification until it is answered, and sometimes sends it twice. The id of the notification is its
//! idempotency key. As with any other request, one transaction claims the key, applies the notification and stores the
//! answer. A second delivery finds that answer and changes nothing. Notifications may also arrive out of order: each one
//! has all the data that it needs, and a final state never changes, so the result is the same.
//!
//! This module does not know payments. The app passes it the function that applies a notification.

pub mod handlers;

use diesel::pg::PgConnection;

use crate::card_network::Notification;
use crate::error::Error;
use crate::types::Cause;

/// How long a sender may repeat a notification: three days and a reserve of 22 hours.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(94 * 3600);

/// The settings of the receiving side.
pub struct Receiver {
    /// The secret under which the card network signs.
    pub secret: String,
    /// Applies a notification. The sender of one that fails gets the error as an answer, and sends it again later.
    pub apply: fn(&mut PgConnection, &Cause, Notification) -> Result<(), Error>,
}

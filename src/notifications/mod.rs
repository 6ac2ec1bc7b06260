//! Webhooks in: what the card network notifies this service of.
//!
//! The sender delivers a notification until it is answered, and sometimes twice, at 2:17 and at 2:18. Its id is the
//! idempotency key: one transaction claims it, applies it and stores the answer, like any other request; the second
//! delivery finds the first answer and changes nothing. Out of order, each notification still ends in the right state,
//! because it says all that is needed, and what is final stays.
//!
//! What a notification does to payments is not known here: the app hands it down, as a function.

pub mod handlers;

use diesel::pg::PgConnection;

use crate::card_network::Notification;
use crate::error::Error;
use crate::types::Cause;

/// How long a sender may go on sending: three days, and most of a fourth to spare.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(94 * 3600);

/// Who receives notifications.
pub struct Receiver {
    /// The secret under which the card network signs.
    pub secret: String,
    /// What a notification does. An error is answered, and the sender tries again.
    pub apply: fn(&mut PgConnection, &Cause, Notification) -> Result<(), Error>,
}

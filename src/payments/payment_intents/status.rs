//! The states of a payment intent, and which verb each of them allows.
//!
//! ```text
//! requires_payment_method → requires_confirmation → (requires_action) → requires_capture → succeeded
//!           ↑______________________|_____________________|    (a decline goes back)
//! canceled: from all but succeeded
//! ```
//! Source: docs.stripe.com/payments/paymentintents/lifecycle

use crate::types::text_column;

text_column! {
    /// Where a payment intent stands.
    pub enum Status {
        RequiresPaymentMethod => "requires_payment_method",
        RequiresConfirmation => "requires_confirmation",
        /// The cardholder must confirm.
        RequiresAction => "requires_action",
        /// The amount is held.
        RequiresCapture => "requires_capture",
        Succeeded => "succeeded",
        Canceled => "canceled",
    }
}

/// What can be asked of a payment intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A change of what does not touch money.
    Update,
    /// A change of the amount, the currency, or of who pays and how.
    UpdateMoney,
    Confirm,
    Capture,
    Cancel,
}

impl Status {
    /// The table of transitions.
    pub fn allows(self, verb: Verb) -> bool {
        use Status::{
            Canceled, RequiresAction, RequiresCapture, RequiresConfirmation, RequiresPaymentMethod, Succeeded,
        };
        match (self, verb) {
            (RequiresPaymentMethod | RequiresConfirmation | RequiresAction, Verb::Capture) => false,
            (RequiresPaymentMethod | RequiresConfirmation | RequiresAction, _) => true,
            (RequiresCapture, Verb::Update | Verb::Capture | Verb::Cancel) => true,
            (RequiresCapture, Verb::UpdateMoney | Verb::Confirm) => false,
            (Succeeded, Verb::Update) => true,
            (Succeeded, _) | (Canceled, _) => false,
        }
    }
}

impl Verb {
    /// As in "You cannot … this PaymentIntent".
    pub fn word(self) -> &'static str {
        match self {
            Verb::Update | Verb::UpdateMoney => "update",
            Verb::Confirm => "confirm",
            Verb::Capture => "capture",
            Verb::Cancel => "cancel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the documentation, written out: update, update of money, confirm, capture, cancel.
    const TABLE: [(Status, [bool; 5]); 6] = [
        (Status::RequiresPaymentMethod, [true, true, true, false, true]),
        (Status::RequiresConfirmation, [true, true, true, false, true]),
        (Status::RequiresAction, [true, true, true, false, true]),
        (Status::RequiresCapture, [true, false, false, true, true]),
        (Status::Succeeded, [true, false, false, false, false]),
        (Status::Canceled, [false, false, false, false, false]),
    ];

    #[test]
    fn every_state_allows_what_the_documentation_says() {
        let calls = [Verb::Update, Verb::UpdateMoney, Verb::Confirm, Verb::Capture, Verb::Cancel];
        for (status, allowed) in TABLE {
            for (verb, allowed) in calls.into_iter().zip(allowed) {
                assert_eq!(status.allows(verb), allowed, "{status:?} {verb:?}");
            }
        }
    }

    #[test]
    fn statuses_read_back_what_they_show() {
        for status in Status::ALL.iter().copied() {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("processing"), None);
    }
}

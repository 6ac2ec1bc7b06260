//! The states of a payment intent, and which call each of them allows.
//!
//! ```text
//! requires_payment_method → requires_confirmation → (requires_action) → requires_capture → succeeded
//!           ↑______________________|_____________________|    (a decline goes back)
//! canceled: from all but succeeded
//! ```
//! Source: docs.stripe.com/payments/paymentintents/lifecycle

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::Text;

/// Where a payment intent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Text)]
pub enum Status {
    RequiresPaymentMethod,
    RequiresConfirmation,
    /// The cardholder must confirm.
    RequiresAction,
    /// The amount is held.
    RequiresCapture,
    Succeeded,
    Canceled,
}

/// What can be asked of a payment intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A change of what does not touch money.
    Update,
    /// A change of the amount, the currency, or of who pays and how.
    UpdateMoney,
    Confirm,
    Capture,
    Cancel,
}

impl Status {
    pub const ALL: [Status; 6] = [
        Status::RequiresPaymentMethod,
        Status::RequiresConfirmation,
        Status::RequiresAction,
        Status::RequiresCapture,
        Status::Succeeded,
        Status::Canceled,
    ];

    /// The table of transitions.
    pub fn allows(self, call: Call) -> bool {
        use Status::{
            Canceled, RequiresAction, RequiresCapture, RequiresConfirmation, RequiresPaymentMethod, Succeeded,
        };
        match (self, call) {
            (RequiresPaymentMethod | RequiresConfirmation | RequiresAction, Call::Capture) => false,
            (RequiresPaymentMethod | RequiresConfirmation | RequiresAction, _) => true,
            (RequiresCapture, Call::Update | Call::Capture | Call::Cancel) => true,
            (RequiresCapture, Call::UpdateMoney | Call::Confirm) => false,
            (Succeeded, Call::Update) => true,
            (Succeeded, _) | (Canceled, _) => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Status::RequiresPaymentMethod => "requires_payment_method",
            Status::RequiresConfirmation => "requires_confirmation",
            Status::RequiresAction => "requires_action",
            Status::RequiresCapture => "requires_capture",
            Status::Succeeded => "succeeded",
            Status::Canceled => "canceled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl Call {
    /// As in "You cannot … this PaymentIntent".
    pub fn verb(self) -> &'static str {
        match self {
            Call::Update | Call::UpdateMoney => "update",
            Call::Confirm => "confirm",
            Call::Capture => "capture",
            Call::Cancel => "cancel",
        }
    }
}

impl ToSql<Text, Pg> for Status {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<Text, Pg>::to_sql(self.as_str(), &mut out.reborrow())
    }
}

impl FromSql<Text, Pg> for Status {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        let text = <String as FromSql<Text, Pg>>::from_sql(value)?;
        Self::parse(&text).ok_or_else(|| format!("not a status of a payment intent: {text:?}").into())
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
        let calls = [Call::Update, Call::UpdateMoney, Call::Confirm, Call::Capture, Call::Cancel];
        for (status, allowed) in TABLE {
            for (call, allowed) in calls.into_iter().zip(allowed) {
                assert_eq!(status.allows(call), allowed, "{status:?} {call:?}");
            }
        }
    }

    #[test]
    fn statuses_read_back_what_they_show() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
        assert_eq!(Status::parse("processing"), None);
    }
}

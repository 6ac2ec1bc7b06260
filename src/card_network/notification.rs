//! What the card network says by itself. The simulation writes these, and [`crate::notifications`] reads them.

use serde::{Deserialize, Serialize};

use crate::types::ids::{AccountId, ChargeId, DisputeId, NotificationId, RefundId};
use crate::types::text_column;

/// A notification as it is sent.
#[derive(Debug, Serialize)]
pub struct Envelope {
    /// Also the idempotency key of its deliveries.
    pub id: NotificationId,
    pub account: AccountId,
    /// In Unix seconds.
    pub created: i64,
    #[serde(flatten)]
    pub notification: Notification,
}

/// What a notification says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum Notification {
    #[serde(rename = "refund.succeeded")]
    RefundSucceeded(RefundNotice),
    #[serde(rename = "refund.failed")]
    RefundFailed(RefundNotice),
    #[serde(rename = "dispute.created")]
    DisputeCreated(DisputeNotice),
    #[serde(rename = "dispute.closed")]
    DisputeClosed(VerdictNotice),
}

/// What the network says of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefundNotice {
    pub refund: RefundId,
}

/// What the network says of a dispute that it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisputeNotice {
    pub dispute: DisputeId,
    pub charge: ChargeId,
    pub reason: DisputeReason,
    /// Only a question yet: no money moves.
    pub inquiry: bool,
}

/// What the network says of a dispute that it closes. It repeats all, since the notice of its beginning may be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictNotice {
    pub dispute: DisputeId,
    pub charge: ChargeId,
    pub reason: DisputeReason,
    pub inquiry: bool,
    pub outcome: Verdict,
}

/// How a dispute ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Won,
    Lost,
}

text_column! {
    /// Why a cardholder disputes a charge, in Stripe's words (docs.stripe.com/disputes/categories).
    pub enum DisputeReason {
        BankCannotProcess => "bank_cannot_process",
        CheckReturned => "check_returned",
        CreditNotProcessed => "credit_not_processed",
        CustomerInitiated => "customer_initiated",
        DebitNotAuthorized => "debit_not_authorized",
        Duplicate => "duplicate",
        Fraudulent => "fraudulent",
        General => "general",
        IncorrectAccountDetails => "incorrect_account_details",
        InsufficientFunds => "insufficient_funds",
        Noncompliant => "noncompliant",
        ProductNotReceived => "product_not_received",
        ProductUnacceptable => "product_unacceptable",
        SubscriptionCanceled => "subscription_canceled",
        Unrecognized => "unrecognized",
    }
}

impl VerdictNotice {
    /// The dispute that it is about.
    pub fn dispute_notice(self) -> DisputeNotice {
        let Self { dispute, charge, reason, inquiry, .. } = self;
        DisputeNotice { dispute, charge, reason, inquiry }
    }
}

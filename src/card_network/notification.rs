//! The notifications of the card network, which the simulation writes and [`crate::notifications`] reads.

use serde::{Deserialize, Serialize};

use crate::types::ids::{AccountId, ChargeId, DisputeId, NotificationId, RefundId};
use crate::types::text_column;

/// A notification as it is sent.
#[derive(Debug, Serialize)]
pub struct Envelope {
    /// The id, which is also the idempotency key of each delivery.
    pub id: NotificationId,
    pub account: AccountId,
    /// The time in Unix seconds.
    pub created: i64,
    #[serde(flatten)]
    pub notification: Notification,
}

/// The type and data of a notification.
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

/// A notice that a refund has succeeded or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefundNotice {
    pub refund: RefundId,
}

/// A notice that the network opens a dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisputeNotice {
    pub dispute: DisputeId,
    pub charge: ChargeId,
    pub reason: DisputeReason,
    /// Whether this is only an inquiry, so that no money moves.
    pub inquiry: bool,
}

/// A notice that the network closes a dispute.
///
/// It repeats all data of the dispute, because it may arrive before the [`DisputeNotice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictNotice {
    pub dispute: DisputeId,
    pub charge: ChargeId,
    pub reason: DisputeReason,
    pub inquiry: bool,
    pub outcome: Verdict,
}

/// The end of a dispute.
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
    /// The notice that opens the dispute.
    pub fn dispute_notice(self) -> DisputeNotice {
        let Self { dispute, charge, reason, inquiry, .. } = self;
        DisputeNotice { dispute, charge, reason, inquiry }
    }
}

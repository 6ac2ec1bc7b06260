//! What can happen, in Stripe's words (docs.stripe.com/api/events/types).

use super::text_column;

text_column! {
    /// The type of an event.
    pub enum EventType {
        ChargeCaptured => "charge.captured",
        ChargeExpired => "charge.expired",
        ChargeFailed => "charge.failed",
        ChargeRefunded => "charge.refunded",
        ChargeSucceeded => "charge.succeeded",
        ChargeUpdated => "charge.updated",
        ChargeDisputeClosed => "charge.dispute.closed",
        ChargeDisputeCreated => "charge.dispute.created",
        ChargeDisputeFundsReinstated => "charge.dispute.funds_reinstated",
        ChargeDisputeFundsWithdrawn => "charge.dispute.funds_withdrawn",
        ChargeDisputeUpdated => "charge.dispute.updated",
        CustomerCreated => "customer.created",
        CustomerDeleted => "customer.deleted",
        CustomerUpdated => "customer.updated",
        PaymentIntentAmountCapturableUpdated => "payment_intent.amount_capturable_updated",
        PaymentIntentCanceled => "payment_intent.canceled",
        PaymentIntentCreated => "payment_intent.created",
        PaymentIntentPaymentFailed => "payment_intent.payment_failed",
        PaymentIntentRequiresAction => "payment_intent.requires_action",
        PaymentIntentSucceeded => "payment_intent.succeeded",
        PaymentMethodAttached => "payment_method.attached",
        PaymentMethodDetached => "payment_method.detached",
        PaymentMethodUpdated => "payment_method.updated",
        RefundCreated => "refund.created",
        RefundFailed => "refund.failed",
        RefundUpdated => "refund.updated",
    }
}

/// Types that Stripe has of the same nouns, and that nothing here causes.
const NEVER_CAUSED: [&str; 5] = [
    "charge.pending",
    "payment_intent.partially_funded",
    "payment_intent.processing",
    "payment_method.automatically_updated",
    "payment_method.card_automatically_updated",
];

impl EventType {
    /// The types whose text begins with `prefix`: `charge.` has those of disputes, too.
    pub fn with_prefix(prefix: &str) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|known| known.as_str().starts_with(prefix)).collect()
    }

    /// Whether the event says what was different before.
    pub fn is_update(self) -> bool {
        self.as_str().ends_with(".updated")
    }

    /// Whether this service has the noun of `name` and Stripe has no such type of it: `charge.succeded`.
    pub fn is_misspelt(name: &str) -> bool {
        let is_known = Self::parse(name).is_some() || NEVER_CAUSED.contains(&name);
        !is_known && Self::ALL.iter().any(|known| noun(known.as_str()) == noun(name))
    }
}

/// `charge.dispute` of `charge.dispute.created`.
fn noun(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(noun, _)| noun)
}

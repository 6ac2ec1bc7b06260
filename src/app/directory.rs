//! The directory of all objects: which properties name other objects, and how objects are loaded.

use crate::payments::{balance, charges, customers, disputes, payment_intents, payment_methods, refunds};
use crate::wire::Directory;
use crate::wire::directory::{ELSEWHERE, Sublist};
use crate::{events, webhooks};

/// The directory of this service.
pub static DIRECTORY: Directory = Directory {
    properties: &[
        // The properties that Stripe can expand, object by object. A name with a point is a part of an object: it is not
        // loaded itself, but the properties in it are.
        ("account", "settings", &["account.settings"]),
        ("account.settings", "branding", &["account.settings.branding"]),
        ("account.settings.branding", "icon", &[ELSEWHERE]),
        ("account.settings.branding", "logo", &[ELSEWHERE]),
        ("balance", "instant_available", &["balance.instant_available"]),
        ("balance.instant_available", "net_available", &[ELSEWHERE]),
        ("balance_transaction", "source", &["charge", "dispute", "refund"]),
        ("card", "account", &[ELSEWHERE]),
        ("card", "customer", &["customer"]),
        ("charge", "application", &[ELSEWHERE]),
        ("charge", "application_fee", &[ELSEWHERE]),
        ("charge", "balance_transaction", &["balance_transaction"]),
        ("charge", "customer", &["customer"]),
        ("charge", "failure_balance_transaction", &["balance_transaction"]),
        ("charge", "on_behalf_of", &[ELSEWHERE]),
        ("charge", "outcome", &["charge.outcome"]),
        ("charge.outcome", "rule", &[ELSEWHERE]),
        ("charge", "payment_intent", &["payment_intent"]),
        ("charge.refunds", "data", &["refund"]),
        ("charge", "review", &[ELSEWHERE]),
        ("charge", "source_transfer", &[ELSEWHERE]),
        ("charge", "transfer", &[ELSEWHERE]),
        ("charge", "transfer_data", &["charge.transfer_data"]),
        ("charge.transfer_data", "destination", &[ELSEWHERE]),
        ("customer", "cash_balance", &[ELSEWHERE]),
        ("customer", "default_source", &["card"]),
        ("customer", "discount", &["customer.discount"]),
        ("customer.discount", "customer", &["customer"]),
        ("customer.discount", "promotion_code", &[ELSEWHERE]),
        ("customer.discount", "source", &["customer.discount.source"]),
        ("customer.discount.source", "coupon", &[ELSEWHERE]),
        ("customer", "invoice_credit_balance", &[ELSEWHERE]),
        ("customer", "invoice_settings", &["customer.invoice_settings"]),
        ("customer.invoice_settings", "default_payment_method", &["payment_method"]),
        ("customer.sources", "data", &["card"]),
        ("customer.subscriptions", "data", &[ELSEWHERE]),
        ("customer", "tax", &[ELSEWHERE]),
        ("customer.tax_ids", "data", &[ELSEWHERE]),
        ("customer", "test_clock", &[ELSEWHERE]),
        ("dispute", "balance_transactions", &["dispute.balance_transactions"]),
        ("dispute.balance_transactions", "source", &["dispute"]),
        ("dispute", "charge", &["charge"]),
        ("dispute", "evidence", &["dispute.evidence"]),
        ("dispute.evidence", "cancellation_policy", &[ELSEWHERE]),
        ("dispute.evidence", "customer_communication", &[ELSEWHERE]),
        ("dispute.evidence", "customer_signature", &[ELSEWHERE]),
        ("dispute.evidence", "duplicate_charge_documentation", &[ELSEWHERE]),
        ("dispute.evidence", "receipt", &[ELSEWHERE]),
        ("dispute.evidence", "refund_policy", &[ELSEWHERE]),
        ("dispute.evidence", "service_documentation", &[ELSEWHERE]),
        ("dispute.evidence", "shipping_documentation", &[ELSEWHERE]),
        ("dispute.evidence", "uncategorized_file", &[ELSEWHERE]),
        ("dispute", "payment_intent", &["payment_intent"]),
        ("payment_intent", "application", &[ELSEWHERE]),
        ("payment_intent", "customer", &["customer"]),
        ("payment_intent", "last_payment_error", &["payment_intent.last_payment_error"]),
        ("payment_intent.last_payment_error", "payment_method", &["error.payment_method"]),
        ("payment_intent.last_payment_error", "source", &["error.source"]),
        ("error.payment_method", "customer", &["customer"]),
        ("error.source", "customer", &["customer"]),
        ("payment_intent", "latest_charge", &["charge"]),
        ("payment_intent", "on_behalf_of", &[ELSEWHERE]),
        ("payment_intent", "payment_method", &["payment_method"]),
        ("payment_intent", "review", &[ELSEWHERE]),
        ("payment_intent", "transfer_data", &["payment_intent.transfer_data"]),
        ("payment_intent.transfer_data", "destination", &[ELSEWHERE]),
        ("payment_method", "card", &["payment_method.card"]),
        ("payment_method.card", "generated_from", &["payment_method.card.generated_from"]),
        ("payment_method.card.generated_from", "setup_attempt", &[ELSEWHERE]),
        ("payment_method", "customer", &["customer"]),
        ("refund", "balance_transaction", &["balance_transaction"]),
        ("refund", "charge", &["charge"]),
        ("refund", "customer", &["customer"]),
        ("refund", "failure_balance_transaction", &["balance_transaction"]),
        ("refund", "payment_intent", &["payment_intent"]),
        ("refund", "payment_method", &["payment_method"]),
        ("refund", "source_transfer_reversal", &[ELSEWHERE]),
        ("refund", "transfer_reversal", &[ELSEWHERE]),
        ("token", "card", &["token.card"]),
        ("token.card", "account", &[ELSEWHERE]),
        ("token.card", "customer", &["customer"]),
    ],
    sublists: &[
        Sublist {
            owner: "charge",
            property: "refunds",
            kind: "charge.refunds",
            path: "/v1/charges",
            load: Some(refunds::sublists),
        },
        Sublist {
            owner: "customer",
            property: "sources",
            kind: "customer.sources",
            path: "/v1/customers",
            load: Some(payment_methods::source_sublists),
        },
        Sublist {
            owner: "customer",
            property: "subscriptions",
            kind: "customer.subscriptions",
            path: "/v1/customers",
            load: None,
        },
        Sublist {
            owner: "customer",
            property: "tax_ids",
            kind: "customer.tax_ids",
            path: "/v1/customers",
            load: None,
        },
    ],
    loaders: &[
        ("card", payment_methods::source_objects),
        ("ch", charges::objects),
        ("cus", customers::objects),
        ("dp", disputes::objects),
        ("evt", events::written),
        ("pi", payment_intents::objects),
        ("pm", payment_methods::objects),
        ("re", refunds::objects),
        ("txn", balance::objects),
        ("we", webhooks::objects),
    ],
};

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::Error;
    use crate::wire::expand::Tree;
    use crate::wire::{Expand, Params};

    fn tree(object: &str, prefix: Option<&str>, paths: &[&str]) -> Result<Tree, Error> {
        let Value::Object(members) = json!({ "expand": paths }) else { unreachable!() };
        Expand::read(&mut Params::new(members, true, &DIRECTORY)).unwrap().tree(object, prefix)
    }

    #[test]
    fn paths_are_checked_before_anything_is_loaded() {
        for path in [
            "customer",
            "customer.invoice_settings.default_payment_method",
            "customer.default_source",
            "balance_transaction.source.customer",
        ] {
            assert!(tree("charge", None, &[path]).is_ok(), "{path}");
            assert_eq!(tree("charge", Some("data."), &[path]).is_ok(), path.starts_with("data."), "{path}");
        }
        assert!(tree("charge", Some("data."), &["data.customer.default_source"]).is_ok());
        for path in [
            "",
            "amount",
            "customer.",
            ".customer",
            "customer.x",
            "customer.invoice_settings",
            "data.customer",
            "customer.default_source.x",
        ] {
            let error = tree("charge", None, &[path]).unwrap_err();
            assert_eq!(error.to_string(), format!("This property cannot be expanded ({path})."));
        }
    }

    #[test]
    fn four_levels_are_the_most() {
        let path = |levels: usize| vec!["balance_transaction.source"; levels].join(".");
        assert!(tree("charge", None, &[&path(2)]).is_ok());
        assert!(tree("charge", None, &[&path(3)]).unwrap_err().to_string().contains("more than 4 levels"));
    }

    #[test]
    fn every_kind_of_object_can_be_loaded_or_is_a_part_of_one_or_stands_elsewhere() {
        let kinds = DIRECTORY
            .properties
            .iter()
            .flat_map(|(object, _, targets)| [*object].into_iter().chain(targets.iter().copied()));
        let with_objects = [
            "account",
            "balance",
            "balance_transaction",
            "card",
            "charge",
            "customer",
            "dispute",
            "payment_intent",
            "payment_method",
            "refund",
            "token",
        ];
        for kind in kinds {
            assert!(with_objects.contains(&kind) || kind.contains('.') || kind == ELSEWHERE, "{kind}");
        }
        // Each part can be reached from the object that it belongs to.
        for (object, ..) in DIRECTORY.properties.iter().filter(|(object, ..)| object.contains('.')) {
            let is_list = DIRECTORY.is_object(object);
            let is_part = DIRECTORY.properties.iter().any(|(_, _, targets)| targets.contains(object));
            assert!(is_list != is_part, "{object}");
        }
    }

    #[test]
    fn what_stripe_has_and_this_service_has_not_can_be_expanded_to_any_depth() {
        for path in [
            "review",
            "on_behalf_of.settings.branding.logo",
            "customer.subscriptions.data.x",
            "refunds",
            "refunds.data.charge",
        ] {
            assert!(tree("charge", None, &[path]).is_ok(), "{path}");
        }
        for path in
            ["review.", "outcome", "refunds.x", "refunds.data.x", "customer.tax_ids.x", "transfer_data"]
        {
            assert!(tree("charge", None, &[path]).is_err(), "{path}");
        }
    }
}

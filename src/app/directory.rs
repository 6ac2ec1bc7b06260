//! The directory of all objects: which property names which, and how each is loaded.

use crate::payments::{balance, charges, customers, disputes, payment_intents, payment_methods, refunds};
use crate::wire::Directory;
use crate::{events, webhooks};

/// What `expand[]` can expand, and what a parameter can name by its id.
pub static DIRECTORY: Directory = Directory {
    properties: &[
        ("balance_transaction", "source", &["charge", "refund"]),
        ("dispute", "charge", &["charge"]),
        ("dispute", "payment_intent", &["payment_intent"]),
        ("refund", "failure_balance_transaction", &["balance_transaction"]),
        ("charge", "balance_transaction", &["balance_transaction"]),
        ("charge", "customer", &["customer"]),
        ("charge", "failure_balance_transaction", &["balance_transaction"]),
        ("charge", "payment_intent", &["payment_intent"]),
        ("customer", "default_source", &["card"]),
        // An object without an id: there is nothing to load, only a way to what is in it.
        ("customer", "invoice_settings", &["customer.invoice_settings"]),
        ("customer.invoice_settings", "default_payment_method", &["payment_method"]),
        ("card", "customer", &["customer"]),
        ("payment_intent", "customer", &["customer"]),
        ("payment_intent", "latest_charge", &["charge"]),
        ("payment_intent", "payment_method", &["payment_method"]),
        ("payment_method", "customer", &["customer"]),
        ("refund", "balance_transaction", &["balance_transaction"]),
        ("refund", "charge", &["charge"]),
        ("refund", "customer", &["customer"]),
        ("refund", "payment_intent", &["payment_intent"]),
        ("refund", "payment_method", &["payment_method"]),
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
    fn every_kind_that_can_stand_somewhere_can_be_expanded_further_or_ends_there() {
        let kinds = [
            "card",
            "charge",
            "customer",
            "customer.invoice_settings",
            "payment_intent",
            "payment_method",
            "refund",
            "balance_transaction",
            "dispute",
        ];
        for (object, property, targets) in DIRECTORY.properties {
            assert!(kinds.contains(object), "{object}.{property}");
            assert!(targets.iter().all(|target| kinds.contains(target)), "{object}.{property}");
        }
    }
}

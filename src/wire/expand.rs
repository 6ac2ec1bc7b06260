//! `expand[]`: replacing ids by their objects, up to four levels deep.
//!
//! One statement a property and level, however many rows a list has: the ids are gathered, loaded together and
//! put back.

use std::collections::{BTreeMap, HashMap};

use diesel::QueryResult;
use diesel::pg::PgConnection;
use serde_json::Value;
use uuid::Uuid;

use super::params::{FromParameter, Parameter};
use crate::auth::Account;
use crate::error::{Error, quoted};
use crate::types::Id;
use crate::{balance, charges, customers, payment_intents, payment_methods, refunds};

/// How deep a path may go.
const MAX_LEVELS: usize = 4;

/// Which property of which object can be expanded, to objects of which kinds.
const EXPANDABLE: [(&str, &str, &[&str]); 18] = [
    ("balance_transaction", "source", &["charge", "refund"]),
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
];

type Load = fn(&mut PgConnection, Id<Account>, &[Uuid]) -> QueryResult<Vec<Value>>;

/// How the objects of an id's prefix are loaded.
const LOADERS: [(&str, Load); 7] = [
    ("card", payment_methods::source_shapes),
    ("ch", charges::shapes),
    ("cus", customers::shapes),
    ("pi", payment_intents::shapes),
    ("pm", payment_methods::shapes),
    ("re", refunds::shapes),
    ("txn", balance::shapes),
];

/// The paths that a caller wants expanded, as in `data.customer.default_source`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expand(Vec<String>);

/// Paths that begin alike, as a tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tree(BTreeMap<String, Tree>);

impl FromParameter for Expand {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        Vec::from_parameter(parameter).map(Self)
    }
}

impl Expand {
    /// Expands an object that stands alone.
    ///
    /// # Errors
    /// A property that cannot be expanded, or what the statements report.
    pub fn one(
        &self,
        connection: &mut PgConnection,
        account: Id<Account>,
        shape: &mut Value,
    ) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let object = shape["object"].as_str().unwrap_or_default().to_owned();
        let tree = self.tree(&object, None)?;
        fill(connection, account, vec![shape], &tree)
    }

    /// Expands the objects of a list, whose paths begin with `data.`.
    ///
    /// # Errors
    /// A property that cannot be expanded, or what the statements report.
    pub fn list(
        &self,
        connection: &mut PgConnection,
        account: Id<Account>,
        object: &str,
        shapes: &mut [Value],
    ) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let tree = self.tree(object, Some("data."))?;
        fill(connection, account, shapes.iter_mut().collect(), &tree)
    }

    /// The paths as a tree, each checked whether there is such a property, however many rows there are.
    fn tree(&self, object: &str, prefix: Option<&str>) -> Result<Tree, Error> {
        let mut root = Tree::default();
        for (number, path) in self.0.iter().enumerate() {
            let refused = |what: String| Error::invalid(&format!("expand[{number}]"), what);
            let unknown = || refused(format!("This property cannot be expanded ({}).", quoted(path)));
            let inner = match prefix {
                Some(prefix) => path.strip_prefix(prefix).ok_or_else(unknown)?,
                None => path,
            };
            let levels = path.split('.').count();
            if levels > MAX_LEVELS {
                return Err(refused(format!(
                    "You cannot expand more than {MAX_LEVELS} levels of a property ({}).",
                    quoted(path)
                )));
            }
            let (mut objects, mut tree) = (vec![object], &mut root);
            for property in inner.split('.') {
                objects = targets(&objects, property);
                if objects.is_empty() {
                    return Err(unknown());
                }
                tree = tree.0.entry(property.to_owned()).or_default();
            }
            if objects.iter().all(|object| object.contains('.')) {
                return Err(unknown());
            }
        }
        Ok(root)
    }
}

/// The kinds of objects that a property of any of `objects` can hold.
fn targets(objects: &[&str], property: &str) -> Vec<&'static str> {
    let of_property =
        EXPANDABLE.iter().filter(|(object, name, _)| objects.contains(object) && *name == property);
    of_property.flat_map(|(_, _, kinds)| kinds.iter().copied()).collect()
}

/// Expands the properties of `tree` in all of `shapes` at once, then what is below them.
fn fill(
    connection: &mut PgConnection,
    account: Id<Account>,
    mut shapes: Vec<&mut Value>,
    tree: &Tree,
) -> Result<(), Error> {
    for (property, below) in &tree.0 {
        let ids: Vec<&str> = shapes.iter().filter_map(|shape| shape[property.as_str()].as_str()).collect();
        let loaded = load(connection, account, &ids)?;
        let mut next = Vec::new();
        for shape in &mut shapes {
            let Some(place) = shape.get_mut(property.as_str()) else { continue };
            if let Some(object) = place.as_str().and_then(|id| loaded.get(id)) {
                *place = object.clone();
            }
            if place.is_object() {
                next.push(place);
            }
        }
        fill(connection, account, next, below)?;
    }
    Ok(())
}

/// The objects of these ids, by id: one statement for each kind of id.
fn load(
    connection: &mut PgConnection,
    account: Id<Account>,
    ids: &[&str],
) -> Result<HashMap<String, Value>, Error> {
    let mut objects = HashMap::new();
    for (prefix, load) in LOADERS {
        let mut of_prefix: Vec<Uuid> = ids
            .iter()
            .filter_map(|id| Uuid::try_parse(id.strip_prefix(prefix)?.strip_prefix('_')?).ok())
            .collect();
        of_prefix.sort_unstable();
        of_prefix.dedup();
        if of_prefix.is_empty() {
            continue;
        }
        for shape in load(connection, account, &of_prefix)? {
            if let Some(id) = shape["id"].as_str() {
                objects.insert(id.to_owned(), shape);
            }
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(object: &str, prefix: Option<&str>, paths: &[&str]) -> Result<Tree, Error> {
        Expand(paths.iter().map(|path| (*path).to_owned()).collect()).tree(object, prefix)
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
        ];
        for (object, property, targets) in EXPANDABLE {
            assert!(kinds.contains(&object), "{object}.{property}");
            assert!(targets.iter().all(|target| kinds.contains(target)), "{object}.{property}");
        }
    }
}

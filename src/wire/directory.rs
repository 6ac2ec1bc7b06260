//! The directory of objects: how they are loaded by their ids, and which of their properties name other objects.
//!
//! This module does not know the nouns. The app fills the directory ([`crate::app::DIRECTORY`]) and passes it down.

use std::collections::HashMap;

use diesel::QueryResult;
use diesel::pg::PgConnection;
use serde_json::Value;
use uuid::Uuid;

use crate::types::ids::AccountId;

/// Loads the objects of an account with these ids.
pub type Load = fn(&mut PgConnection, AccountId, &[Uuid]) -> QueryResult<Vec<Value>>;

/// Loads the newest rows of a list of each of these owners, each row with its owner's id.
///
/// It loads one row more for each owner than a list shows, which tells whether there are more.
pub type LoadSublists = fn(&mut PgConnection, AccountId, &[Uuid]) -> QueryResult<Vec<(Uuid, Value)>>;

/// The kind of all objects that Stripe has and this service does not have.
///
/// A property that could name one is null, and so are the properties below it.
pub const ELSEWHERE: &str = "elsewhere";

/// The number of rows that a list within an object shows.
pub const SUBLIST_ROWS: usize = 10;

/// A list that an object has only if the caller expands it.
#[derive(Debug)]
pub struct Sublist {
    /// The kind of the object that has the list.
    pub owner: &'static str,
    pub property: &'static str,
    /// The kind of the list, as in `charge.refunds`.
    pub kind: &'static str,
    /// The path of the owners.
    pub path: &'static str,
    /// `None` if the list is always empty, because this service has no such objects.
    pub load: Option<LoadSublists>,
}

/// The objects that have ids, and the properties that name them.
#[derive(Debug)]
pub struct Directory {
    /// The properties that can be expanded: the kind of an object, the name of a property, and the kinds that it can name.
    pub properties: &'static [(&'static str, &'static str, &'static [&'static str])],
    pub sublists: &'static [Sublist],
    /// The function that loads the objects of each prefix of ids.
    pub loaders: &'static [(&'static str, Load)],
}

impl Directory {
    /// An empty directory, for parameters that are read outside of a request.
    pub const EMPTY: &'static Directory = &Directory { properties: &[], sublists: &[], loaders: &[] };

    /// The kinds of objects that a property of any of `objects` can hold.
    pub fn targets(&self, objects: &[&str], property: &str) -> Vec<&'static str> {
        let of_property =
            self.properties.iter().filter(|(object, name, _)| objects.contains(object) && *name == property);
        let named = of_property.flat_map(|(_, _, kinds)| kinds.iter().copied());
        let lists = objects.iter().filter_map(|object| self.sublist(object, property)).map(|list| list.kind);
        // The properties of Stripe's other objects are unknown here, so any name is accepted.
        let elsewhere = (objects.contains(&ELSEWHERE) && !property.is_empty()).then_some(ELSEWHERE);
        named.chain(lists).chain(elsewhere).collect()
    }

    /// Whether a path of `expand[]` can end at this kind: a part of an object cannot be expanded, because it is always there.
    pub fn is_object(&self, kind: &str) -> bool {
        !kind.contains('.') || self.sublists.iter().any(|list| list.kind == kind)
    }

    /// The list that objects of this kind have under this name.
    pub fn sublist(&self, object: &str, property: &str) -> Option<&'static Sublist> {
        self.sublists.iter().find(|list| list.owner == object && list.property == property)
    }

    /// Loads the objects with these ids, with one statement for each kind; ids without an object are left out.
    pub fn load(
        &self,
        connection: &mut PgConnection,
        account: AccountId,
        ids: &[&str],
    ) -> QueryResult<HashMap<String, Value>> {
        let mut objects = HashMap::new();
        for (prefix, load) in self.loaders {
            let mut of_prefix: Vec<Uuid> = ids
                .iter()
                .filter_map(|id| Uuid::try_parse(id.strip_prefix(prefix)?.strip_prefix('_')?).ok())
                .collect();
            of_prefix.sort_unstable();
            of_prefix.dedup();
            if of_prefix.is_empty() {
                continue;
            }
            for object in load(connection, account, &of_prefix)? {
                if let Some(id) = object["id"].as_str() {
                    objects.insert(id.to_owned(), object);
                }
            }
        }
        Ok(objects)
    }
}

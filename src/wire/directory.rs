//! How objects are found by their ids, and which of their properties name other objects.
//!
//! The nouns stand above this room, so it does not know them: the app hands the directory down
//! ([`crate::app::DIRECTORY`]).

use std::collections::HashMap;

use diesel::QueryResult;
use diesel::pg::PgConnection;
use serde_json::Value;
use uuid::Uuid;

use crate::types::ids::AccountId;

/// Loads the objects of an account with these ids.
pub type Load = fn(&mut PgConnection, AccountId, &[Uuid]) -> QueryResult<Vec<Value>>;

/// Loads the newest of what stands in a list of these owners, each with the owner's id: one more of each owner than
/// a page shows.
pub type LoadSublists = fn(&mut PgConnection, AccountId, &[Uuid]) -> QueryResult<Vec<(Uuid, Value)>>;

/// The kind of an object that Stripe has and this service has not. A property that could name one is null, and so is
/// all that stands below it.
pub const ELSEWHERE: &str = "elsewhere";

/// How many rows a list within an object shows.
pub const SUBLIST_ROWS: usize = 10;

/// A list that an object has only for those who expand it.
#[derive(Debug)]
pub struct Sublist {
    /// The kind of object that has it.
    pub owner: &'static str,
    pub property: &'static str,
    /// Its kind, as in `charge.refunds`.
    pub kind: &'static str,
    /// The path of its owners.
    pub path: &'static str,
    /// `None`: this service has nothing that could stand in it.
    pub load: Option<LoadSublists>,
}

/// All objects that have ids.
#[derive(Debug)]
pub struct Directory {
    /// Which property of which object holds an id that can be expanded, and the kinds of object it can name.
    pub properties: &'static [(&'static str, &'static str, &'static [&'static str])],
    pub sublists: &'static [Sublist],
    /// How the objects of an id's prefix are loaded.
    pub loaders: &'static [(&'static str, Load)],
}

impl Directory {
    /// A directory of nothing, for parameters that are read outside of a request.
    pub const EMPTY: &'static Directory = &Directory { properties: &[], sublists: &[], loaders: &[] };

    /// The kinds of objects that a property of any of `objects` can hold.
    pub fn targets(&self, objects: &[&str], property: &str) -> Vec<&'static str> {
        let of_property =
            self.properties.iter().filter(|(object, name, _)| objects.contains(object) && *name == property);
        let named = of_property.flat_map(|(_, _, kinds)| kinds.iter().copied());
        let lists = objects.iter().filter_map(|object| self.sublist(object, property)).map(|list| list.kind);
        // Which properties the object would have there is for Stripe to say.
        let elsewhere = (objects.contains(&ELSEWHERE) && !property.is_empty()).then_some(ELSEWHERE);
        named.chain(lists).chain(elsewhere).collect()
    }

    /// Whether a path can end at an object of this kind. A part of an object is no object: it is there anyway.
    pub fn is_object(&self, kind: &str) -> bool {
        !kind.contains('.') || self.sublists.iter().any(|list| list.kind == kind)
    }

    /// The list that objects of this kind have under this name.
    pub fn sublist(&self, object: &str, property: &str) -> Option<&'static Sublist> {
        self.sublists.iter().find(|list| list.owner == object && list.property == property)
    }

    /// The objects of these ids, by id: one statement for each kind of id. What is not there is left out.
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

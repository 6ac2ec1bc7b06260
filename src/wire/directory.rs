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

/// All objects that have ids.
#[derive(Debug)]
pub struct Directory {
    /// Which property of which object holds an id that can be expanded, and the kinds of object it can name.
    pub properties: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// How the objects of an id's prefix are loaded.
    pub loaders: &'static [(&'static str, Load)],
}

impl Directory {
    /// A directory of nothing, for parameters that are read outside of a request.
    pub const EMPTY: &'static Directory = &Directory { properties: &[], loaders: &[] };

    /// The kinds of objects that a property of any of `objects` can hold.
    pub fn targets(&self, objects: &[&str], property: &str) -> Vec<&'static str> {
        let of_property =
            self.properties.iter().filter(|(object, name, _)| objects.contains(object) && *name == property);
        of_property.flat_map(|(_, _, kinds)| kinds.iter().copied()).collect()
    }

    /// The objects of these ids, by id: one statement for each kind of id. What is not there is left out.
    ///
    /// # Errors
    /// The database's.
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

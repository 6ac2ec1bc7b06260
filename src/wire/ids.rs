//! Finds the objects that the ids in a request name.

use diesel::QueryResult;

use crate::error::Error;
use crate::types::{Id, Kind};

/// Finds what the id in a path names; a text that is not an id of a `K` names nothing.
///
/// # Errors
/// [`Error::NotFound`].
pub fn in_path<K: Kind, T>(
    text: &str,
    find: impl FnOnce(Id<K>) -> QueryResult<Option<T>>,
) -> Result<T, Error> {
    in_path_read(text, Id::parse(text), find)
}

/// Finds what the id in a path names, for a noun that parses its ids itself.
///
/// # Errors
/// [`Error::NotFound`].
pub fn in_path_read<K: Kind, T>(
    text: &str,
    id: Option<Id<K>>,
    find: impl FnOnce(Id<K>) -> QueryResult<Option<T>>,
) -> Result<T, Error> {
    let found = id.map(find).transpose()?.flatten();
    found.ok_or_else(|| Error::not_found::<K>(text))
}

/// Finds what the id in a parameter names.
///
/// # Errors
/// [`Error::ReferenceNotFound`].
pub fn in_parameter<K: Kind, T>(
    id: Id<K>,
    param: &str,
    find: impl FnOnce(Id<K>) -> QueryResult<Option<T>>,
) -> Result<T, Error> {
    find(id)?.ok_or_else(|| Error::no_such::<K>(&id.to_string(), param))
}

//! What an id in a request names.

use diesel::QueryResult;

use crate::error::Error;
use crate::types::{Id, Kind};

/// What the id in a path names. Whatever is no id of a `K` names nothing.
///
/// # Errors
/// [`Error::NotFound`].
pub fn in_path<K: Kind, T>(
    text: &str,
    find: impl FnOnce(Id<K>) -> QueryResult<Option<T>>,
) -> Result<T, Error> {
    in_path_read(text, Id::parse(text), find)
}

/// As [`in_path`], for a noun that reads its ids in a way of its own.
///
/// # Errors
/// As [`in_path`].
pub fn in_path_read<K: Kind, T>(
    text: &str,
    id: Option<Id<K>>,
    find: impl FnOnce(Id<K>) -> QueryResult<Option<T>>,
) -> Result<T, Error> {
    let found = id.map(find).transpose()?.flatten();
    found.ok_or_else(|| Error::not_found::<K>(text))
}

/// What the id in a parameter names.
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

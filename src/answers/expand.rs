//! Replacing ids by their objects.
//!
//! One statement for each property and level, however many rows a list has: the ids are gathered, loaded together and
//! put back.

use diesel::pg::PgConnection;
use serde_json::Value;

use crate::error::Error;
use crate::types::ids::AccountId;
use crate::wire::directory::Directory;
use crate::wire::expand::{Expand, Tree};

/// Expands an object that stands alone.
///
/// # Errors
/// A property that cannot be expanded.
pub fn expand_one(
    connection: &mut PgConnection,
    account: AccountId,
    expand: &Expand,
    object: &mut Value,
) -> Result<(), Error> {
    if expand.is_empty() {
        return Ok(());
    }
    let kind = object["object"].as_str().unwrap_or_default().to_owned();
    let tree = expand.tree(&kind, None)?;
    fill(connection, account, expand.directory, vec![object], &tree)
}

/// Expands the objects of a list, whose paths begin with `data.`.
///
/// # Errors
/// A property that cannot be expanded.
pub fn expand_list(
    connection: &mut PgConnection,
    account: AccountId,
    expand: &Expand,
    kind: &str,
    objects: &mut [Value],
) -> Result<(), Error> {
    if expand.is_empty() {
        return Ok(());
    }
    let tree = expand.tree(kind, Some("data."))?;
    fill(connection, account, expand.directory, objects.iter_mut().collect(), &tree)
}

/// Expands the properties of `tree` in all of `objects` at once, then what is below them.
fn fill(
    connection: &mut PgConnection,
    account: AccountId,
    directory: &Directory,
    mut objects: Vec<&mut Value>,
    tree: &Tree,
) -> Result<(), Error> {
    for (property, below) in &tree.0 {
        let ids: Vec<&str> = objects.iter().filter_map(|object| object[property.as_str()].as_str()).collect();
        let loaded = directory.load(connection, account, &ids)?;
        let mut next = Vec::new();
        for object in &mut objects {
            let Some(place) = object.get_mut(property.as_str()) else { continue };
            if let Some(target) = place.as_str().and_then(|id| loaded.get(id)) {
                *place = target.clone();
            }
            if place.is_object() {
                next.push(place);
            }
        }
        fill(connection, account, directory, next, below)?;
    }
    Ok(())
}

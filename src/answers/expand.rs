//! Replaces ids with their objects, and adds the lists that an object has only if the caller expands them.
//!
//! Each property and level takes one statement, however many rows a list has: the ids of all rows are collected, and their
//! objects are loaded together.

use std::collections::HashMap;

use diesel::pg::PgConnection;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::types::ids::AccountId;
use crate::wire::directory::{Directory, ELSEWHERE, SUBLIST_ROWS};
use crate::wire::expand::{Expand, Tree};

/// Expands the properties of one object.
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

/// Expands the properties of the objects of a list; the paths begin with `data.`.
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

/// Expands the properties of `tree` in all of `objects` at once, then the levels below them.
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
        for object in &mut objects {
            if let Some(place) = object.get_mut(property.as_str())
                && let Some(target) = place.as_str().and_then(|id| loaded.get(id))
            {
                *place = target.clone();
            }
        }
        add_lists(connection, account, directory, &mut objects, property)?;
        add_nulls(directory, &mut objects, property);
        let mut next = Vec::new();
        for place in objects.iter_mut().filter_map(|object| object.get_mut(property.as_str())) {
            match place {
                Value::Object(_) => next.push(place),
                Value::Array(items) => next.extend(items),
                _ => {}
            }
        }
        fill(connection, account, directory, next, below)?;
    }
    Ok(())
}

/// Adds the list with this name to the objects that have such a list; they have it only if the caller expands it.
fn add_lists(
    connection: &mut PgConnection,
    account: AccountId,
    directory: &Directory,
    objects: &mut [&mut Value],
    property: &str,
) -> Result<(), Error> {
    for list in directory.sublists.iter().filter(|list| list.property == property) {
        let mut owners: Vec<(Uuid, &mut Value)> = Vec::new();
        for object in objects.iter_mut().filter(|object| is_whole(object, list.owner)) {
            owners.extend(uuid_of(object).map(|id| (id, &mut **object)));
        }
        let mut ids: Vec<Uuid> = owners.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut rows: HashMap<Uuid, Vec<Value>> = HashMap::new();
        if let Some(load) = list.load.filter(|_| !ids.is_empty()) {
            for (owner, row) in load(connection, account, &ids)? {
                rows.entry(owner).or_default().push(row);
            }
        }
        for (id, owner) in owners {
            let mut data = rows.get(&id).cloned().unwrap_or_default();
            let has_more = data.len() > SUBLIST_ROWS;
            data.truncate(SUBLIST_ROWS);
            let url = format!("{}/{}/{property}", list.path, owner["id"].as_str().unwrap_or_default());
            owner[property] = json!({ "object": "list", "data": data, "has_more": has_more, "url": url });
        }
    }
    Ok(())
}

/// Adds null to objects that lack the property, if it could only name an object that this service does not have.
fn add_nulls(directory: &Directory, objects: &mut [&mut Value], property: &str) {
    for object in objects.iter_mut() {
        let kind = object["object"].as_str().unwrap_or_default();
        let is_elsewhere =
            is_whole(object, kind) && directory.targets(&[kind], property).contains(&ELSEWHERE);
        if is_elsewhere && let Some(members) = object.as_object_mut() {
            members.entry(property).or_insert(Value::Null);
        }
    }
}

/// Whether an object is of this kind and not deleted; a deleted one has no properties.
fn is_whole(object: &Value, kind: &str) -> bool {
    object["object"] == kind && object["deleted"] != true
}

/// The UUID in an object's id, after the prefix.
fn uuid_of(object: &Value) -> Option<Uuid> {
    Uuid::try_parse(object["id"].as_str()?.split_once('_')?.1).ok()
}

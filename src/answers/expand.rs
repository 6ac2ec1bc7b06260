//! Replacing ids by their objects, and adding the lists that objects have only for those who ask for them.
//!
//! One statement for each property and level, however many rows a list has: the ids are gathered, loaded together and
//! put back.

use std::collections::{BTreeMap, HashMap};

use diesel::pg::PgConnection;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::types::ids::AccountId;
use crate::wire::directory::{Directory, ELSEWHERE, SUBLIST_ROWS, Sublist};
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
        for object in &mut objects {
            if let Some(place) = object.get_mut(property.as_str())
                && let Some(target) = place.as_str().and_then(|id| loaded.get(id))
            {
                *place = target.clone();
            }
        }
        add_missing(connection, account, directory, &mut objects, property)?;
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

/// Adds a property that objects have only for those who expand it: a list, or null for what this service does not have.
fn add_missing(
    connection: &mut PgConnection,
    account: AccountId,
    directory: &Directory,
    objects: &mut [&mut Value],
    property: &str,
) -> Result<(), Error> {
    let mut owners: BTreeMap<&'static str, (&'static Sublist, Vec<Uuid>)> = BTreeMap::new();
    for object in objects.iter_mut() {
        let kind = object["object"].as_str().unwrap_or_default();
        if object["deleted"] == true {
            continue;
        }
        if let Some(list) = directory.sublist(kind, property) {
            owners.entry(list.kind).or_insert((list, Vec::new())).1.extend(uuid_of(object));
        } else if directory.targets(&[kind], property).contains(&ELSEWHERE)
            && let Some(members) = object.as_object_mut()
        {
            members.entry(property).or_insert(Value::Null);
        }
    }
    for (list, mut ids) in owners.into_values() {
        ids.sort_unstable();
        ids.dedup();
        let mut rows: HashMap<Uuid, Vec<Value>> = HashMap::new();
        if let Some(load) = list.load {
            for (owner, row) in load(connection, account, &ids)? {
                rows.entry(owner).or_default().push(row);
            }
        }
        for object in objects.iter_mut() {
            let Some(owner) = uuid_of(object).filter(|id| ids.binary_search(id).is_ok()) else { continue };
            let mut data = rows.get(&owner).cloned().unwrap_or_default();
            let has_more = data.len() > SUBLIST_ROWS;
            data.truncate(SUBLIST_ROWS);
            let url = format!("{}/{}/{property}", list.path, object["id"].as_str().unwrap_or_default());
            object[property] = json!({ "object": "list", "data": data, "has_more": has_more, "url": url });
        }
    }
    Ok(())
}

/// The part of an object's id behind its prefix.
fn uuid_of(object: &Value) -> Option<Uuid> {
    Uuid::try_parse(object["id"].as_str()?.split_once('_')?.1).ok()
}

//! The answers that all nouns use.

mod expand;

use diesel::pg::PgConnection;
use serde_json::{Value, json};

use crate::error::{Error, ErrorBody};
use crate::idempotency::Answer;
use crate::types::{Cause, Page};
use crate::wire::Expand;
use expand::expand_list;
pub use expand::expand_one;

/// Answers 201 with `Location` and the object that this request created; `list` is the path of its kind.
///
/// # Errors
/// A property that cannot be expanded.
pub fn created(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &str,
    mut object: Value,
    expand: &Expand,
) -> Result<Answer, Error> {
    let location = format!("{list}/{}", object["id"].as_str().unwrap_or_default());
    expand_one(connection, cause.account, expand, &mut object)?;
    Ok(Answer::json(201, &object).at(location))
}

/// Answers 200 with an object that existed before.
///
/// # Errors
/// A property that cannot be expanded.
pub fn found(
    connection: &mut PgConnection,
    cause: &Cause,
    mut object: Value,
    expand: &Expand,
) -> Result<Answer, Error> {
    expand_one(connection, cause.account, expand, &mut object)?;
    Ok(Answer::json(200, &object))
}

/// Answers 402 for a declined card; the failed attempt is stored, so this answer is committed and remembered.
pub fn declined(error: &ErrorBody) -> Answer {
    Answer::new(402, error.to_json())
}

/// Answers 200 with a page of a list; `kind` is the kind of its objects, which an empty page does not show.
///
/// # Errors
/// A property that cannot be expanded.
pub fn listed(
    connection: &mut PgConnection,
    cause: &Cause,
    (path, kind): (&str, &'static str),
    page: Page<Value>,
    expand: &Expand,
) -> Result<Answer, Error> {
    let mut objects = page.rows;
    expand_list(connection, cause.account, expand, kind, &mut objects)?;
    Ok(Answer::json(
        200,
        &json!({ "object": "list", "url": path, "has_more": page.has_more, "data": objects }),
    ))
}

//! The answers that nouns have in common.

mod expand;

use diesel::pg::PgConnection;
use serde_json::{Value, json};

use crate::error::{Error, ErrorBody};
use crate::idempotency::Answer;
use crate::types::{Cause, Page};
use crate::wire::Expand;
use expand::expand_list;
pub use expand::expand_one;

/// 201 with `Location`: an object that this request made. `list` is the path of its kind.
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

/// 200: an object that was there before.
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

/// 402: the card was declined. Committed and remembered like the others, since it left what was tried.
pub fn declined(error: &ErrorBody) -> Answer {
    Answer::new(402, error.to_json())
}

/// 200: a page of a list. `kind` is what the list holds, which an empty page cannot tell.
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

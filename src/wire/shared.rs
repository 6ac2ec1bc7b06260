//! Parameters and answers that nouns have in common.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::pg::PgConnection;
use diesel::sql_types::Jsonb;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Expand;
use super::params::{FromParameter, Parameter, Parameters, Params};
use crate::db::jsonb_column;
use crate::error::{Error, ErrorBody};
use crate::idempotency::Answer;
use crate::types::{Cause, Page};

/// 201 with `Location`: an object that this request made. `list` is the path of its kind.
///
/// # Errors
/// A property that cannot be expanded.
pub fn created(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &str,
    mut shape: Value,
    expand: &Expand,
) -> Result<Answer, Error> {
    let location = format!("{list}/{}", shape["id"].as_str().unwrap_or_default());
    expand.one(connection, cause.account, &mut shape)?;
    Ok(Answer::json(201, &shape).at(location))
}

/// 200: an object that was there before.
///
/// # Errors
/// A property that cannot be expanded.
pub fn found(
    connection: &mut PgConnection,
    cause: &Cause,
    mut shape: Value,
    expand: &Expand,
) -> Result<Answer, Error> {
    expand.one(connection, cause.account, &mut shape)?;
    Ok(Answer::json(200, &shape))
}

/// 402: the card was declined. Committed and remembered like the others, since it left what was tried.
pub fn declined(error: &ErrorBody) -> Answer {
    Answer::new(402, error.to_json())
}

/// 200: a page of a list. `object` is what the list holds, which an empty page cannot tell.
///
/// # Errors
/// A property that cannot be expanded.
pub fn listed(
    connection: &mut PgConnection,
    cause: &Cause,
    (path, object): (&str, &'static str),
    page: Page<Value>,
    expand: &Expand,
) -> Result<Answer, Error> {
    let mut shapes = page.rows;
    expand.list(connection, cause.account, object, &mut shapes)?;
    Ok(Answer::json(
        200,
        &json!({ "object": "list", "url": path, "has_more": page.has_more, "data": shapes }),
    ))
}

/// No parameters but `expand`.
pub struct Nothing;

impl Parameters for Nothing {
    fn read(_: &mut Params) -> Result<Self, Error> {
        Ok(Self)
    }
}

/// A postal address. All of it is what the caller says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct Address {
    pub city: Option<String>,
    pub country: Option<String>,
    pub line1: Option<String>,
    pub line2: Option<String>,
    pub postal_code: Option<String>,
    pub state: Option<String>,
}

impl FromParameter for Address {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let address = Self {
            city: params.take("city")?,
            country: params.take("country")?,
            line1: params.take("line1")?,
            line2: params.take("line2")?,
            postal_code: params.take("postal_code")?,
            state: params.take("state")?,
        };
        params.finish()?;
        Ok(address)
    }
}

/// Where goods go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct Shipping {
    pub address: Address,
    pub name: String,
    pub phone: Option<String>,
    /// A charge's shipment has these two, a customer's has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_number: Option<String>,
}

impl FromParameter for Shipping {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let shipping = Self {
            address: params.need("address")?,
            name: params.need("name")?,
            phone: params.take("phone")?,
            carrier: params.take("carrier")?,
            tracking_number: params.take("tracking_number")?,
        };
        params.finish()?;
        Ok(shipping)
    }
}

/// A list of texts in one column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
#[serde(transparent)]
pub struct Texts(pub Vec<String>);

jsonb_column!(Address);
jsonb_column!(Shipping);
jsonb_column!(Texts);

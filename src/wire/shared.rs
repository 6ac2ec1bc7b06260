//! Parameters that several nouns have.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::sql_types::Jsonb;
use serde::{Deserialize, Serialize};

use super::params::{FromParameter, Parameter, Parameters, Params};
use crate::error::Error;
use crate::types::jsonb_column;

/// No parameters; every route takes `expand` in any case.
pub struct Nothing;

impl Parameters for Nothing {
    fn read(_: &mut Params) -> Result<Self, Error> {
        Ok(Self)
    }
}

/// A postal address as the caller sent it, without checks.
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

/// The shipment of goods: recipient, address and carrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct Shipping {
    pub address: Address,
    pub name: String,
    pub phone: Option<String>,
    /// Charges have a carrier and a tracking number; customers have neither.
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

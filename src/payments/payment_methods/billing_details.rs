//! Billing details: who holds a card, as typed with it, and how that changes.

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::sql_types::Jsonb;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::types::jsonb_column;
use crate::wire::params::Email;
use crate::wire::shared::Address;
use crate::wire::{FromParameter, Parameter, Params, Update};

/// Who holds the card, as typed with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct BillingDetails {
    pub address: Address,
    pub email: Option<String>,
    pub name: Option<String>,
    pub phone: Option<String>,
}

/// What changes of the holder.
pub struct BillingDetailsPatch {
    pub address: Update<Address>,
    pub email: Update<String>,
    pub name: Update<String>,
    pub phone: Update<String>,
}

impl BillingDetails {
    pub fn object(&self) -> Value {
        json!({
            "address": self.address,
            "email": self.email,
            "name": self.name,
            "phone": self.phone,
            "tax_id": null,
        })
    }

    /// These details with what `other` has.
    pub fn overlaid(self, other: BillingDetails) -> Self {
        Self {
            address: if other.address == Address::default() { self.address } else { other.address },
            email: other.email.or(self.email),
            name: other.name.or(self.name),
            phone: other.phone.or(self.phone),
        }
    }
}

impl BillingDetailsPatch {
    /// Nothing changes.
    pub const KEEP: Self =
        Self { address: Update::Keep, email: Update::Keep, name: Update::Keep, phone: Update::Keep };

    pub fn applied_to(self, old: BillingDetails) -> BillingDetails {
        BillingDetails {
            address: self.address.applied_to(Some(old.address)).unwrap_or_default(),
            email: self.email.applied_to(old.email),
            name: self.name.applied_to(old.name),
            phone: self.phone.applied_to(old.phone),
        }
    }
}

impl FromParameter for BillingDetails {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let details = Self {
            address: params.take("address")?.unwrap_or_default(),
            email: params.take("email")?.map(|Email(email)| email),
            name: params.take("name")?,
            phone: params.take("phone")?,
        };
        params.finish()?;
        Ok(details)
    }
}

impl FromParameter for BillingDetailsPatch {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let patch = Self {
            address: params.update("address")?,
            email: params.update("email")?.map(|Email(email)| email),
            name: params.update("name")?,
            phone: params.update("phone")?,
        };
        params.finish()?;
        Ok(patch)
    }
}

jsonb_column!(BillingDetails);

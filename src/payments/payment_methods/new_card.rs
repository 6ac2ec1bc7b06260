//! A card as a request brings it along: by the name of a test card, or typed in.

use super::BillingDetails;
use crate::card_network::{TestCard, TypedCard};
use crate::error::Error;
use crate::types::Currency;
use crate::wire::shared::Address;
use crate::wire::{FromParameter, Parameter, Params};

/// A card that a request brings along.
pub enum NewCard {
    /// `tok_visa`, `pm_card_visa`: a test card by its name.
    Named(&'static TestCard),
    /// A number and what belongs to it.
    Typed(TypedCard, Box<BillingDetails>),
}

/// The parameters `card[…]` and `source[…]` of the older API, which has the holder's address in them.
impl FromParameter for NewCard {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let typed = typed(&mut params)?;
        let billing_details = BillingDetails {
            name: params.take("name")?,
            address: Address {
                city: params.take("address_city")?,
                country: params.take("address_country")?,
                line1: params.take("address_line1")?,
                line2: params.take("address_line2")?,
                postal_code: params.take("address_zip")?,
                state: params.take("address_state")?,
            },
            ..BillingDetails::default()
        };
        if params.take::<String>("object")?.is_some_and(|object| object != "card") {
            return Err(Error::invalid("source[object]", "Invalid object: only card is supported."));
        }
        // Which of its networks a card with two brands prefers changes nothing here.
        params.take_without_effect(&["networks"]);
        // It matters to cards that money is paid out to, and there are none of those here.
        params.take::<Currency>("currency")?;
        params.finish()?;
        Ok(NewCard::Typed(typed, Box::new(billing_details)))
    }
}

/// Number, expiry and security code.
///
/// # Errors
/// One is missing or of the wrong type; whether they are right is for the network to say.
pub fn typed(params: &mut Params) -> Result<TypedCard, Error> {
    let Digits(number) = params.need("number")?;
    let ExpiryPart(expiry_month) = params.need("exp_month")?;
    let ExpiryPart(expiry_year) = params.need("exp_year")?;
    let cvc = params.take("cvc")?.map(|Digits(cvc)| cvc);
    Ok(TypedCard { number, expiry_month, expiry_year, cvc })
}

/// A card number or security code. Unlike other texts it is never shown in an error.
struct Digits(String);

impl FromParameter for Digits {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let name = parameter.name.clone();
        parameter.text(64).map(Self).map_err(|_| Error::invalid(&name, format!("Invalid string: {name}")))
    }
}

/// A month or year, which SDKs send as a text or as a number.
pub struct ExpiryPart(pub i64);

impl FromParameter for ExpiryPart {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let is_json = parameter.is_json && !parameter.value.is_string();
        i64::from_parameter(Parameter { is_json, ..parameter }).map(Self)
    }
}

//! Cards. A card comes with a token or as the `source` of a request; it is charged once, or kept by a customer.
//!
//! What is kept of a card is which test card it is, its expiry and its holder; never a number or security code.

mod queries;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgConnection, PgValue};
use diesel::prelude::*;
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::Jsonb;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::auth::Account;
use crate::card_network::{self, TestCard, TypedCard};
use crate::customers::Customer;
use crate::db;
use crate::error::Error;
use crate::schema::payment_methods;
use crate::types::cause::Request;
use crate::types::{Cause, Currency, Id, Kind};
use crate::wire::params::{FromParameter, Parameter, Params};
use crate::wire::shared::Address;

/// A card.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = payment_methods, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct Card {
    pub account_id: Id<Account>,
    pub id: Id<Card>,
    pub request_id: Id<Request>,
    pub customer_id: Option<Id<Customer>>,
    pub test_card: String,
    pub expiry_month: i16,
    pub expiry_year: i16,
    pub cvc_given: bool,
    pub cardholder: Cardholder,
    pub created_at: DateTime<Utc>,
}

impl Kind for Card {
    const PREFIX: &'static str = "card";
    const NOUN: &'static str = "source";
}

/// Who holds the card, as typed with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct Cardholder {
    pub name: Option<String>,
    pub address: Address,
}

/// A card as it was when it was charged; it stands in the charge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct CardSnapshot {
    pub test_card: String,
    pub expiry_month: i16,
    pub expiry_year: i16,
    pub cvc_given: bool,
    pub cardholder: Cardholder,
}

/// A card that a request brings along.
pub enum NewCard {
    /// `tok_visa`: a test card by its name.
    Named(&'static TestCard),
    /// A number and what belongs to it.
    Typed(TypedCard, Box<Cardholder>),
}

/// Keeps a card, for `customer` or for whoever has it at hand.
///
/// # Errors
/// [`Error::CardRefused`] for a number, expiry or security code that no test card has, and, if a customer is to
/// keep it, for a card that always declines.
pub fn create(
    connection: &mut PgConnection,
    cause: &Cause,
    new: NewCard,
    customer: Option<Id<Customer>>,
) -> Result<Card, Error> {
    let card = build(cause, new, customer)?;
    if customer.is_some() {
        card_network::save(card.test_card()?).map_err(Error::CardRefused)?;
    }
    queries::insert(connection, &card)?;
    Ok(card)
}

/// Gives a card that nobody keeps to `customer`.
///
/// # Errors
/// [`Error::CardRefused`] for a card that always declines.
pub fn keep(connection: &mut PgConnection, card: &Card, customer: Id<Customer>) -> Result<(), Error> {
    card_network::save(card.test_card()?).map_err(Error::CardRefused)?;
    queries::set_customer(connection, card.account_id, card.id, customer)?;
    Ok(())
}

/// The card that `customer` keeps under this id.
///
/// # Errors
/// [`Error::ReferenceNotFound`], for `param`.
pub fn kept_by(
    connection: &mut PgConnection,
    cause: &Cause,
    customer: Id<Customer>,
    id: Id<Card>,
    param: &str,
) -> Result<Card, Error> {
    queries::find(connection, cause.account, id)?
        .filter(|card| card.customer_id == Some(customer))
        .ok_or_else(|| Error::no_such::<Card>(&id.to_string(), param))
}

/// The shapes of these cards.
///
/// # Errors
/// What the statement reports.
pub fn shapes(connection: &mut PgConnection, account: Id<Account>, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(Card::shape).collect())
}

fn build(cause: &Cause, new: NewCard, customer_id: Option<Id<Customer>>) -> Result<Card, Error> {
    use chrono::Datelike;
    let (test_card, month, year, cvc_given, cardholder) = match new {
        NewCard::Named(card) => {
            let year = i64::from(cause.now.year()) + 1;
            (card, i64::from(cause.now.month()), year, false, Cardholder::default())
        }
        NewCard::Typed(typed, cardholder) => {
            let card = card_network::accept(&typed, cause.now).map_err(Error::CardRefused)?;
            let year = card_network::full_year(typed.expiry_year);
            (card, typed.expiry_month, year, typed.cvc.is_some(), *cardholder)
        }
    };
    Ok(Card {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        customer_id,
        test_card: test_card.name.to_owned(),
        expiry_month: i16::try_from(month).unwrap_or_default(),
        expiry_year: i16::try_from(year).unwrap_or_default(),
        cvc_given,
        cardholder,
        created_at: cause.now,
    })
}

impl Card {
    /// Which card it is to the network.
    ///
    /// # Errors
    /// [`Error::Internal`] if the row names a card that this version does not know.
    pub fn test_card(&self) -> Result<&'static TestCard, Error> {
        known(&self.test_card)
            .ok_or_else(|| Error::Internal(format!("the card {:?} is not known", self.test_card)))
    }

    pub fn snapshot(&self) -> CardSnapshot {
        CardSnapshot {
            test_card: self.test_card.clone(),
            expiry_month: self.expiry_month,
            expiry_year: self.expiry_year,
            cvc_given: self.cvc_given,
            cardholder: self.cardholder.clone(),
        }
    }

    /// A card as a source of payment.
    pub fn shape(&self) -> Value {
        let address = &self.cardholder.address;
        let face = Face::of(&self.test_card);
        json!({
            "id": self.id,
            "object": "card",
            "address_city": address.city,
            "address_country": address.country,
            "address_line1": address.line1,
            "address_line1_check": address.line1.as_ref().map(|_| "pass"),
            "address_line2": address.line2,
            "address_state": address.state,
            "address_zip": address.postal_code,
            "address_zip_check": address.postal_code.as_ref().map(|_| "pass"),
            "brand": shown_brand(face.brand),
            "country": face.country,
            "customer": self.customer_id,
            "cvc_check": self.cvc_given.then_some("pass"),
            "dynamic_last4": null,
            "exp_month": self.expiry_month,
            "exp_year": self.expiry_year,
            "fingerprint": fingerprint(&self.test_card),
            "funding": face.funding,
            "last4": face.last4,
            "metadata": {},
            "name": self.cardholder.name,
            "regulated_status": "unregulated",
            "tokenization_method": null,
            "wallet": null,
        })
    }
}

impl CardSnapshot {
    /// `payment_method_details` of a charge.
    pub fn details(&self, authorised: i64) -> Value {
        let address = &self.cardholder.address;
        let face = Face::of(&self.test_card);
        json!({
            "type": "card",
            "card": {
                "amount_authorized": authorised,
                "authorization_code": null,
                "brand": face.brand,
                "checks": {
                    "address_line1_check": address.line1.as_ref().map(|_| "pass"),
                    "address_postal_code_check": address.postal_code.as_ref().map(|_| "pass"),
                    "cvc_check": self.cvc_given.then_some("pass"),
                },
                "country": face.country,
                "exp_month": self.expiry_month,
                "exp_year": self.expiry_year,
                "fingerprint": fingerprint(&self.test_card),
                "funding": face.funding,
                "installments": null,
                "last4": face.last4,
                "mandate": null,
                "network": face.brand,
                "network_token": { "used": false },
                "network_transaction_id": null,
                "regulated_status": "unregulated",
                "three_d_secure": null,
                "wallet": null,
            },
        })
    }

    /// `billing_details` of a charge.
    pub fn billing_details(&self) -> Value {
        json!({
            "address": self.cardholder.address,
            "email": null,
            "name": self.cardholder.name,
            "phone": null,
            "tax_id": null,
        })
    }
}

/// What is printed on a card.
struct Face {
    brand: &'static str,
    funding: &'static str,
    country: &'static str,
    last4: &'static str,
}

impl Face {
    /// A card that this version no longer knows still has a face, so that old charges can be shown.
    fn of(name: &str) -> Self {
        match known(name) {
            Some(card) => {
                Self { brand: card.brand, funding: card.funding, country: card.country, last4: card.last4() }
            }
            None => Self { brand: "unknown", funding: "unknown", country: "US", last4: "0000" },
        }
    }
}

fn known(name: &str) -> Option<&'static TestCard> {
    card_network::by_name(name)
}

/// The same for the same card, whoever typed it. It is made of the test card's name, and no number is in it.
fn fingerprint(name: &str) -> String {
    hex::encode(&Sha256::digest(format!("oncepay card {name}"))[..8])
}

/// Sources write brands as people do.
fn shown_brand(brand: &str) -> &str {
    match brand {
        "visa" => "Visa",
        "mastercard" => "MasterCard",
        "amex" => "American Express",
        "discover" => "Discover",
        "diners" => "Diners Club",
        "jcb" => "JCB",
        "unionpay" => "UnionPay",
        _ => "Unknown",
    }
}

/// The parameters `card[…]` and `source[…]`.
impl FromParameter for NewCard {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let Digits(number) = params.need("number")?;
        let ExpiryPart(expiry_month) = params.need("exp_month")?;
        let ExpiryPart(expiry_year) = params.need("exp_year")?;
        let cvc = params.take("cvc")?.map(|Digits(cvc)| cvc);
        let cardholder = Cardholder {
            name: params.take("name")?,
            address: Address {
                city: params.take("address_city")?,
                country: params.take("address_country")?,
                line1: params.take("address_line1")?,
                line2: params.take("address_line2")?,
                postal_code: params.take("address_zip")?,
                state: params.take("address_state")?,
            },
        };
        if params.take::<String>("object")?.is_some_and(|object| object != "card") {
            return Err(Error::invalid("source[object]", "Invalid object: only card is supported."));
        }
        // It matters to cards that money is paid out to, and there are none of those here.
        params.take::<Currency>("currency")?;
        params.finish()?;
        Ok(NewCard::Typed(TypedCard { number, expiry_month, expiry_year, cvc }, Box::new(cardholder)))
    }
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
struct ExpiryPart(i64);

impl FromParameter for ExpiryPart {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let is_json = parameter.is_json && !parameter.value.is_string();
        i64::from_parameter(Parameter { is_json, ..parameter }).map(Self)
    }
}

impl ToSql<Jsonb, Pg> for Cardholder {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        db::write_jsonb(self, out)
    }
}

impl FromSql<Jsonb, Pg> for Cardholder {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        db::read_jsonb(value)
    }
}

impl ToSql<Jsonb, Pg> for CardSnapshot {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        db::write_jsonb(self, out)
    }
}

impl FromSql<Jsonb, Pg> for CardSnapshot {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        db::read_jsonb(value)
    }
}

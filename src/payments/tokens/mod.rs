//! Tokens: a card under a name that can be used once, so that whoever charges it need not see its number.

pub mod handlers;
mod queries;

use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};

use crate::card_network;
use crate::error::Error;
use crate::payments::payment_methods::{self, CardOrToken, CreatePaymentMethod, NewCard, PaymentMethod};
use crate::schema::tokens;
use crate::types::ids::{AccountId, CardId, CustomerId, PaymentMethodId, RequestId, TokenId, kinds};
use crate::types::{Cause, Id};
use crate::wire::ids;
use crate::wire::params::{FromParameter, Parameter};

/// A token.
#[derive(Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = tokens, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct Token {
    pub account_id: AccountId,
    pub id: TokenId,
    pub request_id: RequestId,
    pub payment_method_id: PaymentMethodId,
    pub created_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

/// How a request names the card it means: `source=tok_…`, `source=card_…`, or the card itself.
pub enum Source {
    /// A token that was made before.
    Token(TokenId),
    /// A card that a customer owns.
    Owned(CardId),
    /// A new card: typed, or a test token such as `tok_visa`.
    New(NewCard),
}

/// Makes a token of a card.
///
/// # Errors
/// [`Error::CardRefused`].
pub fn create(
    connection: &mut PgConnection,
    cause: &Cause,
    card: NewCard,
) -> Result<(Token, PaymentMethod), Error> {
    let card = payment_methods::create_from_card(connection, cause, card)?;
    let token = Token {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        payment_method_id: card.id,
        created_at: cause.now,
        used_at: None,
    };
    queries::insert(connection, &token)?;
    Ok((token, card))
}

/// A token and its card.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
) -> Result<(Token, PaymentMethod), Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// The card of a token, which is used up by this.
///
/// # Errors
/// `token_already_used`, or no such token; both for `param`.
pub fn consume(
    connection: &mut PgConnection,
    cause: &Cause,
    id: TokenId,
    param: &str,
) -> Result<PaymentMethod, Error> {
    // The row is changed and not read first: of two requests with one token, the second waits for the first to
    // end and then finds it used.
    if let Some(card) = queries::consume(connection, cause.account, id, cause.now)? {
        return Ok(card);
    }
    match queries::find(connection, cause.account, id)? {
        None => Err(Error::no_such::<kinds::Token>(&id.to_string(), param)),
        Some(_) => Err(Error::ParameterInvalid {
            param: param.to_owned(),
            code: Some("token_already_used"),
            message: format!("You cannot use a token more than once: {id}."),
        }),
    }
}

/// The card that `source` names: a new one, or one that `customer` owns.
///
/// # Errors
/// The source is used up, unknown or another's, or the card is refused.
pub fn card_of(
    connection: &mut PgConnection,
    cause: &Cause,
    source: Source,
    customer: Option<CustomerId>,
) -> Result<PaymentMethod, Error> {
    match (source, customer) {
        (Source::New(card), _) => payment_methods::create_from_card(connection, cause, card),
        (Source::Token(id), _) => consume(connection, cause, id, "source"),
        (Source::Owned(id), Some(customer)) => {
            payment_methods::owned_by(connection, cause, customer, id, "source")
        }
        (Source::Owned(id), None) => Err(Error::invalid(
            "source",
            format!("{id} belongs to a customer: name the customer too, or use a token."),
        )),
    }
}

/// Makes a payment method of a card, or of the card of a token. A token's own card stays with the token.
///
/// # Errors
/// A card that is refused, a token that is used up, a customer who may not keep the card.
pub fn create_method(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreatePaymentMethod,
) -> Result<PaymentMethod, Error> {
    let card = match create.card {
        CardOrToken::Card(card) => payment_methods::build(cause, card)?,
        CardOrToken::Token { id, param } => consume(connection, cause, id, &param)?,
    };
    payment_methods::create(connection, cause, card, create.details)
}

impl Token {
    pub fn object(&self, card: &PaymentMethod) -> Value {
        json!({
            "id": self.id,
            "object": "token",
            "card": card.source_object(),
            "client_ip": null,
            "created": self.created_at.timestamp(),
            "livemode": false,
            "type": "card",
            "used": self.used_at.is_some(),
        })
    }
}

impl FromParameter for Source {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let Some(text) = parameter.value.as_str() else {
            return NewCard::from_parameter(parameter).map(Source::New);
        };
        if let Some(id) = Id::parse(text) {
            return Ok(Source::Token(id));
        }
        if let Some(id) = Id::parse(text) {
            return Ok(Source::Owned(id));
        }
        let named = text.strip_prefix("tok_").and_then(card_network::by_name);
        named
            .map(|card| Source::New(NewCard::Named(card)))
            .ok_or_else(|| Error::no_such::<kinds::Token>(text, &parameter.name))
    }
}

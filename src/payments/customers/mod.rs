//! Customers: who pays, and the cards they keep.

pub mod handlers;
mod methods;
mod queries;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::payments::payment_methods::{self, Named};
use crate::payments::tokens::{self, Source};
use crate::schema::customers;
use crate::types::ids::{AccountId, CardId, CustomerId, PaymentMethodId, RequestId, kinds};
use crate::types::{Cause, EventType, Metadata, MetadataPatch, Page};
use crate::wire::ids;
use crate::wire::params::{Email, patch_metadata};
use crate::wire::shared::{Address, Shipping, Texts};
use crate::wire::{List, Update};
pub use methods::{attach, create_method, detach};

/// A customer. A deleted one stays, for the charges that name it.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = customers, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct Customer {
    pub account_id: AccountId,
    pub id: CustomerId,
    pub request_id: RequestId,
    pub default_source_id: Option<PaymentMethodId>,
    pub default_payment_method_id: Option<PaymentMethodId>,
    pub address: Option<Address>,
    pub description: Option<String>,
    pub email: Option<String>,
    pub name: Option<String>,
    pub phone: Option<String>,
    pub preferred_locales: Texts,
    pub shipping: Option<Shipping>,
    pub metadata: Metadata,
    pub created_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

/// What a customer is to become, when it is made and when it is changed.
pub struct Details {
    pub address: Update<Address>,
    pub description: Update<String>,
    pub email: Update<Email>,
    pub name: Update<String>,
    pub phone: Update<String>,
    pub preferred_locales: Update<Vec<String>>,
    pub shipping: Update<Shipping>,
    pub metadata: MetadataPatch,
    /// A card to keep, which then is the default.
    pub source: Option<Source>,
    /// A card that is kept already.
    pub default_source: Option<CardId>,
    /// A payment method to keep.
    pub payment_method: Option<Named>,
    /// One that is kept, or is to be kept, as the default of `invoice_settings`.
    pub default_payment_method: Update<Named>,
}

/// Which customers a list holds.
#[derive(Debug)]
pub struct Filter {
    pub email: Option<String>,
}

/// Makes a customer.
///
/// # Errors
/// Metadata beyond the limits, or a source that cannot be kept.
pub fn create(connection: &mut PgConnection, cause: &Cause, details: Details) -> Result<Customer, Error> {
    let blank = Customer {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        default_source_id: None,
        default_payment_method_id: None,
        address: None,
        description: None,
        email: None,
        name: None,
        phone: None,
        preferred_locales: Texts::default(),
        shipping: None,
        metadata: Metadata::default(),
        created_at: cause.now,
        deleted_at: None,
    };
    let (mut customer, cards) = blank.changed(details)?;
    let source = match cards.source {
        Some(source) => Some(tokens::card_of(connection, cause, source, None)?),
        None => None,
    };
    let method = match cards.payment_method {
        Some(named) => Some(payment_methods::unused(connection, cause, named, "payment_method")?),
        None => None,
    };
    customer.default_source_id = source.as_ref().map(|card| card.id);
    if let Update::Set(default) = cards.default_payment_method {
        // A test method that is named twice is one method.
        let method = method.as_ref().filter(|_| Some(default) == cards.payment_method);
        let method = method.ok_or_else(|| {
            Error::no_such::<kinds::PaymentMethod>(&default.to_string(), DEFAULT_PAYMENT_METHOD)
        })?;
        customer.default_payment_method_id = Some(method.id);
    }
    // The cards point at their customer and the customer at its defaults: the customer comes in between.
    queries::insert(connection, cause, &customer)?;
    for method in source.into_iter().chain(method) {
        payment_methods::attach_to(connection, cause, method, customer.id)?;
    }
    Ok(customer)
}

/// A customer, deleted or not.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Customer, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// Changes a customer.
///
/// # Errors
/// [`Error::NotFound`], also if it is deleted; metadata beyond the limits; a source that cannot be kept.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    details: Details,
) -> Result<Customer, Error> {
    let previous = lock(connection, cause, id)?;
    let (mut customer, cards) = previous.clone().changed(details)?;
    if let Some(card) = cards.default_source {
        let card = payment_methods::owned_by(connection, cause, customer.id, card, "default_source")?;
        customer.default_source_id = Some(card.id);
    }
    if let Some(source) = cards.source {
        let card = tokens::card_of(connection, cause, source, Some(customer.id))?;
        customer.default_source_id =
            Some(payment_methods::attach_to(connection, cause, card, customer.id)?.id);
    }
    let default = match cards.default_payment_method {
        Update::Keep => Update::Keep,
        Update::Unset => Update::Unset,
        Update::Set(Named::Existing(id)) => {
            payment_methods::owned_by(connection, cause, customer.id, id, DEFAULT_PAYMENT_METHOD)?;
            Update::Set(id)
        }
        Update::Set(test @ Named::Test(_)) => {
            let (named, param) = (test.to_string(), DEFAULT_PAYMENT_METHOD);
            return Err(Error::no_such::<kinds::PaymentMethod>(&named, param));
        }
    };
    customer.default_payment_method_id = default.applied_to(customer.default_payment_method_id);
    queries::update(connection, cause, &previous, &customer, Some(EventType::CustomerUpdated))?;
    Ok(customer)
}

/// Deletes a customer: it can no longer be changed or charged.
///
/// # Errors
/// [`Error::NotFound`], also if it is deleted already.
pub fn delete(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Customer, Error> {
    let previous = lock(connection, cause, id)?;
    let customer = Customer { deleted_at: Some(cause.now), ..previous.clone() };
    queries::update(connection, cause, &previous, &customer, Some(EventType::CustomerDeleted))?;
    Ok(customer)
}

/// A page of customers that are not deleted, the newest first.
///
/// # Errors
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::Customer, Filter>,
) -> Result<Page<Customer>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// The objects of these customers.
///
/// # Errors
/// What the statement reports.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(Customer::object).collect())
}

/// That `param` names a customer, deleted or not.
///
/// A customer that can be charged, as `param` names it.
///
/// # Errors
/// [`Error::ReferenceNotFound`], also if it is deleted.
pub fn active(
    connection: &mut PgConnection,
    cause: &Cause,
    id: CustomerId,
    param: &str,
) -> Result<Customer, Error> {
    ids::in_parameter(id, param, |id| {
        let found = queries::find(connection, cause.account, id)?;
        Ok(found.filter(|customer| customer.deleted_at.is_none()))
    })
}

/// Ends the race of two changes: the second waits, and begins from what the first one left.
fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Customer, Error> {
    ids::in_path(id, |id| {
        Ok(queries::lock(connection, cause.account, id)?.filter(|customer| customer.deleted_at.is_none()))
    })
}

/// What a change says of cards, which are rows of their own.
struct Cards {
    source: Option<Source>,
    default_source: Option<CardId>,
    payment_method: Option<Named>,
    default_payment_method: Update<Named>,
}

/// The parameter that names the default of `invoice_settings`.
const DEFAULT_PAYMENT_METHOD: &str = "invoice_settings[default_payment_method]";

impl Customer {
    /// This customer with `details` applied, but for its cards.
    fn changed(self, details: Details) -> Result<(Self, Cards), Error> {
        let cards = Cards {
            source: details.source,
            default_source: details.default_source,
            payment_method: details.payment_method,
            default_payment_method: details.default_payment_method,
        };
        let customer = Self {
            address: details.address.applied_to(self.address),
            description: details.description.applied_to(self.description),
            email: details.email.map(|Email(email)| email).applied_to(self.email),
            name: details.name.applied_to(self.name),
            phone: details.phone.applied_to(self.phone),
            preferred_locales: details
                .preferred_locales
                .map(Texts)
                .applied_to(Some(self.preferred_locales))
                .unwrap_or_default(),
            shipping: details.shipping.applied_to(self.shipping),
            metadata: patch_metadata(&self.metadata, &details.metadata)?,
            ..self
        };
        Ok((customer, cards))
    }

    pub fn object(&self) -> Value {
        if self.deleted_at.is_some() {
            return json!({ "id": self.id, "object": "customer", "deleted": true });
        }
        self.full_object()
    }

    /// The customer with all its properties, deleted or not: what the event of its deletion shows.
    fn full_object(&self) -> Value {
        json!({
            "id": self.id,
            "object": "customer",
            "address": self.address,
            "balance": 0,
            "created": self.created_at.timestamp(),
            "currency": null,
            "default_source": self.default_source_id.map(PaymentMethodId::renamed::<kinds::Card>),
            "delinquent": false,
            "description": self.description,
            "discount": null,
            "email": self.email,
            // Stripe's prefixes have eight characters; the end of an id is its random part.
            "invoice_prefix": self.id.uuid().simple().to_string()[24..].to_uppercase(),
            "invoice_settings": {
                "custom_fields": null,
                "default_payment_method": self.default_payment_method_id,
                "footer": null,
                "rendering_options": null,
            },
            "livemode": false,
            "metadata": self.metadata,
            "name": self.name,
            "next_invoice_sequence": 1,
            "phone": self.phone,
            "preferred_locales": self.preferred_locales,
            "shipping": self.shipping,
            "tax_exempt": "none",
            "test_clock": null,
        })
    }
}

//! Payment methods: cards, as the only kind there is. One is charged once, or kept by a customer.
//!
//! A card has two names: `pm_…` as a payment method, and `card_…` where the older API calls it a source. What is kept
//! of it is which test card it is, its expiry and its holder; never a number or security code.

mod billing_details;
mod card_snapshot;
pub mod handlers;
mod new_card;
mod queries;

use std::fmt;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::card_network::{self, TestCard};
use crate::error::Error;
use crate::schema::payment_methods;
use crate::types::ids::{AccountId, CardId, CustomerId, PaymentMethodId, RequestId, TokenId, kinds};
use crate::types::{Cause, EventType, Id, Kind, Metadata, MetadataPatch, Page, PageRequest};
use crate::wire::directory::SUBLIST_ROWS;
use crate::wire::params::patch_metadata;
use crate::wire::{List, ids};
pub use billing_details::{BillingDetails, BillingDetailsPatch};
pub use card_snapshot::CardSnapshot;
pub use new_card::NewCard;

/// A payment method.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = payment_methods, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct PaymentMethod {
    pub account_id: AccountId,
    pub id: PaymentMethodId,
    pub request_id: RequestId,
    pub customer_id: Option<CustomerId>,
    pub test_card: String,
    pub expiry_month: i16,
    pub expiry_year: i16,
    pub cvc_given: bool,
    pub billing_details: BillingDetails,
    pub metadata: Metadata,
    pub created_at: DateTime<Utc>,
    pub detached_at: Option<DateTime<Utc>>,
}

/// How a request names the payment method it means: `pm_…`, or the test method `pm_card_visa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Existing(PaymentMethodId),
    Test(&'static TestCard),
}

impl fmt::Display for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Existing(id) => id.fmt(out),
            Named::Test(card) => write!(out, "pm_card_{}", card.name),
        }
    }
}

/// What a payment method is asked to be.
pub struct CreatePaymentMethod {
    pub card: CardOrToken,
    pub details: NewDetails,
}

/// What a new payment method is besides its card.
pub struct NewDetails {
    pub billing_details: BillingDetails,
    pub metadata: Metadata,
    pub customer: Option<CustomerId>,
}

/// The card of a new payment method.
pub enum CardOrToken {
    Card(NewCard),
    /// `param` is where the request names it.
    Token {
        id: TokenId,
        param: String,
    },
}

/// Which payment methods a list holds.
pub struct Filter {
    pub customer: Option<CustomerId>,
}

/// What a payment method is to become.
pub struct UpdatePaymentMethod {
    pub billing_details: BillingDetailsPatch,
    pub expiry_month: Option<i64>,
    pub expiry_year: Option<i64>,
    pub metadata: MetadataPatch,
}

/// Makes a payment method of a card. Whether there is such a customer was checked before.
///
/// # Errors
/// A customer may not keep the card.
pub fn create(
    connection: &mut PgConnection,
    cause: &Cause,
    card: PaymentMethod,
    details: NewDetails,
) -> Result<PaymentMethod, Error> {
    let method = PaymentMethod {
        id: cause.new_id(),
        request_id: cause.request_id,
        customer_id: details.customer,
        billing_details: card.billing_details.overlaid(details.billing_details),
        metadata: details.metadata,
        created_at: cause.now,
        ..card
    };
    if method.customer_id.is_some() {
        card_network::save(method.test_card()?)?;
        queries::insert_attached(connection, cause, &method)?;
    } else {
        queries::insert(connection, &method)?;
    }
    Ok(method)
}

/// A payment method by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<PaymentMethod, Error> {
    ids::in_path_read(id, parse_id(id), |id| queries::find(connection, cause.account, id))
}

/// Changes what may change of a payment method.
///
/// # Errors
/// [`Error::NotFound`], an expiry that is past, or metadata beyond the limits.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    update: UpdatePaymentMethod,
) -> Result<PaymentMethod, Error> {
    // Ends the race of two updates: the second merges its metadata into what the first one left.
    let previous = lock(connection, cause, id)?;
    let month = update.expiry_month.unwrap_or(i64::from(previous.expiry_month));
    let year = card_network::full_year(update.expiry_year.unwrap_or(i64::from(previous.expiry_year)));
    if update.expiry_month.is_some() || update.expiry_year.is_some() {
        card_network::check_expiry(month, year, cause.now)?;
    }
    let method = previous.clone();
    let method = PaymentMethod {
        expiry_month: i16::try_from(month).unwrap_or(method.expiry_month),
        expiry_year: i16::try_from(year).unwrap_or(method.expiry_year),
        billing_details: update.billing_details.applied_to(method.billing_details),
        metadata: patch_metadata(&method.metadata, &update.metadata)?,
        ..method
    };
    queries::update(connection, cause, &previous, &method, EventType::PaymentMethodUpdated)?;
    Ok(method)
}

/// A page of payment methods, the newest first; of one customer, or of all.
///
/// # Errors
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::PaymentMethod, Filter>,
) -> Result<Page<PaymentMethod>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter.customer)
    })
}

/// The payment methods of a customer on this page.
///
/// # Errors
/// The database's.
pub fn of_customer(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    customer: CustomerId,
) -> QueryResult<Vec<PaymentMethod>> {
    queries::list(connection, cause.account, page, Some(customer))
}

/// The objects of these payment methods.
///
/// # Errors
/// What the statement reports.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(PaymentMethod::object).collect())
}

/// The objects of these payment methods as sources.
///
/// # Errors
/// What the statement reports.
pub fn source_objects(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(PaymentMethod::source_object).collect())
}

/// The cards of these customers as sources, for lists within the customers, each with the id of its customer.
///
/// # Errors
/// The database's.
pub fn source_sublists(
    connection: &mut PgConnection,
    account: AccountId,
    customers: &[Uuid],
) -> QueryResult<Vec<(Uuid, Value)>> {
    let methods = queries::newest_of_customers(connection, account, customers, SUBLIST_ROWS as i64 + 1)?;
    let owned = |method: &PaymentMethod| Some((method.customer_id?.uuid(), method.source_object()));
    Ok(methods.iter().filter_map(owned).collect())
}

/// Keeps a card that came along with another request, for whoever has it at hand. It has no event of its own.
///
/// # Errors
/// [`Error::CardRefused`] for a number, expiry or security code that no test card has.
pub fn create_from_card(
    connection: &mut PgConnection,
    cause: &Cause,
    card: NewCard,
) -> Result<PaymentMethod, Error> {
    let method = build(cause, card)?;
    queries::insert(connection, &method)?;
    Ok(method)
}

/// The payment method that a request names, if it may still be used; a test method is made anew.
///
/// # Errors
/// [`Error::ReferenceNotFound`], for `param`; a method that was detached, or that has paid without an owner.
pub fn unused(
    connection: &mut PgConnection,
    cause: &Cause,
    named: Named,
    param: &str,
) -> Result<PaymentMethod, Error> {
    match named {
        Named::Test(card) => create_from_card(connection, cause, NewCard::Named(card)),
        Named::Existing(id) => {
            let method = ids::in_parameter(id, param, |id| find(connection, cause, id))?;
            check_usable(connection, cause, &method)?;
            Ok(method)
        }
    }
}

/// Checks that a payment method may pay: it pays any number of times for its owner, and once without one.
///
/// # Errors
/// `payment_method_unexpected_state`: a customer gave it up, or it has paid without an owner.
pub fn check_usable(
    connection: &mut PgConnection,
    cause: &Cause,
    method: &PaymentMethod,
) -> Result<(), Error> {
    method.check_not_given_up()?;
    if method.customer_id.is_some() || method.request_id == cause.request_id {
        return Ok(());
    }
    // Ends the race of two payments with one method: the second waits here, and then finds what the first one paid.
    queries::lock(connection, cause.account, method.id)?;
    if queries::has_paid(connection, cause.account, method.id)? {
        return Err(Error::not_allowed(
            "payment_method_unexpected_state",
            format!(
                "The payment method {} was used before without being attached to a customer. It may not be used again. To \
                 use a payment method several times, attach it to a customer first.",
                method.id
            ),
        ));
    }
    Ok(())
}

/// A payment method by its id.
///
/// # Errors
/// What the statement reports.
pub fn find(
    connection: &mut PgConnection,
    cause: &Cause,
    id: PaymentMethodId,
) -> QueryResult<Option<PaymentMethod>> {
    queries::find(connection, cause.account, id)
}

/// The card that `customer` keeps under this id, by either of its names.
///
/// # Errors
/// [`Error::ReferenceNotFound`], for `param`.
pub fn owned_by<Name: Kind>(
    connection: &mut PgConnection,
    cause: &Cause,
    customer: CustomerId,
    id: Id<Name>,
    param: &str,
) -> Result<PaymentMethod, Error> {
    ids::in_parameter(id, param, |id| {
        let found = find(connection, cause, id.renamed())?;
        Ok(found.filter(|method| method.customer_id == Some(customer)))
    })
}

/// Gives `method` to `customer`.
///
/// # Errors
/// It is another's, was given up, or always declines.
pub fn attach_to(
    connection: &mut PgConnection,
    cause: &Cause,
    method: PaymentMethod,
    customer: CustomerId,
) -> Result<PaymentMethod, Error> {
    // Ends the race of two customers, and of one with a detachment: the second waits, and then finds it attached or
    // given up. What this request has made nobody else can see.
    let method = match method.request_id == cause.request_id {
        true => method,
        false => lock(connection, cause, &method.id.to_string())?,
    };
    if method.customer_id == Some(customer) {
        return Ok(method);
    }
    if method.customer_id.is_some() {
        return Err(Error::not_allowed(
            "payment_method_unexpected_state",
            "The payment method you provided has already been attached to a customer.",
        ));
    }
    method.check_not_given_up()?;
    card_network::save(method.test_card()?)?;
    let previous = method;
    let method = PaymentMethod { customer_id: Some(customer), ..previous.clone() };
    queries::update(connection, cause, &previous, &method, EventType::PaymentMethodAttached)?;
    Ok(method)
}

/// Either name of a payment method.
pub fn parse_id(text: &str) -> Option<PaymentMethodId> {
    Id::parse(text).or_else(|| CardId::parse(text).map(Id::renamed))
}

/// The card of `pm_card_NAME`.
pub fn test_method(text: &str) -> Option<&'static TestCard> {
    text.strip_prefix("pm_card_").and_then(card_network::by_name)
}

/// Stores that a customer gave a payment method up, for good.
///
/// # Errors
/// The database's.
pub fn store_detached(
    connection: &mut PgConnection,
    cause: &Cause,
    attached: PaymentMethod,
) -> QueryResult<PaymentMethod> {
    let method = PaymentMethod { customer_id: None, detached_at: Some(cause.now), ..attached.clone() };
    queries::update(connection, cause, &attached, &method, EventType::PaymentMethodDetached)?;
    Ok(method)
}

/// Locks a payment method, and reads it.
///
/// # Errors
/// [`Error::NotFound`].
pub fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<PaymentMethod, Error> {
    ids::in_path_read(id, parse_id(id), |id| queries::lock(connection, cause.account, id))
}

/// The payment method of a new card. It is not stored yet.
///
/// # Errors
/// [`Error::CardRefused`] for a number, expiry or security code that no test card has.
pub fn build(cause: &Cause, card: NewCard) -> Result<PaymentMethod, Error> {
    use chrono::Datelike;
    let (test_card, month, year, cvc_given, billing_details) = match card {
        NewCard::Named(card) => {
            let year = i64::from(cause.now.year()) + 1;
            (card, i64::from(cause.now.month()), year, false, BillingDetails::default())
        }
        NewCard::Typed(typed, billing_details) => {
            let card = card_network::accept(&typed, cause.now)?;
            let year = card_network::full_year(typed.expiry_year);
            (card, typed.expiry_month, year, typed.cvc.is_some(), *billing_details)
        }
    };
    Ok(PaymentMethod {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        customer_id: None,
        test_card: test_card.name.to_owned(),
        expiry_month: i16::try_from(month).unwrap_or_default(),
        expiry_year: i16::try_from(year).unwrap_or_default(),
        cvc_given,
        billing_details,
        metadata: Metadata::default(),
        created_at: cause.now,
        detached_at: None,
    })
}

impl PaymentMethod {
    /// Which card it is to the network.
    ///
    /// # Errors
    /// [`Error::Internal`] if the row names a card that this version does not know.
    pub fn test_card(&self) -> Result<&'static TestCard, Error> {
        card_network::by_name(&self.test_card)
            .ok_or_else(|| Error::Internal(format!("the card {:?} is not known", self.test_card)))
    }

    /// Its name as a source.
    pub fn card_id(&self) -> CardId {
        self.id.renamed()
    }

    /// That it may still be used.
    ///
    /// # Errors
    /// `payment_method_unexpected_state` if a customer gave it up.
    pub fn check_not_given_up(&self) -> Result<(), Error> {
        if self.detached_at.is_none() {
            return Ok(());
        }
        Err(Error::not_allowed(
            "payment_method_unexpected_state",
            format!("The payment method {} was detached from a customer. It may not be used again.", self.id),
        ))
    }

    pub fn snapshot(&self) -> CardSnapshot {
        CardSnapshot {
            test_card: self.test_card.clone(),
            expiry_month: self.expiry_month,
            expiry_year: self.expiry_year,
            cvc_given: self.cvc_given,
            billing_details: self.billing_details.clone(),
        }
    }

    pub fn object(&self) -> Value {
        json!({
            "id": self.id,
            "object": "payment_method",
            "allow_redisplay": "unspecified",
            "billing_details": self.billing_details.object(),
            "card": self.snapshot().method_object(),
            "created": self.created_at.timestamp(),
            "customer": self.customer_id,
            "livemode": false,
            "metadata": self.metadata,
            "type": "card",
        })
    }

    /// The object that the older API gives it.
    pub fn source_object(&self) -> Value {
        self.snapshot().source_object(self.card_id(), self.customer_id)
    }
}

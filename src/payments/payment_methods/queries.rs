//! The SQL of payment methods.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::PaymentMethod;
use crate::db::{NewestOfEach, Part, Together, page_of, rows, update_row};
use crate::events;
use crate::schema::{charges, payment_methods};
use crate::types::ids::{AccountId, CustomerId, PaymentMethodId};
use crate::types::{Cause, EventType, PageRequest};

rows!(payment_methods: PaymentMethod, PaymentMethodId => find, lock, find_all);

pub fn insert(connection: &mut PgConnection, method: &PaymentMethod) -> QueryResult<()> {
    diesel::insert_into(payment_methods::table).values(method).execute(connection).map(drop)
}

/// Inserts a payment method that is a customer's from the beginning, with its event.
pub fn insert_attached(
    connection: &mut PgConnection,
    cause: &Cause,
    method: &PaymentMethod,
) -> QueryResult<()> {
    let insert = diesel::insert_into(payment_methods::table).values(method);
    let object = method.object();
    let events = events::of(cause, &[(EventType::PaymentMethodAttached, &object)]);
    Together::new((Part::new("method", insert),), events).execute(connection).map(drop)
}

/// Stores a changed payment method, with its event. `previous` is the method before the change.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &PaymentMethod,
    method: &PaymentMethod,
    event: EventType,
) -> QueryResult<()> {
    let update = update_row(payment_methods::table, method.account_id, method.id, method);
    let (previous, object) = (previous.object(), method.object());
    let events = events::of_change(cause, &previous, &[(event, &object)]);
    Together::new((Part::new("method", update),), events).execute(connection).map(drop)
}

/// The newest methods of each of these customers: at most `limit` of each.
pub fn newest_of_customers(
    connection: &mut PgConnection,
    account: AccountId,
    customers: &[Uuid],
    limit: i64,
) -> QueryResult<Vec<PaymentMethod>> {
    let (columns, table, owner) = (PaymentMethod::as_select(), "payment_methods", "customer_id");
    NewestOfEach { columns, table, owner, account, owners: customers, limit }.load(connection)
}

/// Whether money was held or moved with this payment method. Charges stand above this room, so their table is read here.
pub fn has_paid(connection: &mut PgConnection, account: AccountId, id: PaymentMethodId) -> QueryResult<bool> {
    let paid = charges::table
        .filter(charges::account_id.eq(account))
        .filter(charges::payment_method_id.eq(id))
        .filter(charges::status.ne("failed"));
    diesel::select(diesel::dsl::exists(paid)).get_result(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    customer: Option<CustomerId>,
) -> QueryResult<Vec<PaymentMethod>> {
    let mut query = page_of!(payment_methods: PaymentMethod, account, page);
    if let Some(customer) = customer {
        query = query.filter(payment_methods::customer_id.eq(customer));
    }
    query.load(connection)
}

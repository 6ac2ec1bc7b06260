use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::PaymentMethod;
use crate::db::{NewestOfEach, Part, Together, one_of};
use crate::events;
use crate::schema::payment_methods;
use crate::types::ids::{AccountId, CustomerId, PaymentMethodId};
use crate::types::page::Direction;
use crate::types::{Cause, PageRequest};

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
    let events = events::of(cause, &[("payment_method.attached", &object)]);
    Together::new((Part::new("method", insert),), events).execute(connection).map(drop)
}

/// Stores a changed payment method, with its event. `previous` is the method before the change.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &PaymentMethod,
    method: &PaymentMethod,
    event: &'static str,
) -> QueryResult<()> {
    let update = diesel::update(payment_methods::table.find((method.account_id, method.id))).set((
        payment_methods::customer_id.eq(method.customer_id),
        payment_methods::expiry_month.eq(method.expiry_month),
        payment_methods::expiry_year.eq(method.expiry_year),
        payment_methods::billing_details.eq(&method.billing_details),
        payment_methods::metadata.eq(&method.metadata),
        payment_methods::detached_at.eq(method.detached_at),
    ));
    let (previous, object) = (previous.object(), method.object());
    let events = events::of_change(cause, &previous, &[(event, &object)]);
    Together::new((Part::new("method", update),), events).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: PaymentMethodId,
) -> QueryResult<Option<PaymentMethod>> {
    payment_methods::table.find((account, id)).select(PaymentMethod::as_select()).first(connection).optional()
}

pub fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: PaymentMethodId,
) -> QueryResult<Option<PaymentMethod>> {
    payment_methods::table
        .find((account, id))
        .select(PaymentMethod::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
}

pub fn find_all(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> QueryResult<Vec<PaymentMethod>> {
    payment_methods::table
        .filter(payment_methods::account_id.eq(account))
        .filter(one_of!(payment_methods::id, ids))
        .select(PaymentMethod::as_select())
        .load(connection)
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

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    customer: Option<CustomerId>,
) -> QueryResult<Vec<PaymentMethod>> {
    let mut query = payment_methods::table
        .filter(payment_methods::account_id.eq(account))
        .filter(payment_methods::id.ge(page.low()))
        .filter(payment_methods::id.lt(page.high()))
        .select(PaymentMethod::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(customer) = customer {
        query = query.filter(payment_methods::customer_id.eq(customer));
    }
    match page.direction() {
        Direction::Newest => query.order(payment_methods::id.desc()).load(connection),
        Direction::Oldest => query.order(payment_methods::id.asc()).load(connection),
    }
}

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::Customer;
use crate::auth::Account;
use crate::db::{Part, Together, one_of};
use crate::events;
use crate::schema::customers;
use crate::types::page::From;
use crate::types::{Cause, Id, PageRequest};

/// Inserts a customer with its event.
pub fn insert(connection: &mut PgConnection, cause: &Cause, customer: &Customer) -> QueryResult<()> {
    let insert = diesel::insert_into(customers::table).values(customer);
    let shape = customer.shape();
    let events = events::of(cause, &[("customer.created", &shape)]);
    Together::new((Part::new("customer", insert),), events).execute(connection).map(drop)
}

/// Stores a changed customer with its event.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    customer: &Customer,
    event: Option<&'static str>,
) -> QueryResult<()> {
    let update = diesel::update(customers::table.find((customer.account_id, customer.id))).set(customer);
    let shape = customer.full_shape();
    let events: Vec<_> = event.map(|event| (event, &shape)).into_iter().collect();
    Together::new((Part::new("customer", update),), events::of(cause, &events)).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Customer>,
) -> QueryResult<Option<Customer>> {
    customers::table.find((account, id)).select(Customer::as_select()).first(connection).optional()
}

pub fn lock(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Customer>,
) -> QueryResult<Option<Customer>> {
    customers::table
        .find((account, id))
        .select(Customer::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
}

pub fn find_all(
    connection: &mut PgConnection,
    account: Id<Account>,
    ids: &[Uuid],
) -> QueryResult<Vec<Customer>> {
    customers::table
        .filter(customers::account_id.eq(account))
        .filter(one_of!(customers::id, ids))
        .select(Customer::as_select())
        .load(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: Id<Account>,
    page: &PageRequest,
    email: Option<&str>,
) -> QueryResult<Vec<Customer>> {
    let mut query = customers::table
        .filter(customers::account_id.eq(account))
        .filter(customers::id.ge(page.low()))
        .filter(customers::id.lt(page.high()))
        .filter(customers::deleted_at.is_null())
        .select(Customer::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(email) = email {
        query = query.filter(customers::email.eq(email.to_owned()));
    }
    match page.from() {
        From::Newest => query.order(customers::id.desc()).load(connection),
        From::Oldest => query.order(customers::id.asc()).load(connection),
    }
}

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::{Customer, Filter};
use crate::db::{Part, Together, one_of};
use crate::events;
use crate::schema::customers;
use crate::types::ids::{AccountId, CustomerId};
use crate::types::page::Direction;
use crate::types::{Cause, PageRequest};

/// Inserts a customer with its event.
pub fn insert(connection: &mut PgConnection, cause: &Cause, customer: &Customer) -> QueryResult<()> {
    let insert = diesel::insert_into(customers::table).values(customer);
    let object = customer.object();
    let events = events::of(cause, &[("customer.created", &object)]);
    Together::new((Part::new("customer", insert),), events).execute(connection).map(drop)
}

/// Stores a changed customer with its event. `previous` is the customer before the change.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Customer,
    customer: &Customer,
    event: Option<&'static str>,
) -> QueryResult<()> {
    let update = diesel::update(customers::table.find((customer.account_id, customer.id))).set(customer);
    let (previous, object) = (previous.full_object(), customer.full_object());
    let happened: Vec<_> = event.map(|event| (event, &object)).into_iter().collect();
    let events = events::of_change(cause, &previous, &happened);
    Together::new((Part::new("customer", update),), events).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: CustomerId,
) -> QueryResult<Option<Customer>> {
    customers::table.find((account, id)).select(Customer::as_select()).first(connection).optional()
}

pub fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: CustomerId,
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
    account: AccountId,
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
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Customer>> {
    let mut query = customers::table
        .filter(customers::account_id.eq(account))
        .filter(customers::id.ge(page.low()))
        .filter(customers::id.lt(page.high()))
        .filter(customers::deleted_at.is_null())
        .select(Customer::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(email) = &filter.email {
        query = query.filter(customers::email.eq(email));
    }
    match page.direction() {
        Direction::Newest => query.order(customers::id.desc()).load(connection),
        Direction::Oldest => query.order(customers::id.asc()).load(connection),
    }
}

//! The SQL of customers.

use diesel::pg::PgConnection;
use diesel::prelude::*;

use super::{Customer, Filter};
use crate::db::{Part, Together, page_of, rows, update_row};
use crate::events;
use crate::schema::customers;
use crate::types::ids::{AccountId, CustomerId};
use crate::types::{Cause, EventType, PageRequest};

rows!(customers: Customer, CustomerId => find, lock, find_all);

/// Inserts a customer with its event.
pub fn insert(connection: &mut PgConnection, cause: &Cause, customer: &Customer) -> QueryResult<()> {
    let insert = diesel::insert_into(customers::table).values(customer);
    let object = customer.object();
    let events = events::of(cause, &[(EventType::CustomerCreated, &object)]);
    Together::new((Part::new("customer", insert),), events).execute(connection).map(drop)
}

/// Stores a changed customer with its event. `previous` is the customer before the change.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Customer,
    customer: &Customer,
    event: Option<EventType>,
) -> QueryResult<()> {
    let update = update_row(customers::table, customer.account_id, customer.id, customer);
    let (previous, object) = (previous.full_object(), customer.full_object());
    let happened: Vec<_> = event.map(|event| (event, &object)).into_iter().collect();
    let events = events::of_change(cause, &previous, &happened);
    Together::new((Part::new("customer", update),), events).execute(connection).map(drop)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Customer>> {
    let mut query = page_of!(customers: Customer, account, page).filter(customers::deleted_at.is_null());
    if let Some(email) = &filter.email {
        query = query.filter(customers::email.eq(email));
    }
    query.load(connection)
}

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::Card;
use crate::auth::Account;
use crate::customers::Customer;
use crate::schema::payment_methods;
use crate::types::Id;

pub fn insert(connection: &mut PgConnection, card: &Card) -> QueryResult<()> {
    diesel::insert_into(payment_methods::table).values(card).execute(connection).map(drop)
}

pub fn find(connection: &mut PgConnection, account: Id<Account>, id: Id<Card>) -> QueryResult<Option<Card>> {
    payment_methods::table.find((account, id)).select(Card::as_select()).first(connection).optional()
}

pub fn find_all(connection: &mut PgConnection, account: Id<Account>, ids: &[Uuid]) -> QueryResult<Vec<Card>> {
    payment_methods::table
        .filter(payment_methods::account_id.eq(account))
        .filter(payment_methods::id.eq_any(ids))
        .select(Card::as_select())
        .load(connection)
}

pub fn set_customer(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Card>,
    customer: Id<Customer>,
) -> QueryResult<()> {
    diesel::update(payment_methods::table.find((account, id)))
        .set(payment_methods::customer_id.eq(customer))
        .execute(connection)
        .map(drop)
}

use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use super::{Charge, Filter};
use crate::auth::Account;
use crate::balance::BalanceTransaction;
use crate::db::{Part, Together};
use crate::events;
use crate::schema::{balance_transactions, charges};
use crate::types::page::From;
use crate::types::{Cause, Id, PageRequest};

/// Inserts a charge that moved no money, with its event, which holds `shape`.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    event: &'static str,
    shape: &Value,
) -> QueryResult<()> {
    let insert = diesel::insert_into(charges::table).values(charge);
    let events = events::of(cause, &[(event, shape)]);
    Together::new((Part::new("charge", insert),), events).execute(connection).map(drop)
}

/// Inserts a charge whose money moved, with its row of the ledger and its event, which holds `shape`.
pub fn insert_captured(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    movement: &BalanceTransaction,
    shape: &Value,
) -> QueryResult<()> {
    let insert = diesel::insert_into(charges::table).values(charge);
    let ledger = diesel::insert_into(balance_transactions::table).values(movement);
    let events = events::of(cause, &[("charge.succeeded", shape)]);
    Together::new((Part::new("charge", insert), Part::new("ledger", ledger)), events)
        .execute(connection)
        .map(drop)
}

/// Stores that an authorised charge was captured, with its row of the ledger and its event.
pub fn update_captured(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    movement: &BalanceTransaction,
) -> QueryResult<()> {
    let ledger = diesel::insert_into(balance_transactions::table).values(movement);
    let shape = charge.shape();
    let events = events::of(cause, &[("charge.captured", &shape)]);
    Together::new(
        (Part::new("charge", Capture { charge: charge.clone() }), Part::new("ledger", ledger)),
        events,
    )
    .execute(connection)
    .map(drop)
}

/// Stores what is no money of a charge, with its event.
pub fn update_details(connection: &mut PgConnection, cause: &Cause, charge: &Charge) -> QueryResult<()> {
    let update = diesel::update(charges::table.find((charge.account_id, charge.id))).set((
        charges::customer_id.eq(charge.customer_id),
        charges::description.eq(&charge.description),
        charges::metadata.eq(&charge.metadata),
        charges::receipt_email.eq(&charge.receipt_email),
        charges::shipping.eq(&charge.shipping),
        charges::user_report.eq(&charge.user_report),
    ));
    let shape = charge.shape();
    let events = events::of(cause, &[("charge.updated", &shape)]);
    Together::new((Part::new("charge", update),), events).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Charge>,
) -> QueryResult<Option<Charge>> {
    charges::table.find((account, id)).select(Charge::as_select()).first(connection).optional()
}

/// `FOR NO KEY UPDATE` keeps other changes out, and lets foreign-key checks pass.
pub fn lock(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Charge>,
) -> QueryResult<Option<Charge>> {
    charges::table
        .find((account, id))
        .select(Charge::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
}

pub fn find_all(
    connection: &mut PgConnection,
    account: Id<Account>,
    ids: &[Uuid],
) -> QueryResult<Vec<Charge>> {
    charges::table
        .filter(charges::account_id.eq(account))
        .filter(charges::id.eq_any(ids))
        .select(Charge::as_select())
        .load(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: Id<Account>,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Charge>> {
    let mut query = charges::table
        .filter(charges::account_id.eq(account))
        .filter(charges::id.ge(page.low()))
        .filter(charges::id.lt(page.high()))
        .select(Charge::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(customer) = filter.customer {
        query = query.filter(charges::customer_id.eq(customer));
    }
    match page.from() {
        From::Newest => query.order(charges::id.desc()).load(connection),
        From::Oldest => query.order(charges::id.asc()).load(connection),
    }
}

/// diesel keeps no `UPDATE` prepared of its own accord.
#[derive(QueryId)]
struct Capture {
    charge: Charge,
}

impl QueryFragment<Pg> for Capture {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE charges SET status = ");
        out.push_bind_param::<Text, _>(&self.charge.status)?;
        out.push_sql(", amount_captured = ");
        out.push_bind_param::<BigInt, _>(&self.charge.amount_captured)?;
        out.push_sql(", balance_transaction_id = ");
        out.push_bind_param::<Nullable<SqlUuid>, _>(&self.charge.balance_transaction_id)?;
        out.push_sql(", receipt_email = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.charge.receipt_email)?;
        out.push_sql(", statement_descriptor = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.charge.statement_descriptor)?;
        out.push_sql(", statement_descriptor_suffix = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.charge.statement_descriptor_suffix)?;
        out.push_sql(" WHERE account_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.charge.account_id)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<SqlUuid, _>(&self.charge.id)?;
        Ok(())
    }
}

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::{Filter, Refund};
use crate::db::{NewestOfEach, Part, Together, one_of};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::payments::charges::{self, Charge};
use crate::schema::refunds;
use crate::types::ids::{AccountId, RefundId};
use crate::types::page::Direction;
use crate::types::{Cause, PageRequest};

/// Inserts a refund with its row of the ledger and its events, and takes it off the charge.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    refund: &Refund,
    movement: &BalanceTransaction,
    charge: &Charge,
) -> QueryResult<()> {
    let insert = diesel::insert_into(refunds::table).values(refund);
    let (refund_object, charge_object) = (refund.object(), charge.object());
    let events =
        events::of(cause, &[("refund.created", &refund_object), ("charge.refunded", &charge_object)]);
    let (ledger, charge) = (balance::statements::insert(movement), charges::statements::refund(charge));
    let parts = (Part::new("refund", insert), ledger, charge);
    Together::new(parts, events).execute(connection).map(drop)
}

/// Stores that a refund has arrived, with its event. `previous` is the refund before that.
pub fn update_status(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Refund,
    refund: &Refund,
) -> QueryResult<()> {
    let update = diesel::update(refunds::table.find((refund.account_id, refund.id)))
        .set(refunds::status.eq(refund.status));
    let (previous, object) = (previous.object(), refund.object());
    let events = events::of_change(cause, &previous, &[("refund.updated", &object)]);
    Together::new((Part::new("refund", update),), events).execute(connection).map(drop)
}

/// Stores that a refund has failed, with its row of the ledger and its events, and gives it back to the charge.
/// `previous` is the refund before that.
pub fn update_failed(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Refund,
    refund: &Refund,
    movement: &BalanceTransaction,
    charge: &Charge,
) -> QueryResult<()> {
    let update = diesel::update(refunds::table.find((refund.account_id, refund.id))).set((
        refunds::status.eq(refund.status),
        refunds::failure_balance_transaction_id.eq(refund.failure_balance_transaction_id),
    ));
    let (previous, object) = (previous.object(), refund.object());
    let happened = [("refund.updated", &object), ("refund.failed", &object)];
    let events = events::of_change(cause, &previous, &happened);
    let (ledger, charge) = (balance::statements::insert(movement), charges::statements::refund(charge));
    let parts = (Part::new("refund", update), ledger, charge);
    Together::new(parts, events).execute(connection).map(drop)
}

/// Stores the metadata of a refund, with its event. `previous` is the refund before the change.
pub fn update_metadata(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Refund,
    refund: &Refund,
) -> QueryResult<()> {
    let update = diesel::update(refunds::table.find((refund.account_id, refund.id)))
        .set(refunds::metadata.eq(&refund.metadata));
    let (previous, object) = (previous.object(), refund.object());
    let events = events::of_change(cause, &previous, &[("refund.updated", &object)]);
    Together::new((Part::new("refund", update),), events).execute(connection).map(drop)
}

pub fn find(connection: &mut PgConnection, account: AccountId, id: RefundId) -> QueryResult<Option<Refund>> {
    refunds::table.find((account, id)).select(Refund::as_select()).first(connection).optional()
}

pub fn lock(connection: &mut PgConnection, account: AccountId, id: RefundId) -> QueryResult<Option<Refund>> {
    refunds::table
        .find((account, id))
        .select(Refund::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
}

pub fn find_all(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Refund>> {
    refunds::table
        .filter(refunds::account_id.eq(account))
        .filter(one_of!(refunds::id, ids))
        .select(Refund::as_select())
        .load(connection)
}

/// The newest refunds of each of these charges: at most `limit` of each.
pub fn newest_of_charges(
    connection: &mut PgConnection,
    account: AccountId,
    charges: &[Uuid],
    limit: i64,
) -> QueryResult<Vec<Refund>> {
    let (columns, table, owner) = (Refund::as_select(), "refunds", "charge_id");
    NewestOfEach { columns, table, owner, account, owners: charges, limit }.load(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Refund>> {
    let mut query = refunds::table
        .filter(refunds::account_id.eq(account))
        .filter(refunds::id.ge(page.low()))
        .filter(refunds::id.lt(page.high()))
        .select(Refund::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(charge) = filter.charge {
        query = query.filter(refunds::charge_id.eq(charge));
    }
    if let Some(intent) = filter.payment_intent {
        query = query.filter(refunds::payment_intent_id.eq(intent));
    }
    match page.direction() {
        Direction::Newest => query.order(refunds::id.desc()).load(connection),
        Direction::Oldest => query.order(refunds::id.asc()).load(connection),
    }
}

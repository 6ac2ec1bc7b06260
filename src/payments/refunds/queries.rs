//! The SQL of refunds.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::{Filter, Refund};
use crate::db::{NewestOfEach, Part, Together, page_of, rows, update_row};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::payments::charges::{self, Charge};
use crate::schema::refunds;
use crate::types::ids::{AccountId, RefundId};
use crate::types::{Cause, EventType, PageRequest};

rows!(refunds: Refund, RefundId => find, lock, find_all);

/// Inserts a refund with its events and, if it moves money, its row of the ledger; and changes the charge.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    refund: &Refund,
    movement: Option<&BalanceTransaction>,
    charge: &Charge,
) -> QueryResult<()> {
    let insert = Part::new("refund", diesel::insert_into(refunds::table).values(refund));
    let (refund_object, charge_object) = (refund.object(), charge.object());
    let happened = [(EventType::RefundCreated, &refund_object), (EventType::ChargeRefunded, &charge_object)];
    let (events, charge) = (events::of(cause, &happened), charges::statements::update(charge));
    let Some(movement) = movement else {
        return Together::new((insert, charge), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(movement);
    Together::new((insert, ledger, charge), events).execute(connection).map(drop)
}

/// Stores a changed refund, with its event. `previous` is the refund before the change.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Refund,
    refund: &Refund,
) -> QueryResult<()> {
    let update = update_row(refunds::table, refund.account_id, refund.id, refund);
    let (previous, object) = (previous.object(), refund.object());
    let events = events::of_change(cause, &previous, &[(EventType::RefundUpdated, &object)]);
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
    let update = update_row(refunds::table, refund.account_id, refund.id, refund);
    let (previous, object) = (previous.object(), refund.object());
    let happened = [(EventType::RefundUpdated, &object), (EventType::RefundFailed, &object)];
    let events = events::of_change(cause, &previous, &happened);
    let (ledger, charge) = (balance::statements::insert(movement), charges::statements::update(charge));
    let parts = (Part::new("refund", update), ledger, charge);
    Together::new(parts, events).execute(connection).map(drop)
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
    let mut query = page_of!(refunds: Refund, account, page);
    if let Some(charge) = filter.charge {
        query = query.filter(refunds::charge_id.eq(charge));
    }
    if let Some(intent) = filter.payment_intent {
        query = query.filter(refunds::payment_intent_id.eq(intent));
    }
    query.load(connection)
}

//! The SQL of disputes.

use diesel::pg::PgConnection;
use diesel::prelude::*;

use super::{Dispute, Filter};
use crate::db::{Part, Together, page_of, rows, update_row};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::payments::charges::{self, Charge};
use crate::schema::disputes;
use crate::types::ids::{AccountId, ChargeId, DisputeId};
use crate::types::{Cause, EventType, PageRequest};

rows!(disputes: Dispute, DisputeId => find, lock, find_all);

/// Inserts a dispute with its events and, if it takes the money, its row of the ledger; the charge, which is locked, is marked.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    dispute: &Dispute,
    charge: &Charge,
    withdrawal: Option<&BalanceTransaction>,
) -> QueryResult<()> {
    let insert = Part::new("dispute", diesel::insert_into(disputes::table).values(dispute));
    let mark = charges::statements::update(charge);
    let object = dispute.object(&withdrawal.cloned().into_iter().collect::<Vec<_>>());
    let Some(withdrawal) = withdrawal else {
        let events = events::of(cause, &[(EventType::ChargeDisputeCreated, &object)]);
        return Together::new((insert, mark), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(withdrawal);
    let events = events::of(
        cause,
        &[(EventType::ChargeDisputeCreated, &object), (EventType::ChargeDisputeFundsWithdrawn, &object)],
    );
    Together::new((insert, mark, ledger), events).execute(connection).map(drop)
}

/// Stores a closed dispute with its events and, if it was won, its row of the ledger.
pub fn close(
    connection: &mut PgConnection,
    cause: &Cause,
    dispute: &Dispute,
    reinstated: Option<&BalanceTransaction>,
) -> QueryResult<()> {
    let mut rows = ledger(connection, dispute)?;
    rows.extend(reinstated.cloned());
    let object = dispute.object(&rows);
    let update = update_row(disputes::table, dispute.account_id, dispute.id, dispute);
    let update = Part::new("dispute", update);
    let Some(reinstated) = reinstated else {
        let events = events::of(cause, &[(EventType::ChargeDisputeClosed, &object)]);
        return Together::new((update,), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(reinstated);
    let events = events::of(
        cause,
        &[(EventType::ChargeDisputeClosed, &object), (EventType::ChargeDisputeFundsReinstated, &object)],
    );
    Together::new((update, ledger), events).execute(connection).map(drop)
}

/// Stores what an account said of a dispute, with its event. `previous` is the dispute before that.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Dispute,
    dispute: &Dispute,
) -> QueryResult<()> {
    let ledger = ledger(connection, dispute)?;
    let (previous, object) = (previous.object(&ledger), dispute.object(&ledger));
    let update = update_row(disputes::table, dispute.account_id, dispute.id, dispute);
    let events = events::of_change(cause, &previous, &[(EventType::ChargeDisputeUpdated, &object)]);
    Together::new((Part::new("dispute", update),), events).execute(connection).map(drop)
}

fn ledger(connection: &mut PgConnection, dispute: &Dispute) -> QueryResult<Vec<BalanceTransaction>> {
    balance::of_disputes(connection, dispute.account_id, &[dispute.id])
}

pub fn find_by_charge(
    connection: &mut PgConnection,
    account: AccountId,
    charge: ChargeId,
) -> QueryResult<Option<Dispute>> {
    disputes::table
        .filter(disputes::account_id.eq(account))
        .filter(disputes::charge_id.eq(charge))
        .select(Dispute::as_select())
        .first(connection)
        .optional()
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Dispute>> {
    let mut query = page_of!(disputes: Dispute, account, page);
    if let Some(charge) = filter.charge {
        query = query.filter(disputes::charge_id.eq(charge));
    }
    if let Some(intent) = filter.payment_intent {
        query = query.filter(disputes::payment_intent_id.eq(intent));
    }
    query.load(connection)
}

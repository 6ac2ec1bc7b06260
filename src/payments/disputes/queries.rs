use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::{Dispute, Filter};
use crate::db::{Part, Together, one_of};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::payments::charges::{self};
use crate::schema::disputes;
use crate::types::ids::{AccountId, ChargeId, DisputeId};
use crate::types::page::Direction;
use crate::types::{Cause, PageRequest};

/// Inserts a dispute with its events and, if it takes the money, its row of the ledger; the charge is marked.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    dispute: &Dispute,
    withdrawal: Option<&BalanceTransaction>,
) -> QueryResult<()> {
    let insert = Part::new("dispute", diesel::insert_into(disputes::table).values(dispute));
    let mark = charges::statements::dispute(dispute.account_id, dispute.charge_id);
    let object = dispute.object(&withdrawal.cloned().into_iter().collect::<Vec<_>>());
    let Some(withdrawal) = withdrawal else {
        let events = events::of(cause, &[("charge.dispute.created", &object)]);
        return Together::new((insert, mark), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(withdrawal);
    let events = events::of(
        cause,
        &[("charge.dispute.created", &object), ("charge.dispute.funds_withdrawn", &object)],
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
    let update = diesel::update(disputes::table.find((dispute.account_id, dispute.id)))
        .set(disputes::status.eq(dispute.status));
    let update = Part::new("dispute", update);
    let Some(reinstated) = reinstated else {
        let events = events::of(cause, &[("charge.dispute.closed", &object)]);
        return Together::new((update,), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(reinstated);
    let events = events::of(
        cause,
        &[("charge.dispute.closed", &object), ("charge.dispute.funds_reinstated", &object)],
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
    let update = diesel::update(disputes::table.find((dispute.account_id, dispute.id))).set((
        disputes::status.eq(dispute.status),
        disputes::evidence.eq(&dispute.evidence),
        disputes::submissions.eq(dispute.submissions),
        disputes::metadata.eq(&dispute.metadata),
    ));
    let events = events::of_change(cause, &previous, &[("charge.dispute.updated", &object)]);
    Together::new((Part::new("dispute", update),), events).execute(connection).map(drop)
}

fn ledger(connection: &mut PgConnection, dispute: &Dispute) -> QueryResult<Vec<BalanceTransaction>> {
    balance::of_disputed(connection, dispute.account_id, &[dispute.charge_id])
}

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: DisputeId,
) -> QueryResult<Option<Dispute>> {
    disputes::table.find((account, id)).select(Dispute::as_select()).first(connection).optional()
}

pub fn find_all(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> QueryResult<Vec<Dispute>> {
    disputes::table
        .filter(disputes::account_id.eq(account))
        .filter(one_of!(disputes::id, ids))
        .select(Dispute::as_select())
        .load(connection)
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

pub fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: DisputeId,
) -> QueryResult<Option<Dispute>> {
    disputes::table
        .find((account, id))
        .select(Dispute::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Dispute>> {
    let mut query = disputes::table
        .filter(disputes::account_id.eq(account))
        .filter(disputes::id.ge(page.low()))
        .filter(disputes::id.lt(page.high()))
        .select(Dispute::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(charge) = filter.charge {
        query = query.filter(disputes::charge_id.eq(charge));
    }
    if let Some(intent) = filter.payment_intent {
        query = query.filter(disputes::payment_intent_id.eq(intent));
    }
    match page.direction() {
        Direction::Newest => query.order(disputes::id.desc()).load(connection),
        Direction::Oldest => query.order(disputes::id.asc()).load(connection),
    }
}

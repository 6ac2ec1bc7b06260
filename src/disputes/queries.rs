use diesel::pg::PgConnection;
use diesel::prelude::*;

use super::{Dispute, Filter};
use crate::auth::Account;
use crate::balance::{self, BalanceTransaction};
use crate::charges::{self, Charge};
use crate::db::{Part, Together};
use crate::events;
use crate::schema::disputes;
use crate::types::page::From;
use crate::types::{Cause, Id, PageRequest};

/// Inserts a dispute with its events and, if it takes the money, its row of the ledger; the charge is marked.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    dispute: &Dispute,
    withdrawal: Option<&BalanceTransaction>,
) -> QueryResult<()> {
    let insert = Part::new("dispute", diesel::insert_into(disputes::table).values(dispute));
    let mark = charges::statements::dispute(dispute.account_id, dispute.charge_id);
    let shape = dispute.shape(&withdrawal.cloned().into_iter().collect::<Vec<_>>());
    let Some(withdrawal) = withdrawal else {
        let events = events::of(cause, &[("charge.dispute.created", &shape)]);
        return Together::new((insert, mark), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(withdrawal);
    let events =
        events::of(cause, &[("charge.dispute.created", &shape), ("charge.dispute.funds_withdrawn", &shape)]);
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
    let shape = dispute.shape(&rows);
    let update = diesel::update(disputes::table.find((dispute.account_id, dispute.id)))
        .set(disputes::status.eq(dispute.status));
    let update = Part::new("dispute", update);
    let Some(reinstated) = reinstated else {
        let events = events::of(cause, &[("charge.dispute.closed", &shape)]);
        return Together::new((update,), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(reinstated);
    let events =
        events::of(cause, &[("charge.dispute.closed", &shape), ("charge.dispute.funds_reinstated", &shape)]);
    Together::new((update, ledger), events).execute(connection).map(drop)
}

/// Stores what an account said of a dispute, with its event.
pub fn update(connection: &mut PgConnection, cause: &Cause, dispute: &Dispute) -> QueryResult<()> {
    let shape = dispute.shape(&ledger(connection, dispute)?);
    let update = diesel::update(disputes::table.find((dispute.account_id, dispute.id))).set((
        disputes::status.eq(dispute.status),
        disputes::evidence.eq(&dispute.evidence),
        disputes::submissions.eq(dispute.submissions),
        disputes::metadata.eq(&dispute.metadata),
    ));
    let events = events::of(cause, &[("charge.dispute.updated", &shape)]);
    Together::new((Part::new("dispute", update),), events).execute(connection).map(drop)
}

fn ledger(connection: &mut PgConnection, dispute: &Dispute) -> QueryResult<Vec<BalanceTransaction>> {
    balance::of_disputed(connection, dispute.account_id, &[dispute.charge_id])
}

pub fn find(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Dispute>,
) -> QueryResult<Option<Dispute>> {
    disputes::table.find((account, id)).select(Dispute::as_select()).first(connection).optional()
}

pub fn find_by_charge(
    connection: &mut PgConnection,
    account: Id<Account>,
    charge: Id<Charge>,
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
    account: Id<Account>,
    id: Id<Dispute>,
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
    account: Id<Account>,
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
    match page.from() {
        From::Newest => query.order(disputes::id.desc()).load(connection),
        From::Oldest => query.order(disputes::id.asc()).load(connection),
    }
}

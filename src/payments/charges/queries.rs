//! The SQL of charges.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use serde_json::Value;

use super::{Charge, Filter, Status, statements};
use crate::db::{Together, page_of, rows};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::schema::charges;
use crate::types::ids::{AccountId, ChargeId};
use crate::types::{Cause, EventType, PageRequest};

rows!(charges: Charge, ChargeId => find, lock, find_all);

/// Inserts a charge with its event, which holds `object`, and, if money moved, its row of the ledger.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    movement: Option<&BalanceTransaction>,
    object: &Value,
) -> QueryResult<()> {
    let insert = statements::insert(charge);
    let events = events::of(cause, &[(charge.first_event(), object)]);
    match movement {
        None => Together::new((insert,), events).execute(connection).map(drop),
        Some(movement) => {
            let ledger = balance::statements::insert(movement);
            Together::new((insert, ledger), events).execute(connection).map(drop)
        }
    }
}

/// Stores that an authorised charge was captured, with its row of the ledger and its event.
pub fn update_captured(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    movement: &BalanceTransaction,
) -> QueryResult<()> {
    let object = charge.object();
    let events = events::of(cause, &[(EventType::ChargeCaptured, &object)]);
    let parts = (statements::update(charge), balance::statements::insert(movement));
    Together::new(parts, events).execute(connection).map(drop)
}

/// Stores that a hold was let go because its time was over, with its event.
pub fn update_released(connection: &mut PgConnection, cause: &Cause, charge: &Charge) -> QueryResult<()> {
    let object = charge.object();
    let events = events::of(cause, &[(EventType::ChargeExpired, &object)]);
    Together::new((statements::update(charge),), events).execute(connection).map(drop)
}

/// Locks a hold that began at `before` or earlier and belongs to no intent. One that is being captured is left alone.
pub fn lock_expired(connection: &mut PgConnection, before: DateTime<Utc>) -> QueryResult<Option<Charge>> {
    charges::table
        .filter(charges::status.eq(Status::Authorised))
        .filter(charges::payment_intent_id.is_null())
        .filter(charges::created_at.le(before))
        .select(Charge::as_select())
        .order(charges::created_at.asc())
        .for_no_key_update()
        .skip_locked()
        .first(connection)
        .optional()
}

/// Stores what is no money of a charge, with its event. `previous` is the charge before the change.
pub fn update_details(
    connection: &mut PgConnection,
    cause: &Cause,
    previous: &Charge,
    charge: &Charge,
) -> QueryResult<()> {
    let (previous, object) = (previous.object(), charge.object());
    let events = events::of_change(cause, &previous, &[(EventType::ChargeUpdated, &object)]);
    Together::new((statements::update(charge),), events).execute(connection).map(drop)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Charge>> {
    let mut query = page_of!(charges: Charge, account, page);
    if let Some(customer) = filter.customer {
        query = query.filter(charges::customer_id.eq(customer));
    }
    if let Some(intent) = filter.payment_intent {
        query = query.filter(charges::payment_intent_id.eq(intent));
    }
    query.load(connection)
}

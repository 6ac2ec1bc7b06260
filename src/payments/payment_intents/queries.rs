//! The SQL of payment intents.

use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{QueryFragment, QueryId};
use serde_json::Value;

use super::{Filter, PaymentIntent, Status};
use crate::db::{Part, Together, page_of, rows, update_row};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::payments::charges::{self, Charge};
use crate::schema::{charges as charge_rows, payment_intents};
use crate::types::ids::{AccountId, PaymentIntentId};
use crate::types::{Cause, EventType, PageRequest};

rows!(payment_intents: PaymentIntent, PaymentIntentId => find, lock, find_all);

/// A charge that is new with the intent's change and, if money moved, its row of the ledger.
pub type Money<'a> = (&'a Charge, Option<&'a BalanceTransaction>);

/// What happened, in order.
type Happened = Vec<(EventType, Value)>;

/// Inserts an intent with what came of its confirmation and all events, in one statement.
pub fn insert(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
    money: Option<Money<'_>>,
    happened: Happened,
) -> QueryResult<()> {
    let insert = diesel::insert_into(payment_intents::table).values(intent);
    write(connection, cause, Part::new("intent", insert), money, happened)
}

/// Stores a changed intent with what came of its confirmation and all events, in one statement.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
    money: Option<Money<'_>>,
    happened: Happened,
) -> QueryResult<()> {
    write(connection, cause, statement(intent), money, happened)
}

fn write<Statement: QueryFragment<Pg> + QueryId>(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: Part<Statement>,
    money: Option<Money<'_>>,
    happened: Happened,
) -> QueryResult<()> {
    let happened: Vec<(EventType, &Value)> =
        happened.iter().map(|(event, object)| (*event, object)).collect();
    let events = events::of(cause, &happened);
    let Some((charge, movement)) = money else {
        return Together::new((intent,), events).execute(connection).map(drop);
    };
    let charge = charges::statements::insert(charge);
    let Some(movement) = movement else {
        return Together::new((intent, charge), events).execute(connection).map(drop);
    };
    let ledger = balance::statements::insert(movement);
    Together::new((intent, charge, ledger), events).execute(connection).map(drop)
}

/// Stores that the held amount was captured.
pub fn update_captured(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
    charge: &Charge,
    movement: &BalanceTransaction,
) -> QueryResult<()> {
    let (charge_object, intent_object) = (charge.object(), intent.object());
    let happened =
        [(EventType::ChargeCaptured, &charge_object), (EventType::PaymentIntentSucceeded, &intent_object)];
    let events = events::of(cause, &happened);
    let parts =
        (statement(intent), charges::statements::update(charge), balance::statements::insert(movement));
    Together::new(parts, events).execute(connection).map(drop)
}

/// Stores that the intent was canceled and its hold let go. `of_charge`: what is to be told of the charge.
pub fn update_released(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
    charge: &Charge,
    of_charge: &[EventType],
) -> QueryResult<()> {
    let (charge_object, intent_object) = (charge.object(), intent.object());
    let told = of_charge.iter().map(|event| (*event, &charge_object));
    let happened: Vec<_> = told.chain([(EventType::PaymentIntentCanceled, &intent_object)]).collect();
    let parts = (statement(intent), charges::statements::update(charge));
    Together::new(parts, events::of(cause, &happened)).execute(connection).map(drop)
}

/// Locks an intent whose hold began at `before` or earlier. One that is just being captured is left alone.
pub fn lock_expired(
    connection: &mut PgConnection,
    before: DateTime<Utc>,
) -> QueryResult<Option<PaymentIntent>> {
    let expired = charge_rows::table
        .filter(charge_rows::status.eq(charges::Status::Authorised))
        .filter(charge_rows::payment_intent_id.eq(payment_intents::id.nullable()))
        .filter(charge_rows::account_id.eq(payment_intents::account_id))
        .filter(charge_rows::created_at.le(before));
    payment_intents::table
        .filter(payment_intents::status.eq(Status::RequiresCapture))
        .filter(diesel::dsl::exists(expired))
        .select(PaymentIntent::as_select())
        .for_no_key_update()
        .skip_locked()
        .first(connection)
        .optional()
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<PaymentIntent>> {
    let mut query = page_of!(payment_intents: PaymentIntent, account, page);
    if let Some(customer) = filter.customer {
        query = query.filter(payment_intents::customer_id.eq(customer));
    }
    query.load(connection)
}

fn statement(intent: &PaymentIntent) -> Part<impl QueryFragment<Pg> + QueryId> {
    Part::new("intent", update_row(payment_intents::table, intent.account_id, intent.id, intent))
}

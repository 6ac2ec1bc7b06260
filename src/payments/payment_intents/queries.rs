use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use super::{Filter, PaymentIntent, Status};
use crate::db::{Part, Together, one_of};
use crate::events;
use crate::payments::balance::{self, BalanceTransaction};
use crate::payments::charges::{self, Charge};
use crate::schema::{charges as charge_rows, payment_intents};
use crate::types::ids::{AccountId, PaymentIntentId};
use crate::types::page::Direction;
use crate::types::{Cause, PageRequest};

/// A charge that is new with the intent's change and, if money moved, its row of the ledger.
pub type Money<'a> = (&'a Charge, Option<&'a BalanceTransaction>);

/// What happened, in order.
type Happened = Vec<(&'static str, Value)>;

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
    write(connection, cause, Part::new("intent", Change::new(intent)), money, happened)
}

fn write<Statement: QueryFragment<Pg> + QueryId>(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: Part<Statement>,
    money: Option<Money<'_>>,
    happened: Happened,
) -> QueryResult<()> {
    let happened: Vec<(&'static str, &Value)> =
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
    let happened = [("charge.captured", &charge_object), ("payment_intent.succeeded", &intent_object)];
    let events = events::of(cause, &happened);
    let parts = (
        Part::new("intent", Change::new(intent)),
        charges::statements::capture(charge),
        balance::statements::insert(movement),
    );
    Together::new(parts, events).execute(connection).map(drop)
}

/// Stores that the intent was canceled and its hold let go. `of_charge`: what is to be told of the charge.
pub fn update_released(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
    charge: &Charge,
    of_charge: &[&'static str],
) -> QueryResult<()> {
    let (charge_object, intent_object) = (charge.object(), intent.object());
    let told = of_charge.iter().map(|event| (*event, &charge_object));
    let happened: Vec<_> = told.chain([("payment_intent.canceled", &intent_object)]).collect();
    let parts = (Part::new("intent", Change::new(intent)), charges::statements::release(charge));
    Together::new(parts, events::of(cause, &happened)).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: PaymentIntentId,
) -> QueryResult<Option<PaymentIntent>> {
    payment_intents::table.find((account, id)).select(PaymentIntent::as_select()).first(connection).optional()
}

pub fn lock(
    connection: &mut PgConnection,
    account: AccountId,
    id: PaymentIntentId,
) -> QueryResult<Option<PaymentIntent>> {
    payment_intents::table
        .find((account, id))
        .select(PaymentIntent::as_select())
        .for_no_key_update()
        .first(connection)
        .optional()
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

pub fn find_all(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> QueryResult<Vec<PaymentIntent>> {
    payment_intents::table
        .filter(payment_intents::account_id.eq(account))
        .filter(one_of!(payment_intents::id, ids))
        .select(PaymentIntent::as_select())
        .load(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<PaymentIntent>> {
    let mut query = payment_intents::table
        .filter(payment_intents::account_id.eq(account))
        .filter(payment_intents::id.ge(page.low()))
        .filter(payment_intents::id.lt(page.high()))
        .select(PaymentIntent::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    if let Some(customer) = filter.customer {
        query = query.filter(payment_intents::customer_id.eq(customer));
    }
    match page.direction() {
        Direction::Newest => query.order(payment_intents::id.desc()).load(connection),
        Direction::Oldest => query.order(payment_intents::id.asc()).load(connection),
    }
}

/// The `UPDATE` of all that may change. diesel keeps none prepared of its own accord.
#[derive(QueryId)]
struct Change {
    intent: PaymentIntent,
}

impl Change {
    fn new(intent: &PaymentIntent) -> Self {
        Self { intent: intent.clone() }
    }
}

impl QueryFragment<Pg> for Change {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let intent = &self.intent;
        out.push_sql("UPDATE payment_intents SET status = ");
        out.push_bind_param::<Text, _>(&intent.status)?;
        out.push_sql(", amount = ");
        out.push_bind_param::<BigInt, _>(&intent.amount)?;
        out.push_sql(", amount_received = ");
        out.push_bind_param::<BigInt, _>(&intent.amount_received)?;
        out.push_sql(", currency = ");
        out.push_bind_param::<Text, _>(&intent.currency)?;
        out.push_sql(", customer_id = ");
        out.push_bind_param::<Nullable<SqlUuid>, _>(&intent.customer_id)?;
        out.push_sql(", payment_method_id = ");
        out.push_bind_param::<Nullable<SqlUuid>, _>(&intent.payment_method_id)?;
        out.push_sql(", latest_charge_id = ");
        out.push_bind_param::<Nullable<SqlUuid>, _>(&intent.latest_charge_id)?;
        out.push_sql(", capture_method = ");
        out.push_bind_param::<Text, _>(&intent.capture_method)?;
        out.push_sql(", setup_future_usage = ");
        out.push_bind_param::<Nullable<Text>, _>(&intent.setup_future_usage)?;
        out.push_sql(", payment_method_options = ");
        out.push_bind_param::<Jsonb, _>(&intent.payment_method_options)?;
        out.push_sql(", next_action = ");
        out.push_bind_param::<Nullable<Jsonb>, _>(&intent.next_action)?;
        out.push_sql(", last_payment_error = ");
        out.push_bind_param::<Nullable<Jsonb>, _>(&intent.last_payment_error)?;
        out.push_sql(", description = ");
        out.push_bind_param::<Nullable<Text>, _>(&intent.description)?;
        out.push_sql(", metadata = ");
        out.push_bind_param::<Jsonb, _>(&intent.metadata)?;
        out.push_sql(", receipt_email = ");
        out.push_bind_param::<Nullable<Text>, _>(&intent.receipt_email)?;
        out.push_sql(", shipping = ");
        out.push_bind_param::<Nullable<Jsonb>, _>(&intent.shipping)?;
        out.push_sql(", statement_descriptor = ");
        out.push_bind_param::<Nullable<Text>, _>(&intent.statement_descriptor)?;
        out.push_sql(", statement_descriptor_suffix = ");
        out.push_bind_param::<Nullable<Text>, _>(&intent.statement_descriptor_suffix)?;
        out.push_sql(", cancellation_reason = ");
        out.push_bind_param::<Nullable<Text>, _>(&intent.cancellation_reason)?;
        out.push_sql(", canceled_at = ");
        out.push_bind_param::<Nullable<Timestamptz>, _>(&intent.canceled_at)?;
        out.push_sql(" WHERE account_id = ");
        out.push_bind_param::<SqlUuid, _>(&intent.account_id)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<SqlUuid, _>(&intent.id)?;
        Ok(())
    }
}

//! The SQL of webhook endpoints, deliveries and attempts.

use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Int2, Int4, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Status, WebhookEndpoint};
use crate::db::{one_of, page_of, rows, update_row};
use crate::schema::{accounts, webhook_attempts, webhook_deliveries, webhook_endpoints};
use crate::types::ids::{AccountId, EventId, WebhookEndpointId};
use crate::types::{Cause, PageRequest};

rows!(webhook_endpoints: WebhookEndpoint, WebhookEndpointId => find, lock, find_all);

/// An event on its way to an endpoint.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = webhook_deliveries, check_for_backend(Pg))]
pub struct Delivery {
    pub endpoint_id: WebhookEndpointId,
    pub status: Status,
    pub next_attempt_at: DateTime<Utc>,
}

/// One time that it was sent.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = webhook_attempts, check_for_backend(Pg))]
pub struct Attempt {
    pub account_id: AccountId,
    pub event_id: EventId,
    pub endpoint_id: WebhookEndpointId,
    pub id: Uuid,
    pub status_code: Option<i16>,
    pub error: Option<String>,
    pub latency_ms: i32,
    pub answer: String,
    pub created_at: DateTime<Utc>,
}

impl Attempt {
    pub fn object(&self) -> Value {
        json!({
            "answer": self.answer,
            "created": self.created_at.timestamp(),
            "error": self.error,
            "latency_ms": self.latency_ms,
            "status_code": self.status_code,
        })
    }
}

/// A delivery that this worker has leased, with all that sending it takes.
#[derive(Debug, QueryableByName)]
pub struct Leased {
    #[diesel(sql_type = SqlUuid)]
    pub account_id: AccountId,
    #[diesel(sql_type = SqlUuid)]
    pub event_id: EventId,
    #[diesel(sql_type = SqlUuid)]
    pub endpoint_id: WebhookEndpointId,
    /// This attempt's number, from 1.
    #[diesel(sql_type = Int4)]
    pub attempts: i32,
    #[diesel(sql_type = Text)]
    pub payload: String,
}

pub fn insert(connection: &mut PgConnection, endpoint: &WebhookEndpoint) -> QueryResult<()> {
    diesel::insert_into(webhook_endpoints::table).values(endpoint).execute(connection).map(drop)
}

pub fn update(connection: &mut PgConnection, endpoint: &WebhookEndpoint) -> QueryResult<()> {
    update_row(webhook_endpoints::table, endpoint.account_id, endpoint.id, endpoint)
        .execute(connection)
        .map(drop)
}

/// Whether an account has an endpoint with this URL.
pub fn has_url(connection: &mut PgConnection, account: AccountId, url: &str) -> QueryResult<bool> {
    let with_url = webhook_endpoints::table
        .filter(webhook_endpoints::account_id.eq(account))
        .filter(webhook_endpoints::url.eq(url))
        .filter(webhook_endpoints::deleted_at.is_null());
    diesel::select(diesel::dsl::exists(with_url)).get_result(connection)
}

/// Locks what an account's endpoints are counted by.
pub fn lock_account(connection: &mut PgConnection, account: AccountId) -> QueryResult<()> {
    accounts::table.find(account).select(accounts::id).for_no_key_update().execute(connection).map(drop)
}

pub fn count(connection: &mut PgConnection, account: AccountId) -> QueryResult<i64> {
    webhook_endpoints::table
        .filter(webhook_endpoints::account_id.eq(account))
        .filter(webhook_endpoints::deleted_at.is_null())
        .count()
        .get_result(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
) -> QueryResult<Vec<WebhookEndpoint>> {
    page_of!(webhook_endpoints: WebhookEndpoint, account, page)
        .filter(webhook_endpoints::deleted_at.is_null())
        .load(connection)
}

pub fn deliveries(
    connection: &mut PgConnection,
    account: AccountId,
    event: EventId,
) -> QueryResult<Vec<Delivery>> {
    webhook_deliveries::table
        .filter(webhook_deliveries::account_id.eq(account))
        .filter(webhook_deliveries::event_id.eq(event))
        .order(webhook_deliveries::endpoint_id.asc())
        .select(Delivery::as_select())
        .load(connection)
}

pub fn attempts(
    connection: &mut PgConnection,
    account: AccountId,
    event: EventId,
) -> QueryResult<Vec<Attempt>> {
    webhook_attempts::table
        .filter(webhook_attempts::account_id.eq(account))
        .filter(webhook_attempts::event_id.eq(event))
        .order(webhook_attempts::id.asc())
        .select(Attempt::as_select())
        .load(connection)
}

pub fn pending(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[EventId],
) -> QueryResult<Vec<(EventId, i64)>> {
    webhook_deliveries::table
        .filter(webhook_deliveries::account_id.eq(account))
        .filter(one_of!(webhook_deliveries::event_id, events))
        .filter(webhook_deliveries::status.eq(Status::Pending))
        .group_by(webhook_deliveries::event_id)
        .select((webhook_deliveries::event_id, diesel::dsl::count_star()))
        .load(connection)
}

/// Cancels what is still to be delivered to an endpoint.
pub fn cancel_deliveries(connection: &mut PgConnection, endpoint: &WebhookEndpoint) -> QueryResult<()> {
    diesel::update(
        webhook_deliveries::table
            .filter(webhook_deliveries::account_id.eq(endpoint.account_id))
            .filter(webhook_deliveries::endpoint_id.eq(endpoint.id))
            .filter(webhook_deliveries::status.eq(Status::Pending)),
    )
    .set(webhook_deliveries::status.eq(Status::Canceled))
    .execute(connection)
    .map(drop)
}

/// Makes the deliveries of an event due, from the start of the schedule.
pub fn send_again(
    connection: &mut PgConnection,
    cause: &Cause,
    event: EventId,
    endpoint: Option<WebhookEndpointId>,
) -> QueryResult<()> {
    diesel::sql_query(
        "INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, status, attempts, next_attempt_at) \
         SELECT e.account_id, e.id, w.id, 'pending', 0, $3 \
         FROM events e JOIN webhook_endpoints w ON w.account_id = e.account_id \
             AND NOT w.disabled AND w.deleted_at IS NULL \
             AND (w.id = $4 OR ($4 IS NULL AND w.enabled_events ?| ARRAY['*', e.type])) \
         WHERE e.account_id = $1 AND e.id = $2 \
         ON CONFLICT (account_id, event_id, endpoint_id) DO UPDATE \
         SET status = 'pending', attempts = 0, next_attempt_at = excluded.next_attempt_at, leased_until = NULL",
    )
    .bind::<SqlUuid, _>(cause.account)
    .bind::<SqlUuid, _>(event)
    .bind::<Timestamptz, _>(cause.now)
    .bind::<Nullable<SqlUuid>, _>(endpoint)
    .execute(connection)
    .map(drop)
}

/// Leases what is due: at most `per_endpoint` for each endpoint, or what `room` says if it speaks of the endpoint; so a
/// slow one has its share and no more. `SKIP LOCKED` keeps several workers out of each other's way.
pub fn lease(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
    per_endpoint: i64,
    room: &[(WebhookEndpointId, i64)],
    most: i64,
) -> QueryResult<Vec<Leased>> {
    let (ids, rooms): (Vec<Uuid>, Vec<i64>) = room.iter().map(|(id, room)| (id.uuid(), *room)).unzip();
    // The roomiest first: where there is not enough for all, it goes to those that have least.
    diesel::sql_query(
        "WITH due AS ( \
             SELECT d.account_id, d.event_id, d.endpoint_id FROM ( \
                 SELECT w.account_id, w.id, greatest(0, coalesce(known.room, $3)) AS room FROM webhook_endpoints w \
                 LEFT JOIN unnest($4::uuid[], $5::bigint[]) AS known (id, room) ON known.id = w.id \
                 WHERE NOT w.disabled AND w.deleted_at IS NULL ORDER BY room DESC) AS w \
             CROSS JOIN LATERAL ( \
                 SELECT d.account_id, d.event_id, d.endpoint_id FROM webhook_deliveries d \
                 WHERE d.account_id = w.account_id AND d.endpoint_id = w.id AND d.status = 'pending' \
                   AND d.next_attempt_at <= $1 AND (d.leased_until IS NULL OR d.leased_until <= $1) \
                 ORDER BY d.next_attempt_at LIMIT w.room \
                 FOR UPDATE SKIP LOCKED) AS d \
             LIMIT $6) \
         UPDATE webhook_deliveries d SET leased_until = $2, attempts = d.attempts + 1 FROM due, events e \
         WHERE (d.account_id, d.event_id, d.endpoint_id) = (due.account_id, due.event_id, due.endpoint_id) \
           AND (e.account_id, e.id) = (due.account_id, due.event_id) \
         RETURNING d.account_id, d.event_id, d.endpoint_id, d.attempts, e.payload::text AS payload",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<Timestamptz, _>(until)
    .bind::<BigInt, _>(per_endpoint)
    .bind::<Array<SqlUuid>, _>(ids)
    .bind::<Array<BigInt>, _>(rooms)
    .bind::<BigInt, _>(most)
    .load(connection)
}

/// Makes due what is to be sent later than the schedule allows, and says how much that was. `lease_end` is the end of a
/// lease that begins now: none can end later.
pub fn correct_times(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
    lease_end: DateTime<Utc>,
    pauses: &[u64],
) -> QueryResult<usize> {
    let pauses: Vec<f64> = pauses.iter().map(|pause| *pause as f64).collect();
    diesel::sql_query(
        r#"
        UPDATE webhook_deliveries
        SET next_attempt_at = least(next_attempt_at, $1), leased_until = least(leased_until, $2)
        WHERE status = 'pending'
          AND (leased_until > $2
               -- No attempt, no pause; after the n-th, the n-th pause.
               OR next_attempt_at > $1 + make_interval(secs => coalesce(($3::float8[])[attempts], 0)))
        "#,
    )
    .bind::<Timestamptz, _>(now)
    .bind::<Timestamptz, _>(lease_end)
    .bind::<Array<diesel::sql_types::Double>, _>(pauses)
    .execute(connection)
}

/// Whether there is any endpoint to which something may be sent.
pub fn has_endpoints(connection: &mut PgConnection) -> QueryResult<bool> {
    let enabled = webhook_endpoints::table
        .filter(diesel::dsl::not(webhook_endpoints::disabled))
        .filter(webhook_endpoints::deleted_at.is_null());
    diesel::select(diesel::dsl::exists(enabled)).get_result(connection)
}

/// The endpoints of all accounts, but for those that are deleted.
pub fn all(connection: &mut PgConnection) -> QueryResult<Vec<WebhookEndpoint>> {
    webhook_endpoints::table
        .filter(webhook_endpoints::deleted_at.is_null())
        .select(WebhookEndpoint::as_select())
        .load(connection)
}

/// Stores secrets that were sealed anew, unless another has changed them since `endpoint` was read.
pub fn replace_secrets(
    connection: &mut PgConnection,
    endpoint: &WebhookEndpoint,
    newest: Option<Vec<u8>>,
    previous: Option<Vec<u8>>,
) -> QueryResult<usize> {
    let as_it_was = webhook_endpoints::table
        .find((endpoint.account_id, endpoint.id))
        .filter(webhook_endpoints::sealed_secret.eq(&endpoint.sealed_secret));
    diesel::update(as_it_was)
        .set((
            webhook_endpoints::sealed_secret.eq(newest.as_ref().unwrap_or(&endpoint.sealed_secret)),
            webhook_endpoints::previous_sealed_secret
                .eq(previous.as_ref().or(endpoint.previous_sealed_secret.as_ref())),
        ))
        .execute(connection)
}

/// Cancels deliveries to endpoints that are disabled or deleted: an effect that committed just then may have written
/// one. It would not be sent, but be pending for ever.
pub fn cancel_stray(connection: &mut PgConnection) -> QueryResult<usize> {
    diesel::sql_query(
        "UPDATE webhook_deliveries d SET status = 'canceled' FROM webhook_endpoints w \
         WHERE (w.account_id, w.id) = (d.account_id, d.endpoint_id) AND d.status = 'pending' \
           AND (w.disabled OR w.deleted_at IS NOT NULL)",
    )
    .execute(connection)
}

/// Those of these endpoints to which something may be sent.
pub fn enabled(
    connection: &mut PgConnection,
    ids: &[WebhookEndpointId],
) -> QueryResult<Vec<WebhookEndpoint>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    webhook_endpoints::table
        .filter(webhook_endpoints::id.eq_any(ids))
        .filter(diesel::dsl::not(webhook_endpoints::disabled))
        .filter(webhook_endpoints::deleted_at.is_null())
        .select(WebhookEndpoint::as_select())
        .load(connection)
}

/// Keeps an attempt, and moves its delivery on; `next_attempt_at` is for one that stays pending. A delivery that was
/// leased again since, canceled or resent is left alone.
pub fn record(
    connection: &mut PgConnection,
    attempt: &Attempt,
    number: i32,
    status: Status,
    next_attempt_at: DateTime<Utc>,
) -> QueryResult<()> {
    diesel::sql_query(
        "WITH attempt AS (INSERT INTO webhook_attempts \
             (account_id, event_id, endpoint_id, id, status_code, error, latency_ms, answer, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)) \
         UPDATE webhook_deliveries SET status = $10, next_attempt_at = $11, leased_until = NULL \
         WHERE account_id = $1 AND event_id = $2 AND endpoint_id = $3 AND status = 'pending' AND attempts = $12",
    )
    .bind::<SqlUuid, _>(attempt.account_id)
    .bind::<SqlUuid, _>(attempt.event_id)
    .bind::<SqlUuid, _>(attempt.endpoint_id)
    .bind::<SqlUuid, _>(attempt.id)
    .bind::<Nullable<Int2>, _>(attempt.status_code)
    .bind::<Nullable<Text>, _>(attempt.error.as_deref())
    .bind::<Int4, _>(attempt.latency_ms)
    .bind::<Text, _>(&attempt.answer)
    .bind::<Timestamptz, _>(attempt.created_at)
    .bind::<Text, _>(status)
    .bind::<Timestamptz, _>(next_attempt_at)
    .bind::<Int4, _>(number)
    .execute(connection)
    .map(drop)
}

//! What a real card network does by itself: it thinks of something later, and notifies this service of it.
//!
//! That a notification will come is written in the transaction of the charge or refund that it is about; a worker sends
//! it like a stranger would, signed, to `POST /v1/provider_notifications`, and again until it is answered with 2xx.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Int4, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::{Value, json};

use super::{Behaviour, by_name};
use crate::app::State;
use crate::auth::Account;
use crate::charges::{Charge, Status};
use crate::disputes::{Dispute, Verdict};
use crate::error::Error;
use crate::refunds::Refund;
use crate::schema::network_notifications;
use crate::types::{Cause, Id, Kind};
use crate::webhooks::signature;

/// How long the network thinks.
const DELAY: chrono::Duration = chrono::Duration::milliseconds(1500);

/// How long it waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often it sends what is not answered with 2xx: after 2 s, then after twice as long each time, up to an hour; for
/// more than three days in all, which is less than the id is remembered.
const MOST_ATTEMPTS: i32 = 84;
const LONGEST_PAUSE_SECONDS: i32 = 3600;

/// How long it rests when nothing is due.
const REST: Duration = Duration::from_millis(300);

/// How many notifications are taken at once.
const BATCH: i64 = 20;

/// How the simulated network behaves towards this service.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The secret of its signatures.
    pub secret: String,
    /// Where it sends them: the address of `POST /v1/provider_notifications`. Without one it sends nothing.
    pub url: Option<String>,
    pub manners: Manners,
}

/// How well the network behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Manners {
    /// Once, in order.
    #[default]
    Good,
    /// Everything twice.
    Twice,
    /// The latest first.
    Disorder,
}

/// A notification, as an id: `ntf_…`. It is the idempotency key of its deliveries.
pub enum Notification {}

impl Kind for Notification {
    const PREFIX: &'static str = "ntf";
    const NOUN: &'static str = "notification";
}

/// Notes what the network will say of a charge that has moved money.
///
/// # Errors
/// What the statement reports.
pub fn will_speak_of_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
) -> QueryResult<()> {
    let card = by_name(&charge.card.test_card);
    let disputes = card.is_some_and(|card| card.behaviour == Behaviour::Disputes);
    if charge.status != Status::Captured || !disputes {
        return Ok(());
    }
    let (reason, is_inquiry) = match charge.card.test_card.as_str() {
        "createDisputeProductNotReceived" => ("product_not_received", false),
        "createDisputeInquiry" => ("fraudulent", true),
        _ => ("fraudulent", false),
    };
    let dispute: Id<Dispute> = cause.new_id();
    let data = json!({ "dispute": dispute, "charge": charge.id, "reason": reason, "inquiry": is_inquiry });
    note(connection, cause, "dispute.created", &data)
}

/// Notes what the network will say of a refund.
///
/// # Errors
/// What the statement reports.
pub fn will_speak_of_refund(
    connection: &mut PgConnection,
    cause: &Cause,
    refund: &Refund,
    charge: &Charge,
) -> QueryResult<()> {
    let behaviour = by_name(&charge.card.test_card).map(|card| card.behaviour);
    let event = match behaviour {
        Some(Behaviour::RefundsLate) => "refund.succeeded",
        Some(Behaviour::RefundFails) => "refund.failed",
        _ => return Ok(()),
    };
    note(connection, cause, event, &json!({ "refund": refund.id }))
}

/// Notes the verdict that the network will tell of a dispute.
///
/// # Errors
/// What the statement reports.
pub fn will_close(
    connection: &mut PgConnection,
    cause: &Cause,
    dispute: &Dispute,
    verdict: Verdict,
) -> QueryResult<()> {
    let outcome = if verdict == Verdict::Won { "won" } else { "lost" };
    let data = json!({
        "dispute": dispute.id,
        "charge": dispute.charge_id,
        "reason": dispute.reason,
        "inquiry": dispute.is_inquiry(),
        "outcome": outcome,
    });
    note(connection, cause, "dispute.closed", &data)
}

fn note(connection: &mut PgConnection, cause: &Cause, event: &str, data: &Value) -> QueryResult<()> {
    let id: Id<Notification> = cause.new_id();
    let body = json!({
        "id": id,
        "type": event,
        "account": cause.account,
        "created": cause.now.timestamp(),
        "data": data,
    });
    diesel::insert_into(network_notifications::table)
        .values((
            network_notifications::account_id.eq(cause.account),
            network_notifications::id.eq(id),
            network_notifications::body.eq(body.to_string()),
            network_notifications::due_at.eq(cause.now + DELAY),
            network_notifications::attempts.eq(0),
        ))
        .execute(connection)
        .map(drop)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = SqlUuid)]
    account_id: Id<Account>,
    #[diesel(sql_type = SqlUuid)]
    id: Id<Notification>,
    #[diesel(sql_type = Text)]
    body: String,
}

/// Sends what is due, for ever.
///
/// # Errors
/// The client cannot be made.
pub async fn run(state: State) -> Result<(), Error> {
    let Some(url) = state.network.url.clone() else { return Ok(()) };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .build()
        .map_err(|error| Error::Internal(format!("no client for the network: {error}")))?;
    loop {
        let due = match take(&state).await {
            Ok(due) => due,
            Err(error) => {
                log::warn!("the network waits: {}", error.for_log());
                Vec::new()
            }
        };
        if due.is_empty() {
            tokio::time::sleep(REST).await;
        }
        for notification in due {
            let answered = post(&state, &client, &url, &notification.body).await;
            if answered && let Err(error) = mark_delivered(&state, &notification).await {
                log::warn!("a notification will be sent again: {}", error.for_log());
            }
        }
    }
}

/// Takes what is due; another worker may have it again after a pause, unless it is marked as delivered.
async fn take(state: &State) -> Result<Vec<Due>, Error> {
    let now = state.clock.now();
    // An attempt is counted before it is made, so the pause after the first is 2 s.
    let pause =
        format!("least(power(2, least(attempts + 1, 20)), {LONGEST_PAUSE_SECONDS}) * interval '1 second'");
    let order = if state.network.manners == Manners::Disorder { "DESC" } else { "ASC" };
    let statement = format!(
        "UPDATE network_notifications n SET attempts = attempts + 1, due_at = $1 + {pause} FROM ( \
             SELECT account_id, id FROM network_notifications \
             WHERE delivered_at IS NULL AND due_at <= $2 AND attempts < $3 \
             ORDER BY due_at {order}, id {order} LIMIT $4 FOR UPDATE SKIP LOCKED) AS due \
         WHERE (n.account_id, n.id) = (due.account_id, due.id) RETURNING n.account_id, n.id, n.body"
    );
    let work = move |connection: &mut PgConnection| {
        Ok(diesel::sql_query(statement)
            .bind::<Timestamptz, _>(now)
            .bind::<Timestamptz, _>(now)
            .bind::<Int4, _>(MOST_ATTEMPTS)
            .bind::<BigInt, _>(BATCH)
            .load::<Due>(connection)?)
    };
    let mut due = state.database.run(work).await??;
    due.sort_by_key(|notification| notification.id.uuid());
    if state.network.manners == Manners::Disorder {
        due.reverse();
    }
    Ok(due)
}

async fn mark_delivered(state: &State, notification: &Due) -> Result<(), Error> {
    let (account, id, now) = (notification.account_id, notification.id, state.clock.now());
    let work = move |connection: &mut PgConnection| {
        diesel::update(network_notifications::table.find((account, id)))
            .set(network_notifications::delivered_at.eq(Some::<DateTime<Utc>>(now)))
            .execute(connection)?;
        Ok(())
    };
    state.database.run(work).await?
}

/// Posts a notification, as often as the manners want, and says whether it was taken.
async fn post(state: &State, client: &reqwest::Client, url: &str, body: &str) -> bool {
    let times = if state.network.manners == Manners::Twice { 2 } else { 1 };
    let mut taken = false;
    for _ in 0..times {
        let secrets = [state.network.secret.clone()];
        let request = client
            .post(url)
            .header("Content-Type", "application/json")
            .header(signature::HEADER, signature::sign(&secrets, state.clock.now(), body.as_bytes()))
            .body(body.to_owned());
        taken = match request.send().await {
            // What is refused now may be there later, or the secret set right.
            Ok(answer) => answer.status().is_success(),
            Err(_) => false,
        };
    }
    taken
}

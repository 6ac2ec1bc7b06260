//! The notifications of the simulated card network, which report what happens after a charge or a refund.
//!
//! The transaction of the charge or refund also writes the notification. A worker later signs it and sends it over HTTP to
//! `POST /v1/provider_notifications`, as a real network would, and repeats it until the answer is 2xx.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Int4, Text, Timestamptz, Uuid as SqlUuid};

use super::notification::{DisputeNotice, Envelope, Notification, RefundNotice, VerdictNotice};
use super::{Behaviour, by_name};
use crate::db::Database;
use crate::error::Error;
use crate::schema::network_notifications;
use crate::types::ids::{AccountId, ChargeId, NotificationId, RefundId};
use crate::types::{Cause, Clock};
use crate::wire::signature;

/// The time between the call and the notification.
const DELAY: chrono::Duration = chrono::Duration::milliseconds(1500);

/// How long the network waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most attempts to send a notification.
///
/// The first pause is 2 s, and each is twice as long as the one before, up to an hour. All attempts together take more
/// than three days, but less time than the id is remembered.
const MOST_ATTEMPTS: i32 = 84;
const LONGEST_PAUSE_SECONDS: i32 = 3600;

/// The pause before the next look when nothing is due.
const REST: Duration = Duration::from_millis(300);

/// The most notifications that one statement takes.
const BATCH: i64 = 20;

/// The settings of the simulated network.
#[derive(Debug, Clone, Default)]
pub struct NetworkSettings {
    /// The secret with which the network signs.
    pub secret: String,
    /// The address of `POST /v1/provider_notifications`; without it the network sends nothing.
    pub url: Option<String>,
    pub delivery: DeliveryMode,
}

/// How the network delivers its notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum DeliveryMode {
    /// Each one once, in order.
    #[default]
    InOrder,
    /// Each one twice.
    Twice,
    /// The latest one first.
    Disorder,
}

/// Schedules the notification that a captured charge is disputed, if its card has that behaviour.
pub fn announce_dispute(
    connection: &mut PgConnection,
    cause: &Cause,
    test_card: &str,
    charge: ChargeId,
) -> QueryResult<()> {
    match by_name(test_card).map(|card| card.behaviour) {
        Some(Behaviour::Disputes { reason, inquiry }) => {
            let notice = DisputeNotice { dispute: cause.new_id(), charge, reason, inquiry };
            announce(connection, cause, Notification::DisputeCreated(notice))
        }
        _ => Ok(()),
    }
}

/// Schedules the notification of a refund's outcome, if the refunds of its card take time or fail.
pub fn announce_refund(
    connection: &mut PgConnection,
    cause: &Cause,
    test_card: &str,
    refund: RefundId,
) -> QueryResult<()> {
    let notice = RefundNotice { refund };
    let notification = match by_name(test_card).map(|card| card.behaviour) {
        Some(Behaviour::RefundsLate) => Notification::RefundSucceeded(notice),
        Some(Behaviour::RefundFails) => Notification::RefundFailed(notice),
        _ => return Ok(()),
    };
    announce(connection, cause, notification)
}

/// Schedules the notification that a dispute has ended.
pub fn announce_verdict(
    connection: &mut PgConnection,
    cause: &Cause,
    notice: VerdictNotice,
) -> QueryResult<()> {
    announce(connection, cause, Notification::DisputeClosed(notice))
}

fn announce(connection: &mut PgConnection, cause: &Cause, notification: Notification) -> QueryResult<()> {
    let envelope =
        Envelope { id: cause.new_id(), account: cause.account, created: cause.now.timestamp(), notification };
    let body = serde_json::to_string(&envelope).expect("text, numbers and enums always serialize");
    diesel::insert_into(network_notifications::table)
        .values((
            network_notifications::account_id.eq(envelope.account),
            network_notifications::id.eq(envelope.id),
            network_notifications::body.eq(body),
            network_notifications::due_at.eq(cause.now + DELAY),
            network_notifications::attempts.eq(0),
        ))
        .execute(connection)
        .map(drop)
}

#[derive(QueryableByName)]
struct Due {
    #[diesel(sql_type = SqlUuid)]
    account_id: AccountId,
    #[diesel(sql_type = SqlUuid)]
    id: NotificationId,
    #[diesel(sql_type = Text)]
    body: String,
}

/// What the simulation needs of the server.
#[derive(Clone)]
pub struct Network {
    pub database: Database,
    pub clock: Clock,
    pub settings: NetworkSettings,
}

/// Sends due notifications, for ever.
///
/// # Errors
/// The HTTP client cannot be created.
pub async fn run(network: Network) -> Result<(), Error> {
    let Some(url) = network.settings.url.clone() else { return Ok(()) };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .build()
        .map_err(|error| Error::Internal(format!("no client for the network: {error}")))?;
    loop {
        let due = match take(&network).await {
            Ok(due) => due,
            Err(error) => {
                log::warn!("the network could not read its notifications: {}", error.for_log());
                Vec::new()
            }
        };
        if due.is_empty() {
            tokio::time::sleep(REST).await;
        }
        for notification in due {
            let answered = post(&network, &client, &url, &notification.body).await;
            if answered && let Err(error) = mark_delivered(&network, &notification).await {
                log::warn!("a notification will be sent again: {}", error.for_log());
            }
        }
    }
}

/// Takes due notifications; after a pause another worker may take one again, unless it is marked as delivered.
async fn take(network: &Network) -> Result<Vec<Due>, Error> {
    let now = network.clock.now();
    // The old value of `attempts` is 0 at the first attempt, so the first pause is 2 s.
    let pause =
        format!("least(power(2, least(attempts + 1, 20)), {LONGEST_PAUSE_SECONDS}) * interval '1 second'");
    // What is due later than the schedule allows was put off by a clock that has been set back since, and is due now.
    let latest =
        format!("least(power(2, least(attempts, 20)) + 1, {LONGEST_PAUSE_SECONDS}) * interval '1 second'");
    let order = if network.settings.delivery == DeliveryMode::Disorder { "DESC" } else { "ASC" };
    let statement = format!(
        "UPDATE network_notifications n SET attempts = attempts + 1, due_at = $1 + {pause} FROM ( \
             SELECT account_id, id FROM network_notifications \
             WHERE delivered_at IS NULL AND attempts < $3 \
               AND (due_at <= $2 OR due_at > $2 + {latest}) \
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
    let mut due = network.database.run(work).await??;
    due.sort_by_key(|notification| notification.id.uuid());
    if network.settings.delivery == DeliveryMode::Disorder {
        due.reverse();
    }
    Ok(due)
}

async fn mark_delivered(network: &Network, notification: &Due) -> Result<(), Error> {
    let (account, id, now) = (notification.account_id, notification.id, network.clock.now());
    let work = move |connection: &mut PgConnection| {
        diesel::update(network_notifications::table.find((account, id)))
            .set(network_notifications::delivered_at.eq(Some::<DateTime<Utc>>(now)))
            .execute(connection)?;
        Ok(())
    };
    network.database.run(work).await?
}

/// Posts a notification, twice in the mode [`DeliveryMode::Twice`], and returns whether the last answer was 2xx.
async fn post(network: &Network, client: &reqwest::Client, url: &str, body: &str) -> bool {
    let times = if network.settings.delivery == DeliveryMode::Twice { 2 } else { 1 };
    let mut taken = false;
    for _ in 0..times {
        let secrets = [network.settings.secret.clone()];
        let request = client
            .post(url)
            .header("Content-Type", "application/json")
            .header(signature::HEADER, signature::sign(&secrets, network.clock.now(), body.as_bytes()))
            .body(body.to_owned());
        taken = match request.send().await {
            // A refused notification may succeed later: its object may exist by then, or the secret be corrected.
            Ok(answer) => answer.status().is_success(),
            Err(_) => false,
        };
    }
    taken
}

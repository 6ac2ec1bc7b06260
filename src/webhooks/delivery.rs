//! The worker that sends webhooks.
//!
//! It leases what is due, posts it, and records how that went. Should it die in between, the lease runs out and the
//! delivery is sent again, with the same event id: at least once, never lost. Several workers may run side by side.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use reqwest::redirect;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use super::health::{ALTOGETHER, DeliveryOutcome, HealthOfAll, PER_ENDPOINT, Slots, note};
use super::queries::{self, Attempt, Leased};
use super::{Status, WebhookEndpoint, WebhookSettings, target};
use crate::db::Database;
use crate::error::Error;
use crate::secrets::Secrets;
use crate::types::{Clock, Watch};
use crate::wire::{API_VERSION, signature};

/// How long an endpoint may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a delivery is this worker's: longer than sending and recording take, unless the database hangs. What was
/// leased again since is not recorded, and so was sent twice.
const LEASE: Duration = Duration::from_secs(20);

/// How much of an answer is read, and how much is kept.
const READ_BYTES: usize = 64 * 1024;
const KEPT_CHARACTERS: usize = 500;

/// How long the worker rests when nothing is due; an effect of this process wakes it at once.
const REST: Duration = Duration::from_millis(500);

/// How long effects are gathered after one has woken the worker.
const GATHER: Duration = Duration::from_millis(2);

/// What the worker runs on.
#[derive(Clone)]
pub struct Sender {
    pub database: Database,
    pub secrets: Secrets,
    pub clock: Clock,
    pub settings: WebhookSettings,
    /// Notified after each commit of this process.
    pub committed: Arc<Notify>,
}

/// Sends what is due, for ever.
///
/// # Errors
/// The client cannot be made.
pub async fn run(sender: Sender) -> Result<(), Error> {
    let client = client(&sender)?;
    let (ended, mut ends) = mpsc::unbounded_channel();
    let mut healths = HealthOfAll::new();
    let mut watch = Watch::new(sender.clock.clone());
    // The clock may have jumped while no worker ran.
    let mut has_jumped = true;
    loop {
        has_jumped |= watch.has_jumped();
        if has_jumped {
            has_jumped = correct_times(&sender).await.is_err();
        }
        while let Ok((endpoint, outcome)) = ends.try_recv() {
            note(&mut healths, endpoint, outcome);
        }
        let (leased, has_endpoints) = match lease(&sender, &healths).await {
            Ok(found) => found,
            Err(error) => {
                log::warn!("webhooks wait: {}", error.for_log());
                (Vec::new(), false)
            }
        };
        let is_idle = leased.is_empty();
        for (delivery, endpoint) in leased {
            healths.entry(endpoint.id).or_default().sent += 1;
            let (sender, client, ended) = (sender.clone(), client.clone(), ended.clone());
            tokio::task::spawn_local(async move {
                let outcome = send(&sender, &client, delivery, &endpoint).await.unwrap_or_else(|error| {
                    log::warn!("a webhook will be sent again: {}", error.for_log());
                    DeliveryOutcome::Unrecorded
                });
                let _ = ended.send((endpoint.id, outcome));
            });
        }
        if is_idle {
            tokio::select! {
                // Where nobody wants to hear of them, effects wake nobody.
                () = sender.committed.notified(), if has_endpoints => tokio::time::sleep(GATHER).await,
                Some((endpoint, outcome)) = ends.recv() => note(&mut healths, endpoint, outcome),
                () = tokio::time::sleep(REST) => {}
            }
        }
    }
}

/// Corrects what is due later than the schedule allows: a clock that has been set back since put it off.
async fn correct_times(sender: &Sender) -> Result<(), Error> {
    let (now, schedule) = (sender.clock.now(), sender.settings.schedule);
    let work = move |connection: &mut diesel::pg::PgConnection| {
        Ok(queries::correct_times(connection, now, now + LEASE, schedule.pauses())?)
    };
    match sender.database.run(work).await.map_err(Error::from).flatten()? {
        0 => {}
        corrected => log::info!("the clock was set back: {corrected} webhooks are due now"),
    }
    Ok(())
}

/// No redirects, no proxies, and names are looked up by [`target::Resolver`].
fn client(sender: &Sender) -> Result<reqwest::Client, Error> {
    // Another part of the program may have chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .timeout(TIMEOUT)
        .user_agent("oncepay")
        .dns_resolver(target::Resolver { allow_private: sender.settings.allow_private })
        .build()
        .map_err(|error| Error::Internal(format!("no client for webhooks: {error}")))
}

/// Leases what may be sent now, each delivery with its endpoint as it is now: it may just have been disabled, or its
/// secret rolled. Says also whether there is any endpoint.
async fn lease(
    sender: &Sender,
    healths: &HealthOfAll,
) -> Result<(Vec<(Leased, WebhookEndpoint)>, bool), Error> {
    let sent: i64 = healths.values().map(|health| health.sent).sum();
    // Half of all places are for endpoints that have none yet: however many are slow, the others find one.
    let (share, free) =
        if sent < ALTOGETHER / 2 { (PER_ENDPOINT, ALTOGETHER / 2 - sent) } else { (1, ALTOGETHER - sent) };
    if free <= 0 {
        return Ok((Vec::new(), true));
    }
    let slots = Slots::new(healths, share, Instant::now());
    let now = sender.clock.now();
    let work = move |connection: &mut diesel::pg::PgConnection| {
        let until = now + LEASE;
        let mut leased = queries::lease(connection, now, until, share, &slots.well, free)?;
        let left = slots.for_failing.min(free - i64::try_from(leased.len()).unwrap_or(free));
        if left > 0 && !slots.failing.is_empty() {
            leased.extend(queries::lease(connection, now, until, 0, &slots.failing, left)?);
        }
        let has_endpoints = !leased.is_empty() || queries::has_endpoints(connection)?;
        let ids: Vec<_> = leased.iter().map(|delivery| delivery.endpoint_id).collect();
        let endpoints: HashMap<_, _> =
            queries::enabled(connection, &ids)?.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect();
        let pair = |delivery: Leased| Some((endpoints.get(&delivery.endpoint_id)?.clone(), delivery));
        let pairs = leased.into_iter().filter_map(pair).map(|(endpoint, delivery)| (delivery, endpoint));
        Ok((pairs.collect(), has_endpoints))
    };
    sender.database.run(work).await?
}

/// What came back of an attempt.
struct Attempted {
    status_code: Option<u16>,
    error: Option<String>,
    answer: String,
}

/// Posts one delivery, and records how it ended.
async fn send(
    sender: &Sender,
    client: &reqwest::Client,
    delivery: Leased,
    endpoint: &WebhookEndpoint,
) -> Result<DeliveryOutcome, Error> {
    let begun = Instant::now();
    let payload = match &endpoint.api_version {
        Some(version) => as_of(&delivery.payload, version),
        None => delivery.payload,
    };
    let ended = post(sender, client, endpoint, payload).await;
    let now = sender.clock.now();
    let outcome = match (&ended.error, ended.status_code) {
        (None, Some(200..300)) => DeliveryOutcome::Delivered,
        (None, status) => DeliveryOutcome::Failed(format!("the answer was {}", status.unwrap_or_default())),
        (Some(error), _) => DeliveryOutcome::Failed(error.clone()),
    };
    let attempt = Attempt {
        account_id: delivery.account_id,
        event_id: delivery.event_id,
        endpoint_id: delivery.endpoint_id,
        id: uuid::Uuid::now_v7(),
        status_code: ended.status_code.and_then(|status| i16::try_from(status).ok()),
        error: ended.error,
        latency_ms: i32::try_from(begun.elapsed().as_millis()).unwrap_or(i32::MAX),
        answer: ended.answer,
        created_at: now,
    };
    let (status, next) = match sender.settings.schedule.next(delivery.attempts, now) {
        _ if matches!(outcome, DeliveryOutcome::Delivered) => (Status::Delivered, now),
        Some(next) => (Status::Pending, next),
        None => (Status::Failed, now),
    };
    let number = delivery.attempts;
    let work = move |connection: &mut diesel::pg::PgConnection| {
        Ok(queries::record(connection, &attempt, number, status, next)?)
    };
    sender.database.run(work).await??;
    Ok(outcome)
}

/// A payload that says another version of the API. The objects are the same; an SDK may refuse an event whose version is
/// not its own.
fn as_of(payload: &str, version: &str) -> String {
    let member = |version: &str| format!("\"api_version\":{}", Value::from(version));
    // The first is the event's own: what its object holds comes after it.
    payload.replacen(&member(API_VERSION), &member(version), 1)
}

async fn post(
    sender: &Sender,
    client: &reqwest::Client,
    endpoint: &WebhookEndpoint,
    payload: String,
) -> Attempted {
    let failed = |error: String| Attempted { status_code: None, error: Some(error), answer: String::new() };
    let now = sender.clock.now();
    let Some(secrets) = endpoint.secrets(&sender.secrets, now) else {
        return failed(
            "the secret cannot be opened: was the server's secret replaced without keeping it?".to_owned(),
        );
    };
    let url = match target::parse(&endpoint.url, sender.settings.allow_private) {
        Ok(url) => url,
        Err(error) => return failed(format!("the URL {error}")),
    };
    let request = client
        .post(url)
        .header("Content-Type", "application/json; charset=utf-8")
        .header(signature::HEADER, signature::sign(&secrets, now, payload.as_bytes()))
        .body(payload);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return failed(told(&error)),
    };
    let status_code = Some(response.status().as_u16());
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    // The time limit of the whole request holds for the answer too.
    while body.len() < READ_BYTES {
        match chunks.next().await {
            Some(Ok(chunk)) => body.extend_from_slice(&chunk),
            _ => break,
        }
    }
    let text = String::from_utf8_lossy(&body);
    let answer = text.chars().filter(|character| *character != '\0').take(KEPT_CHARACTERS).collect();
    Attempted { status_code, error: None, answer }
}

/// The innermost cause, which says most.
fn told(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} seconds", TIMEOUT.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

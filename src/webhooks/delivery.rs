//! The worker that sends webhooks.
//!
//! It leases what is due, posts it, and records how that went. Should it die in between, the lease runs out and the
//! delivery is sent again, with the same event id: at least once, never lost. Several workers may run side by side.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use reqwest::redirect;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use super::queries::{self, Attempt, Leased};
use super::{Settings, Status, WebhookEndpoint, target};
use crate::db::Database;
use crate::error::Error;
use crate::secrets::Secrets;
use crate::types::Clock;
use crate::types::ids::WebhookEndpointId;
use crate::wire::{API_VERSION, signature};

/// How long an endpoint may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a delivery is this worker's: longer than sending and recording take, unless the database hangs. What was
/// leased again since is not recorded, and so was sent twice.
const LEASE: Duration = Duration::from_secs(20);

/// How many deliveries may be on their way to one endpoint, and to all of them.
const PER_ENDPOINT: i64 = 8;
const ALTOGETHER: i64 = 256;

/// After how many failures in a row an endpoint is taken to be dead. From then on it gets one delivery at a time, and
/// a rest after each, until it takes one: else the many that wait for it would take the time of the others.
const DEAD_AFTER: u32 = 8;
const DEAD_RESTS: Duration = Duration::from_secs(1);

/// How much of an answer is read, and how much is kept.
const READ_BYTES: usize = 64 * 1024;
const KEPT_CHARACTERS: usize = 500;

/// How long the worker rests when nothing is due; an effect of this process wakes it at once.
const REST: Duration = Duration::from_millis(500);

/// When a delivery that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Schedule {
    /// Over three days.
    #[default]
    Live,
    /// Within seconds at first, over an hour: for people who watch.
    Fast,
}

impl Schedule {
    /// The pauses after the first, second, … failed attempt, in seconds; after the last there is no other.
    pub fn pauses(self) -> &'static [u64] {
        match self {
            // 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h, 20 h: three days in all.
            Schedule::Live => &[5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 73_495],
            Schedule::Fast => &[1, 2, 4, 8, 15, 30, 60, 120, 300, 900, 1800],
        }
    }

    /// When to try again after `attempts` failed ones.
    fn next(self, attempts: i32, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let index = usize::try_from(attempts).ok()?.checked_sub(1)?;
        let pause = self.pauses().get(index)?;
        Some(now + chrono::Duration::seconds(i64::try_from(*pause).ok()?))
    }
}

/// How long effects are gathered after one has woken the worker.
const GATHER: Duration = Duration::from_millis(2);

/// What a worker has seen of an endpoint. Nothing correct depends on it; other workers see for themselves.
#[derive(Debug, Default)]
struct Standing {
    /// How many deliveries are on their way to it.
    sent: i64,
    /// How many have failed since the last that did not.
    failures: u32,
    rests_until: Option<Instant>,
}

impl Standing {
    /// How many more deliveries it may get now, where each endpoint may have `share` on their way.
    fn room(&self, share: i64, now: Instant) -> i64 {
        match self.rests_until {
            _ if self.failures < DEAD_AFTER => share - self.sent,
            Some(until) if now < until => 0,
            _ => 1 - self.sent,
        }
    }

    fn ended(&mut self, ending: &Ending, now: Instant) {
        self.sent -= 1;
        self.failures = match ending {
            Ending::Delivered => 0,
            Ending::Failed(_) => self.failures.saturating_add(1),
            Ending::Unrecorded => self.failures,
        };
        self.rests_until = (self.failures >= DEAD_AFTER).then(|| now + DEAD_RESTS);
    }
}

/// How a delivery ended.
enum Ending {
    Delivered,
    Failed(String),
    /// It was sent, and what became of it could not be recorded, which is no fault of the endpoint's.
    Unrecorded,
}

type Standings = HashMap<WebhookEndpointId, Standing>;

/// What the worker runs on.
#[derive(Clone)]
pub struct Sender {
    pub database: Database,
    pub secrets: Secrets,
    pub clock: Clock,
    pub settings: Settings,
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
    let mut standings = Standings::new();
    loop {
        while let Ok((endpoint, ending)) = ends.try_recv() {
            note(&mut standings, endpoint, ending);
        }
        let (leased, has_endpoints) = match lease(&sender, &standings).await {
            Ok(found) => found,
            Err(error) => {
                log::warn!("webhooks wait: {}", error.for_log());
                (Vec::new(), false)
            }
        };
        let is_idle = leased.is_empty();
        for (delivery, endpoint) in leased {
            standings.entry(endpoint.id).or_default().sent += 1;
            let (sender, client, ended) = (sender.clone(), client.clone(), ended.clone());
            tokio::task::spawn_local(async move {
                let ending = send(&sender, &client, delivery, &endpoint).await.unwrap_or_else(|error| {
                    log::warn!("a webhook will be sent again: {}", error.for_log());
                    Ending::Unrecorded
                });
                let _ = ended.send((endpoint.id, ending));
            });
        }
        if is_idle {
            tokio::select! {
                // Where nobody wants to hear of them, effects wake nobody.
                () = sender.committed.notified(), if has_endpoints => tokio::time::sleep(GATHER).await,
                Some((endpoint, ending)) = ends.recv() => note(&mut standings, endpoint, ending),
                () = tokio::time::sleep(REST) => {}
            }
        }
    }
}

/// Notes how a delivery ended, and logs when an endpoint begins to fail and when it takes deliveries again; what became
/// of each is in its attempts. An endpoint of which there is nothing to know is forgotten.
fn note(standings: &mut Standings, endpoint: WebhookEndpointId, ending: Ending) {
    let Some(standing) = standings.get_mut(&endpoint) else { return };
    match &ending {
        Ending::Failed(why) if standing.failures == 0 => {
            log::warn!("webhooks to {endpoint} fail, and are sent again by the schedule: {why}");
        }
        Ending::Delivered if standing.failures > 0 => {
            log::info!("webhooks to {endpoint} are delivered again");
        }
        _ => {}
    }
    standing.ended(&ending, Instant::now());
    if standing.sent == 0 && standing.failures == 0 {
        standings.remove(&endpoint);
    }
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

/// How many more deliveries each endpoint may get now: of those that do well, and of those that fail. Those have half of
/// all places between them, so that however many there are, the others find one.
struct Rooms {
    well: Vec<(WebhookEndpointId, i64)>,
    failing: Vec<(WebhookEndpointId, i64)>,
    /// How many more deliveries all that fail may get.
    for_failing: i64,
}

impl Rooms {
    fn new(standings: &Standings, share: i64, now: Instant) -> Self {
        let mut rooms = Self { well: Vec::new(), failing: Vec::new(), for_failing: ALTOGETHER / 2 };
        for (endpoint, standing) in standings {
            let room = (*endpoint, standing.room(share, now));
            if standing.failures == 0 {
                rooms.well.push(room);
            } else {
                rooms.well.push((*endpoint, 0));
                rooms.failing.push(room);
                rooms.for_failing -= standing.sent;
            }
        }
        rooms
    }
}

/// Leases what may be sent now, each delivery with its endpoint as it is now: it may just have been disabled, or its
/// secret rolled. Says also whether there is any endpoint.
async fn lease(
    sender: &Sender,
    standings: &Standings,
) -> Result<(Vec<(Leased, WebhookEndpoint)>, bool), Error> {
    let sent: i64 = standings.values().map(|standing| standing.sent).sum();
    // Half of all places are for endpoints that have none yet: however many are slow, the others find one.
    let (share, free) =
        if sent < ALTOGETHER / 2 { (PER_ENDPOINT, ALTOGETHER / 2 - sent) } else { (1, ALTOGETHER - sent) };
    if free <= 0 {
        return Ok((Vec::new(), true));
    }
    let rooms = Rooms::new(standings, share, Instant::now());
    let now = sender.clock.now();
    let work = move |connection: &mut diesel::pg::PgConnection| {
        let until = now + LEASE;
        let mut leased = queries::lease(connection, now, until, share, &rooms.well, free)?;
        let left = rooms.for_failing.min(free - i64::try_from(leased.len()).unwrap_or(free));
        if left > 0 && !rooms.failing.is_empty() {
            leased.extend(queries::lease(connection, now, until, 0, &rooms.failing, left)?);
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
) -> Result<Ending, Error> {
    let begun = Instant::now();
    let payload = match &endpoint.api_version {
        Some(version) => as_of(&delivery.payload, version),
        None => delivery.payload,
    };
    let ended = post(sender, client, endpoint, payload).await;
    let now = sender.clock.now();
    let ending = match (&ended.error, ended.status_code) {
        (None, Some(200..300)) => Ending::Delivered,
        (None, status) => Ending::Failed(format!("the answer was {}", status.unwrap_or_default())),
        (Some(error), _) => Ending::Failed(error.clone()),
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
        _ if matches!(ending, Ending::Delivered) => (Status::Delivered, now),
        Some(next) => (Status::Pending, next),
        None => (Status::Failed, now),
    };
    let number = delivery.attempts;
    let work = move |connection: &mut diesel::pg::PgConnection| {
        Ok(queries::record(connection, &attempt, number, status, next)?)
    };
    sender.database.run(work).await??;
    Ok(ending)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_fails_again_and_again_gets_one_delivery_at_a_time_and_a_rest_until_it_takes_one() {
        let now = Instant::now();
        let failed = || Ending::Failed(String::new());
        let mut standing = Standing::default();
        assert_eq!(standing.room(PER_ENDPOINT, now), PER_ENDPOINT);
        standing.sent = 8;
        assert_eq!(standing.room(PER_ENDPOINT, now), 0);
        for left in 1..8 {
            standing.ended(&failed(), now);
            assert_eq!(standing.room(PER_ENDPOINT, now), left);
        }
        standing.ended(&failed(), now);
        assert_eq!(standing.room(PER_ENDPOINT, now), 0);
        assert_eq!(standing.room(PER_ENDPOINT, now + DEAD_RESTS), 1);
        standing.sent = 1;
        assert_eq!(standing.room(PER_ENDPOINT, now + DEAD_RESTS), 0);
        standing.ended(&Ending::Delivered, now);
        assert_eq!(standing.room(PER_ENDPOINT, now), PER_ENDPOINT);
    }

    #[test]
    fn those_that_fail_have_half_of_all_places_between_them_and_wait_for_the_others() {
        let now = Instant::now();
        let id = |number| WebhookEndpointId::from_uuid(uuid::Uuid::from_u128(number));
        let mut standings = Standings::new();
        standings.insert(id(1), Standing::default());
        standings.insert(id(2), Standing { sent: 5, failures: 1, rests_until: None });
        standings.insert(id(3), Standing { sent: 0, failures: DEAD_AFTER, rests_until: Some(now) });
        let rooms = Rooms::new(&standings, PER_ENDPOINT, now);
        assert_eq!(rooms.for_failing, ALTOGETHER / 2 - 5);
        let sorted = |mut rooms: Vec<(WebhookEndpointId, i64)>| {
            rooms.sort_by_key(|(id, _)| id.uuid());
            rooms
        };
        assert_eq!(sorted(rooms.well), [(id(1), PER_ENDPOINT), (id(2), 0), (id(3), 0)]);
        assert_eq!(sorted(rooms.failing), [(id(2), PER_ENDPOINT - 5), (id(3), 1)]);
    }

    #[test]
    fn the_live_schedule_lasts_three_days_and_the_fast_one_begins_within_two_seconds() {
        let total: u64 = Schedule::Live.pauses().iter().sum();
        assert_eq!(total, 3 * 24 * 3600);
        assert!(Schedule::Fast.pauses()[0] <= 2);
        for schedule in [Schedule::Live, Schedule::Fast] {
            assert!(schedule.pauses().is_sorted());
            let now = Utc::now();
            let last = i32::try_from(schedule.pauses().len()).unwrap();
            assert!(schedule.next(1, now).unwrap() > now);
            assert!(schedule.next(last, now).is_some());
            assert!(schedule.next(last + 1, now).is_none());
        }
    }
}

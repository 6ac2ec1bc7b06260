//! Many events at once, several workers, and slow and dead endpoints beside a good one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use oncepay::idempotency::faults::{Faults, Point};
use reqwest::Method;

use crate::support::{Behaviour, Process, Receiver, TestApp, Worker, eventually, fresh_key};

/// Causes `number` events, eight requests at a time.
async fn cause_events(app: &TestApp, number: usize) {
    cause_events_by(app, number, 8).await;
}

async fn cause_events_by(app: &TestApp, number: usize, at_a_time: usize) {
    let create = |_| async { app.submit("/v1/customers", "").await.expect(201) };
    futures_util::stream::iter(0..number)
        .map(create)
        .buffer_unordered(at_a_time)
        .for_each(|_| async {})
        .await;
}

/// How often each event came.
fn times(receiver: &Receiver) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    receiver.received().iter().for_each(|received| *times.entry(received.event_id()).or_default() += 1);
    times
}

fn with_status(app: &TestApp, endpoint: &str, status: &str) -> i64 {
    let uuid = uuid::Uuid::parse_str(endpoint.strip_prefix("we_").unwrap()).unwrap();
    app.database.number(&format!(
        "SELECT count(*) AS number FROM webhook_deliveries WHERE endpoint_id = '{uuid}' AND status = '{status}'"
    ))
}

#[tokio::test]
async fn workers_side_by_side_deliver_each_event_once_when_nothing_fails() {
    let app = TestApp::spawn();
    let second = app.second_instance();
    let receiver = Receiver::good();
    let (endpoint, _) = receiver.subscribe(&app, "customer.created").await;
    let _workers = [Worker::start(&app), Worker::start(&second)];
    let _third = Process::worker(&app.database, &[("WEBHOOK_ALLOW_PRIVATE", "true")]);
    let half = cause_events(&app, 100);
    let other_half = cause_events(&second, 100);
    futures_util::future::join(half, other_half).await;
    eventually("all deliveries", || with_status(&app, &endpoint, "delivered") == 200);
    let times = times(&receiver);
    assert_eq!(times.len(), 200);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert_eq!(app.database.count("webhook_attempts"), 200);
    app.database.assert_clean();
}

#[tokio::test]
async fn killed_workers_lose_no_event_and_invent_none() {
    let app = TestApp::spawn();
    let receiver = Receiver::start(|_| Behaviour::Slow(Duration::from_millis(20)));
    let (endpoint, _) = receiver.subscribe(&app, "customer.created").await;
    cause_events(&app, 100).await;
    for round in 1..=2 {
        let mut doomed = Process::worker(&app.database, &[("WEBHOOK_ALLOW_PRIVATE", "true")]);
        eventually("some deliveries", || receiver.count() >= 20 * round);
        doomed.kill();
    }
    assert!(with_status(&app, &endpoint, "pending") > 0, "it was in the middle");
    // A delivery of a killed worker is free when its lease is over.
    app.state.clock.advance(Duration::from_secs(21));
    let _worker = Worker::start(&app);
    eventually("all deliveries", || with_status(&app, &endpoint, "delivered") == 100);
    let times = times(&receiver);
    assert_eq!(times.len(), 100);
    // Each of the two had at most eight deliveries on their way.
    let again: usize = times.values().map(|times| times - 1).sum();
    assert!(again <= 16, "{again} came again");
    let ids = "SELECT count(DISTINCT id) AS number FROM events WHERE type = 'customer.created'";
    assert_eq!(app.database.number(ids), 100);
    app.database.assert_clean();
}

/// The instants at which requests committed, by request id.
type Commits = Arc<Mutex<HashMap<String, Instant>>>;

/// How long after its commit each event came first, sorted, and how many came in a second.
fn latencies(receiver: &Receiver, commits: &Commits, since: usize) -> (Vec<Duration>, f64) {
    let received = receiver.received().split_off(since);
    let commits = commits.lock().unwrap();
    let mut first = HashMap::new();
    for received in &received {
        let request = received.json()["request"]["id"].as_str().unwrap().to_owned();
        first
            .entry(request.clone())
            .or_insert_with(|| received.at.saturating_duration_since(commits[&request]));
    }
    let mut latencies: Vec<Duration> = first.into_values().collect();
    latencies.sort();
    let time = received.last().unwrap().at - received[0].at;
    (latencies, received.len() as f64 / time.as_secs_f64())
}

#[tokio::test]
async fn a_slow_and_a_dead_endpoint_do_not_delay_the_good_one() {
    let commits = Commits::default();
    let noted = Arc::clone(&commits);
    let faults = Faults::new(move |point, call| {
        if point == Point::AfterCommit {
            noted.lock().unwrap().insert(call.request_id.to_string(), Instant::now());
        }
    });
    let app = TestApp::with(|builder| builder.faults = faults);
    let good = Receiver::good();
    let (good_id, _) = good.subscribe(&app, "customer.created").await;
    let _worker = Worker::start(&app);
    let run = async |number: usize, at_a_time: usize| {
        let (before, committed) = (good.count(), Instant::now());
        cause_events_by(&app, number, at_a_time).await;
        let caused = committed.elapsed();
        eventually("the good one's", || good.count() == before + number);
        let (latencies, rate) = latencies(&good, &commits, before);
        assert_eq!(latencies.len(), number, "each event, once");
        let percent = |percent: usize| latencies[(number - 1) * percent / 100];
        println!(
            "{number} events, {at_a_time} at a time, caused in {caused:.2?}: {rate:.0} deliveries a second; from commit to delivery \
             p50 {:.1?}, p99 {:.1?}, most {:.1?}",
            percent(50),
            percent(99),
            latencies[number - 1]
        );
        (percent(50), percent(99))
    };
    println!("alone:");
    run(100, 1).await;
    let alone = run(500, 8).await;
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let form = format!("url=http://{}/&enabled_events[]=customer.created", dead.local_addr().unwrap());
    app.submit("/v1/webhook_endpoints", &form).await.expect(201);
    let silent = Receiver::start(|_| Behaviour::Never);
    silent.subscribe(&app, "customer.created").await;
    println!("beside one that refuses and one that never answers:");
    drop(dead);
    run(100, 1).await;
    let beside_dead = run(500, 8).await;
    let slow = Receiver::start(|_| Behaviour::Slow(Duration::from_secs(3)));
    let (slow_id, _) = slow.subscribe(&app, "customer.created").await;
    println!("beside those and a slow one:");
    run(100, 1).await;
    let beside_slow = run(1000, 8).await;
    for (what, (p50, p99)) in [("the dead", beside_dead), ("the slow", beside_slow)] {
        // Far less than the others need for one answer, with some time for a busy machine.
        assert!(p50 < alone.0 * 5 + Duration::from_millis(300), "{what}: {p50:?}, and alone {:?}", alone.0);
        assert!(p99 < alone.1 * 5 + Duration::from_millis(700), "{what}: {p99:?}, and alone {:?}", alone.1);
    }
    assert_eq!(with_status(&app, &good_id, "pending") + with_status(&app, &good_id, "failed"), 0);
    assert!(with_status(&app, &slow_id, "pending") > 900, "the slow one is still at it");
    // The slow one is not forgotten either.
    eventually("some of the slow one's", || with_status(&app, &slow_id, "delivered") >= 8);
}

#[tokio::test]
async fn no_number_of_dead_endpoints_keeps_events_from_the_good_one() {
    let app = TestApp::spawn();
    let silent: Vec<Receiver> = (0..15).map(|_| Receiver::start(|_| Behaviour::Never)).collect();
    for receiver in &silent {
        receiver.subscribe(&app, "*").await;
    }
    let good = Receiver::good();
    good.subscribe(&app, "*").await;
    cause_events(&app, 40).await;
    let _worker = Worker::start(&app);
    eventually("the silent ones have all they can hold", || silent.iter().all(|silent| silent.count() > 0));
    let begun = Instant::now();
    app.post("/v1/customers").key(&fresh_key()).form("").send().await.expect(201);
    eventually("all events", || good.count() == 41);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn an_endpoint_gets_a_slot_although_silent_endpoints_could_fill_them_all() {
    let app = TestApp::spawn();
    // 60 endpoints of 8 slots each would take 480, and there are 256.
    let silent = Receiver::start(|_| Behaviour::Never);
    for _ in 0..4 {
        let account = app.database.other_account();
        let post = async |path: &str, form: &str| {
            app.call_as(&account, Method::POST, path).key(&fresh_key()).form(form).send().await.expect(201)
        };
        for _ in 0..15 {
            post("/v1/webhook_endpoints", &format!("url={}&enabled_events[]=*", silent.url())).await;
        }
        for _ in 0..8 {
            post("/v1/customers", "").await;
        }
    }
    let good = Receiver::good();
    good.subscribe(&app, "*").await;
    let _worker = Worker::start(&app);
    // 16 of them get 8 slots each, and from then on each of the others gets one.
    eventually("the silent ones have all they may", || silent.count() >= 128);
    let begun = Instant::now();
    cause_events(&app, 1).await;
    eventually("the event", || good.count() == 1);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert!(silent.count() < 256, "the silent ones have {} places", silent.count());
}

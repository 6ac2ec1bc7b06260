//! The official Python SDK works unmodified. Its scripts are in `tests/sdk`, and these tests run them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oncepay::idempotency::faults::{Faults, Point};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Fate, Journal, LossyProxy, Passage, TestApp, TestDatabase, eventually, sdk};

/// How many requests of `pay.py` carry a key: a payment, a decline, a refund, a hold and its capture.
const KEYED: usize = 5;

/// A script of `tests/sdk`, about to run against this address.
fn script(name: &str, address: SocketAddr, database: &TestDatabase) -> Command {
    let mut command = sdk::python();
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(name));
    command.env("ONCEPAY_URL", format!("http://{address}")).env("ONCEPAY_KEY", &database.api_key);
    command.env_remove("ONCEPAY_RETRIES").env_remove("ONCEPAY_INSISTS");
    command
}

#[tokio::test]
async fn the_official_python_sdk_just_works() {
    let app = TestApp::spawn();
    let printed = sdk::finish(script("suite.py", app.address, &app.database)).await;
    let checks = printed.lines().rev().find_map(|line| line.split_once(" assertions in "));
    let checks: usize = checks.expect("the suite counts its checks").0.parse().unwrap();
    assert!(checks >= 80, "the suite checks too little: {printed}");
    app.database.assert_clean();
}

/// Runs `pay.py`, and returns what it reports.
async fn pay(command: Command) -> Value {
    let printed = sdk::finish(command).await;
    let report: Value = serde_json::from_str(&printed).expect(&printed);
    let statuses = json!(["succeeded", "generic_decline", "succeeded", "requires_capture", "succeeded"]);
    assert_eq!(report["statuses"], statuses);
    report
}

/// Checks that each of the five requests was done once, whatever the connection lost.
#[track_caller]
fn assert_paid_once(database: &TestDatabase) {
    let counted =
        ["charges", "payment_intents", "refunds", "balance_transactions"].map(|table| database.count(table));
    assert_eq!(counted, [3, 3, 1, 3]);
    assert_eq!(database.count("idempotency_records"), i64::try_from(KEYED).unwrap());
    let balance = "SELECT sum(amount)::bigint AS number FROM balance_transactions";
    assert_eq!(database.number(balance), 1000 - 400 + 700);
    database.assert_clean();
}

/// The passages of each key, in order.
fn by_key(journal: &Journal) -> Vec<Vec<Passage>> {
    let mut keys: Vec<Vec<Passage>> = Vec::new();
    for passage in journal.lock().unwrap().iter().filter(|passage| !passage.key.is_empty()) {
        match keys.iter_mut().find(|passages| passages[0].key == passage.key) {
            Some(passages) => passages.push(passage.clone()),
            None => keys.push(vec![passage.clone()]),
        }
    }
    keys
}

#[tokio::test]
async fn when_answers_are_lost_after_the_commit_the_sdk_ends_with_one_payment() {
    let app = TestApp::spawn();
    let journal = Journal::default();
    let fate = |attempt| if attempt <= 2 { Fate::AnswerLost } else { Fate::Delivered };
    let proxy = LossyProxy::start(app.address, &journal, fate);
    pay(script("pay.py", proxy.address, &app.database)).await;
    assert_paid_once(&app.database);
    let keys = by_key(&journal);
    assert_eq!(keys.len(), KEYED, "{keys:?}");
    for passages in keys {
        let [first, second, third] = &passages[..] else { panic!("three attempts: {passages:?}") };
        assert!(!first.is_replay && second.is_replay && third.is_replay, "{passages:?}");
        assert!(first.status == second.status && second.status == third.status, "{passages:?}");
        assert_eq!(third.fate, Fate::Delivered);
    }
}

#[tokio::test]
async fn when_requests_are_lost_on_their_way_the_sdk_ends_with_one_payment() {
    let app = TestApp::spawn();
    let journal = Journal::default();
    let fate = |attempt| if attempt <= 2 { Fate::RequestLost } else { Fate::Delivered };
    let proxy = LossyProxy::start(app.address, &journal, fate);
    pay(script("pay.py", proxy.address, &app.database)).await;
    assert_paid_once(&app.database);
    let keys = by_key(&journal);
    assert_eq!(keys.len(), KEYED, "{keys:?}");
    for passages in keys {
        let [first, second, third] = &passages[..] else { panic!("three attempts: {passages:?}") };
        assert_eq!((first.status, second.status), (None, None));
        assert!(!third.is_replay && third.status.is_some(), "{passages:?}");
    }
}

#[tokio::test]
async fn when_the_sdk_gives_up_a_caller_who_retries_with_the_same_key_ends_with_one_payment() {
    let app = TestApp::spawn();
    let journal = Journal::default();
    let fate = |attempt| match attempt {
        1 => Fate::RequestLost,
        2 | 3 => Fate::AnswerLost,
        _ => Fate::Delivered,
    };
    let proxy = LossyProxy::start(app.address, &journal, fate);
    let mut command = script("pay.py", proxy.address, &app.database);
    command.env("ONCEPAY_INSISTS", "1");
    let report = pay(command).await;
    assert_eq!(report["given_up"], KEYED);
    assert_paid_once(&app.database);
    assert!(by_key(&journal).iter().all(|passages| passages.len() == 4 && passages[3].is_replay));
}

#[tokio::test]
async fn when_a_retry_comes_while_the_first_request_still_runs_the_sdk_waits_and_ends_with_one_payment() {
    let journal = Journal::default();
    let conflicts = {
        let journal = Arc::clone(&journal);
        move || journal.lock().unwrap().iter().filter(|passage| passage.status == Some(409)).count()
    };
    // The first request runs until its own retry has been refused.
    let faults = {
        let (conflicts, met) = (conflicts.clone(), AtomicBool::new(false));
        Faults::new(move |point, call| {
            if point == Point::AfterEffect && call.claim.is_some() && !met.swap(true, Ordering::SeqCst) {
                eventually("the refusal of the retry", || conflicts() > 0);
            }
        })
    };
    let app = TestApp::with(|builder| builder.faults = faults);
    let fate = |attempt| if attempt == 1 { Fate::CutOff } else { Fate::Delivered };
    let proxy = LossyProxy::start(app.address, &journal, fate);
    let mut command = script("pay.py", proxy.address, &app.database);
    // On a busy machine the end of the first may take longer than two retries wait.
    command.env("ONCEPAY_RETRIES", "6");
    pay(command).await;
    assert!(conflicts() > 0);
    assert_paid_once(&app.database);
    for passages in by_key(&journal) {
        let last = passages.last().unwrap();
        assert!(last.fate == Fate::Delivered && last.is_replay, "{passages:?}");
    }
}

//! `GET /v1/idempotency_keys/{key}`: what became of a request whose answer was lost.

use std::time::Duration;

use oncepay::idempotency::faults::Point;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde_json::Value;

use crate::support::bytes::Bytes;
use crate::support::{Gate, Reply, TestApp, eventually, fresh_key};

const CUSTOMERS: &str = "/v1/customers";

/// The path of a key. Each character that might mean something in a path is escaped.
fn path_of(key: &str) -> String {
    format!("/v1/idempotency_keys/{}", utf8_percent_encode(key, NON_ALPHANUMERIC))
}

async fn look_up(app: &TestApp, key: &str) -> Reply {
    app.get(&path_of(key)).send().await
}

/// Looks up a key that is already written as part of a path.
fn look_up_path(app: &TestApp, key: &str) -> Reply {
    Bytes::get(app, format!("/v1/idempotency_keys/{key}")).send(app).expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_unknown_then_in_progress_then_completed_and_after_its_lifetime_unknown_again() {
    let key = fresh_key();
    let (gate, faults) = Gate::at(Point::AfterEffect, &key);
    let app = TestApp::with(|builder| builder.faults = faults);
    let unknown = look_up(&app, &key).await.expect_error(404, "resource_missing");
    let message = unknown.body["error"]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("No such idempotency key: '{key}'")), "{message}");
    assert!(message.ends_with("send the same request again with the same key."), "{message}");

    let first = tokio::spawn(app.post(CUSTOMERS).key(&key).form("name=Ada").send());
    eventually("the request", || gate.is_waited_for());
    for _ in 0..3 {
        let running = look_up(&app, &key).await.expect(200);
        assert_eq!(
            (&running.body["object"], &running.body["key"]),
            (&"idempotency_key".into(), &key.as_str().into())
        );
        assert_eq!(running.body["status"], "in_progress");
        for later in ["status_code", "request_id", "created", "expires"] {
            assert_eq!(running.body[later], Value::Null);
        }
    }
    look_up(&app, &format!("{key}x")).await.expect_error(404, "resource_missing");
    let other = app.database.other_account();
    let theirs = || app.call_as(&other, Method::GET, &path_of(&key)).send();
    theirs().await.expect_error(404, "resource_missing");
    gate.open();

    // The look-ups did not disturb it.
    let first = first.await.unwrap().expect(201);
    let before = app.database.contents();
    let completed = look_up(&app, &key).await.expect(200);
    assert_eq!(
        (&completed.body["status"], &completed.body["status_code"]),
        (&"completed".into(), &201.into())
    );
    assert_eq!(completed.body["request_id"], first.header("Request-Id").unwrap());
    assert_eq!(completed.body["created"], first.body["created"]);
    let created = completed.body["created"].as_i64().unwrap();
    assert_eq!(completed.body["expires"], created + 24 * 3600);
    // The look-up does not show the answer; only the request itself replays it.
    assert!(!String::from_utf8_lossy(&completed.bytes).contains("Ada"));
    theirs().await.expect_error(404, "resource_missing");
    assert_eq!(app.database.contents(), before);

    app.state.clock.advance(Duration::from_secs(24 * 3600 + 1));
    look_up(&app, &key).await.expect_error(404, "resource_missing");
    assert!(!app.post(CUSTOMERS).key(&key).form("name=Ada").send().await.expect(201).is_replay());
    assert_eq!(look_up(&app, &key).await.expect(200).body["status"], "completed");
}

#[tokio::test]
async fn a_failed_request_leaves_its_key_unknown_and_a_decline_completes_it() {
    let app = TestApp::spawn();
    let charge = |key: &str, source: &str| {
        app.post("/v1/charges").key(key).form(&format!("amount=1000&currency=usd&source={source}")).send()
    };
    charge("refused", "tok_nope").await.expect_error(400, "resource_missing");
    look_up(&app, "refused").await.expect_error(404, "resource_missing");
    charge("declined", "tok_visa_chargeDeclined").await.expect_error(402, "card_declined");
    assert_eq!(look_up(&app, "declined").await.expect(200).body["status_code"], 402);
}

#[tokio::test]
async fn every_key_can_be_looked_up_whatever_its_characters() {
    let app = TestApp::spawn();
    let long = "k".repeat(255);
    let visible: String = ('!'..='~').collect();
    let keys = [
        "a/b",
        "/",
        "//",
        "a//b/",
        "a/../b",
        "a%b",
        "%2F",
        "%",
        "a+b",
        "a\"b",
        "a?b=c",
        "a#b",
        "a&b;c=d",
        "{key}",
        ":.+",
        "\\",
        "completed",
        "search",
        "a/search",
        &long,
        &visible,
    ];
    for key in keys {
        look_up(&app, key).await.expect_error(404, "resource_missing");
        app.post(CUSTOMERS).key(key).form("").send().await.expect(201);
        let found = look_up(&app, key).await.expect(200);
        assert_eq!((&found.body["key"], &found.body["status"]), (&key.into(), &"completed".into()));
    }
    // A key that begins with a quote can only be sent as a quoted string, and is looked up without its quoting.
    app.post(CUSTOMERS).key("\"\\\"q\"").form("").send().await.expect(201);
    assert_eq!(look_up(&app, "\"q").await.expect(200).body["key"], "\"q");
    // Characters without a meaning in a path need not be escaped.
    for (path, key) in
        [("a/b", "a/b"), ("a//b/", "a//b/"), ("a+b", "a+b"), ("a%2fb", "a/b"), ("%252F", "%2F")]
    {
        let reply = look_up_path(&app, path);
        assert_eq!(reply.expect(200).body["key"], key, "{path}");
    }
    look_up_path(&app, "a%20b").expect_error(404, "resource_missing");
}

#[tokio::test]
async fn a_malformed_key_is_unknown() {
    let app = TestApp::spawn();
    for path in ["%00", "a%00b", "%ff%fe", "a%20b", "%0a", "cl%C3%A9", &"k".repeat(256), "%zz%00"] {
        look_up_path(&app, path).expect_error(404, "resource_missing");
    }
    // A look-up without a key has no route.
    app.get("/v1/idempotency_keys/").send().await.expect_error(404, "");
    app.call_as("sk_test_nobody_has_this_key", Method::GET, &path_of("a")).send().await.expect_error(401, "");
}

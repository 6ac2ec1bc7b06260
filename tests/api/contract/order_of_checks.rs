//! The order of checks, the headers of every answer, and the advice of each error.

use std::time::{Duration, Instant};

use oncepay::idempotency::faults::Point;
use reqwest::Method;

use crate::support::bytes::{Bytes, FORM};
use crate::support::{CHARGE, Gate, Raw, Reply, TestApp, eventually, fresh_key, probe_routes};

/// A body whose announced length alone is too large. The part that is sent is no JSON either.
const TOO_LARGE: &str = "Content-Length: 300000";

/// A request with several faults, which the test corrects one after the other.
struct Faulty<'a> {
    line: &'a str,
    credentials: Option<&'a str>,
    key: Option<&'a str>,
    media_type: &'a str,
    length: Option<&'a str>,
    body: &'a str,
}

impl Faulty<'_> {
    fn send(&self, app: &TestApp) -> Reply {
        let (method, target) = self.line.split_once(' ').expect("a method and a target");
        let mut request = Bytes::new(method, target).body(self.body);
        request = request.header(format!("Content-Type: {}", self.media_type));
        if let Some(key) = self.credentials {
            request = request.bearer(key);
        }
        if let Some(key) = self.key {
            request = request.key(key);
        }
        if let Some(length) = self.length {
            request = request.without("Content-Length").header(length);
        }
        request.send(app).expect("an answer")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_many_faults_hears_of_them_in_the_order_of_the_contract() {
    let running = fresh_key();
    let (gate, faults) = Gate::at(Point::AfterClaim, &running);
    let app = TestApp::with(|builder| builder.faults = faults);
    let (good, used) = (app.database.api_key.clone(), fresh_key());
    app.post("/v1/charges")
        .key(&used)
        .form("amount=100&currency=usd&source=tok_visa")
        .send()
        .await
        .expect(201);
    let first = tokio::spawn(app.post("/v1/customers").key(&running).form("").send());
    eventually("the running request", || gate.is_waited_for());
    let before = app.database.contents();

    let mut request = Faulty {
        line: "POST /v1/nope",
        credentials: None,
        key: None,
        media_type: "text/plain",
        length: Some(TOO_LARGE),
        body: "{\"amount\":",
    };
    let route = request.send(&app).expect_error(404, "");
    assert_eq!(route.body["error"]["message"], "Unrecognized request URL (POST: /v1/nope).");
    request.line = "PUT /v1/charges";
    let method = request.send(&app).expect_error(405, "");
    assert_eq!(method.header("Allow"), Some("GET, HEAD, POST"));
    request.line = "POST /v1/charges?a=%zz";
    let credentials = request.send(&app).expect_error(401, "");
    assert!(credentials.header("WWW-Authenticate").is_some());
    // The database checks the credentials much later.
    request.credentials = Some("sk_test_nobody_has_this_key");
    request.send(&app).expect_error(400, "idempotency_key_required");
    request.key = Some("\"open");
    request.send(&app).expect_error(400, "idempotency_key_invalid");
    request.key = Some(&used);
    request.send(&app).expect_error(415, "");
    request.media_type = "application/json";
    request.send(&app).expect_error(413, "");
    request.length = None;
    request.send(&app).expect_error(400, "");
    request.body = "{\"amount\":\"ten\",\"nope\":1}";
    let query = request.send(&app).expect_error(400, "");
    assert!(query.body["error"]["message"].as_str().unwrap().contains('%'), "{}", query.body);
    request.line = "POST /v1/charges";
    let unknown = request.send(&app).expect_error(401, "");
    assert!(unknown.body["error"]["message"].as_str().unwrap().starts_with("Invalid API Key provided"));
    request.credentials = Some(&good);
    request.send(&app).expect_error(422, "idempotency_key_reused");
    request.key = Some(&running);
    request.send(&app).expect_error(409, "idempotency_key_in_use");
    request.key = Some("fresh");
    request.send(&app).expect_error(400, "parameter_invalid_integer");
    assert_eq!(app.database.contents(), before);
    request.body = "{\"amount\":1000,\"currency\":\"usd\",\"source\":\"tok_visa\"}";
    request.send(&app).expect(201);

    gate.open();
    first.await.unwrap().expect(201);
}

#[tokio::test]
async fn checks_that_need_no_database_run_without_one() {
    // Nothing listens there.
    let app = TestApp::with(|builder| builder.url = Some("postgres://oncepay@127.0.0.1:1/none".to_owned()));
    let good = app.database.api_key.clone();
    let right = Faulty {
        line: "POST /v1/charges",
        credentials: Some(&good),
        key: Some("a-key"),
        media_type: "application/json",
        length: None,
        body: "{}",
    };
    let cases = [
        (404, Faulty { line: "POST /v1/nope", ..right }),
        (405, Faulty { line: "DELETE /v1/charges", ..right }),
        (401, Faulty { credentials: None, ..right }),
        (400, Faulty { key: Some("a b"), ..right }),
        (400, Faulty { key: None, ..right }),
        (415, Faulty { media_type: "text/plain", ..right }),
        (413, Faulty { length: Some(TOO_LARGE), ..right }),
        (400, Faulty { body: "{", ..right }),
    ];
    for (status, case) in cases {
        // A check that asked the database first would answer 503.
        case.send(&app).expect(status);
    }
    let begun = Instant::now();
    let reply = right.send(&app).expect_error(503, "");
    assert_eq!(reply.body["error"]["retry"], "same_key");
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    // Without a database, wrong credentials look like right ones.
    Faulty { credentials: Some("sk_test_nobody_has_this_key"), ..right }.send(&app).expect_error(503, "");
}

#[tokio::test]
async fn the_server_waits_ten_seconds_for_a_body() {
    let app = TestApp::spawn();
    let mut connection = Raw::connect(app.address);
    let request = Bytes::post(&app, FORM, b"amount=").key("slow");
    let request = request.without("Content-Length").header("Content-Length: 100");
    let begun = Instant::now();
    connection.ask(&request.write()).expect("an answer").expect_error(408, "");
    assert!(connection.closed_within(Duration::from_secs(9)).is_some());
    let waited = begun.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(19)).contains(&waited), "{waited:?}");
    let reply =
        app.post("/v1/charges").key("slow").form("amount=100&currency=usd&source=tok_visa").send().await;
    assert!(!reply.expect(201).is_replay());
}

#[tokio::test]
async fn every_answer_has_a_request_id_forbids_storage_and_echoes_the_headers_that_sdks_read() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let declined = "amount=1000&currency=usd&source=tok_visa_chargeDeclined";
    app.post("/v1/charges").key("used").form(CHARGE).send().await.expect(201);
    let cases: &[(u16, &str, &str, &str, &str, &str)] = &[
        (201, "POST", "/v1/charges", "new", "", CHARGE),
        (201, "POST", "/v1/charges", "used", "", CHARGE),
        (400, "POST", "/v1/charges", "used", "", declined),
        (402, "POST", "/v1/charges", "declined", "", declined),
        (402, "POST", "/v1/charges", "declined", "", declined),
        (400, "POST", "/v1/charges", "bad key", "", CHARGE),
        (400, "POST", "/v1/charges", "fix", "", "amount=ten"),
        (400, "POST", "/v1/charges", "fix", "", "a=%"),
        (400, "POST", "/v1/charges", "fix", "application/json", "{"),
        (415, "POST", "/v1/charges", "fix", "text/plain", "?"),
        (413, "POST", "/v1/charges", "fix", "", ""),
        (404, "POST", "/v1/charges/ch_x", "fix", "", ""),
        (404, "POST", "/v1/charges/%ff/capture", "fix", "", ""),
        (500, "POST", "/v1/forgetful", "fix", "", ""),
        (500, "POST", "/v1/panic", "fix", "", ""),
        (500, "POST", "/v1/probe", "fix", "", "name=a&fail=panic"),
        (200, "GET", "/v1/charges", "ignored", "", ""),
        (400, "GET", "/v1/charges?limit=0", "ignored", "", ""),
        (400, "GET", "/v1/charges?a=%", "ignored", "", ""),
        (404, "GET", "/v1/charges/%ff", "ignored", "", ""),
        (404, "GET", "/v1/idempotency_keys/x", "ignored", "", ""),
        (404, "GET", "/v1/idempotency_keys/%00", "ignored", "", ""),
        (404, "GET", "/v1/nope", "ignored", "", ""),
        (404, "GET", "/nope", "ignored", "", ""),
        (404, "GET", "//v1/charges", "ignored", "", ""),
        (404, "GET", "/v1/charges/", "ignored", "", ""),
        (404, "POST", "/", "ignored", "", ""),
        (405, "PUT", "/v1/charges", "ignored", "", ""),
        (405, "PATCH", "/v1/customers/x", "ignored", "", ""),
        (405, "BREW", "/v1/charges", "ignored", "", ""),
        (405, "OPTIONS", "/v1/charges", "ignored", "", ""),
        (404, "DELETE", "/v1/customers/x", "ignored", "", ""),
        (200, "GET", "/metrics", "ignored", "", ""),
        (200, "GET", "/healthz", "ignored", "", ""),
        (200, "GET", "/readyz", "ignored", "", ""),
        (405, "POST", "/metrics", "ignored", "", ""),
    ];
    let mut ids = Vec::new();
    for (status, method, path, key, media_type, body) in cases {
        let mut request = Bytes::new(method, path).bearer(&app.database.api_key).key(key);
        request = request.header("Stripe-Version: 2026-08-26").body(body);
        if !media_type.is_empty() {
            request = request.header(format!("Content-Type: {media_type}"));
        }
        if *status == 413 {
            request = request.without("Content-Length").header(TOO_LARGE);
        }
        let reply = request.send(&app).expect("an answer");
        assert_eq!(reply.status, *status, "{method} {path} {key}: {reply:?}");
        assert_eq!(reply.header("Cache-Control"), Some("no-store"), "{method} {path}");
        assert_eq!(reply.header("Idempotency-Key"), Some(*key), "{method} {path}");
        assert_eq!(reply.header("Stripe-Version"), Some("2026-08-26"), "{method} {path}");
        assert!(reply.header("Stripe-Notice").is_none() && reply.header("Set-Cookie").is_none());
        let id = reply.header("Request-Id").unwrap_or_else(|| panic!("{method} {path}: {reply:?}"));
        assert!(id.starts_with("req_") && id.len() == 36, "{id}");
        ids.push(id.to_owned());
        if *status >= 400 {
            assert_advice(&reply, &format!("{method} {path} {key}"));
        }
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "two answers have one id");
    // A header that was not sent is not echoed.
    let reply = app.call(Method::GET, "/v1/charges").send().await.expect(200);
    assert!(reply.header("Idempotency-Key").is_none() && reply.header("Stripe-Version").is_none());
}

#[tokio::test]
async fn acting_for_another_account_is_refused_and_changes_nothing() {
    let app = TestApp::spawn();
    let before = app.database.contents();
    let call = || app.post("/v1/charges").key("key").form(CHARGE);
    let own = app.read("/v1/account").await["id"].as_str().unwrap().to_owned();
    for header in ["Stripe-Account", "Stripe-Context"] {
        for account in ["acct_1", "acct_1/acct_2", &own, ""] {
            let reply = call().header(header, account).send().await.expect_error(400, "");
            assert!(reply.body["error"]["message"].as_str().unwrap().contains(header));
            app.get("/v1/charges").header(header, account).send().await.expect_error(400, "");
        }
    }
    assert_eq!(app.database.contents(), before);
    assert!(!call().send().await.expect(201).is_replay());
}

/// The table of advice: status, type and code, and what body and header advise about the key.
#[track_caller]
fn assert_advice(reply: &Reply, what: &str) {
    let error = &reply.body["error"];
    let remembered = reply.status == 402 && error["charge"].is_string();
    let expected = match reply.status {
        409 | 429 | 500.. => "same_key",
        _ if remembered || error["code"] == "idempotency_key_reused" => "new_key",
        _ => "fix_request",
    };
    assert_eq!(error["retry"], expected, "{what}: {error}");
    let header = if expected == "same_key" { "true" } else { "false" };
    assert_eq!(reply.header("Stripe-Should-Retry"), Some(header), "{what}");
    if expected == "same_key" {
        assert_eq!(reply.header("Connection"), Some("close"), "{what}");
    }
    let error_type = match reply.status {
        402 => "card_error",
        500.. => "api_error",
        _ if error["code"] == "idempotency_key_reused" => "idempotency_error",
        _ => "invalid_request_error",
    };
    assert_eq!(error["type"], error_type, "{what}");
    assert_eq!(reply.header("Content-Type"), Some("application/json"), "{what}");
}

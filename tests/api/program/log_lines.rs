//! The log: each line is a JSON object, each request has one line, and no line holds a secret at any level.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use oncepay::idempotency::faults::{PANIC_AT, Point};
use serde_json::{Value, json};

use crate::support::{Program, Raw, TestDatabase, eventually, fresh_key};

const SECRET_KEY: &str = "the-secret-of-this-server-is-long,an-older-secret-of-this-server";
const BAD_KEY: &str = "sk_test_5ecretkeythatnobodyhas0123456789";
/// `BAD_KEY:` in Base64.
const BAD_KEY_BASIC: &str = "c2tfdGVzdF81ZWNyZXRrZXl0aGF0bm9ib2R5aGFzMDEyMzQ1Njc4OTo=";
const NUMBER: &str = "4242424242424242";

/// The words that no line may contain. They come from headers, paths, queries and bodies: a line with one of them would
/// also contain what stood beside it.
const NEVER: &[&str] = &[
    "the-secret-of-this-server-is-long",
    "an-older-secret-of-this-server",
    "the-password-of-the-database",
    BAD_KEY,
    "5ecretkeythatnobodyhas",
    BAD_KEY_BASIC,
    NUMBER,
    "4242 4242",
    "4242-4242",
    "4242+4242",
    "4539578763621486",
    "424242424242",
    // The code alone is so short that ids and times may contain it.
    "cvc",
    "=9173",
    "\"9173",
    "canary",
];

/// Requests with secrets in every place where a client may put some, each with its name.
fn requests(api_key: &str) -> Vec<(&'static str, String)> {
    let card = format!("card[number]={NUMBER}&card[exp_month]=12&card[exp_year]=2040&card[cvc]=9173");
    let charge = |card: &str| format!("amount=1000&currency=usd&{card}");
    let good = format!("Bearer {api_key}");
    let send = |name, line: &str, authorization: &str, extra: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: canary-host\r\nConnection: close\r\nContent-Length: {length}\r\n"
        );
        (
            name,
            format!("{head}Authorization: {authorization}\r\nX-Canary: canary-header\r\n{extra}\r\n{body}"),
        )
    };
    let post = |name, body: &str| {
        let key = format!("Idempotency-Key: of-the-log-canary-key-{name}\r\n");
        send(name, "POST /v1/charges", &good, &key, body)
    };
    let json_type = "Idempotency-Key: of-the-log-canary-json\r\nContent-Type: application/json\r\n";
    let numbered = format!("Idempotency-Key: {NUMBER}\r\nStripe-Version: {NUMBER}\r\nX-Canary: {NUMBER}\r\n");
    let context = format!("Idempotency-Key: a\r\nStripe-Context: {NUMBER}\r\n");
    let media = format!("Idempotency-Key: a\r\nContent-Type: text/{NUMBER}\r\n");
    let basic = format!("Basic {BAD_KEY_BASIC}");
    vec![
        post("typed", &charge(&card)),
        post("typed", &charge(&card)),
        post("typed", &charge("source=tok_visa")),
        post("spaced", &charge(&card.replace(NUMBER, "4242+4242+4242+4242"))),
        post("dashed", &charge(&card.replace(NUMBER, "4242-4242-4242-4242"))),
        post("wrong", &charge(&card.replace(NUMBER, "4242424242424241"))),
        post("live", &charge(&card.replace(NUMBER, "4539578763621486"))),
        post("coded", &charge(&card.replace("9173", "canary"))),
        post("noted", &charge(&format!("source=tok_visa&metadata[canary]={NUMBER}&description={NUMBER}"))),
        post("unknown", &charge(&format!("source=tok_visa&{NUMBER}=1"))),
        post("mistyped", &charge(&format!("source={NUMBER}"))),
        post("mistyped", &format!("amount={NUMBER}{NUMBER}&currency=usd&source=tok_visa")),
        post("mistyped", &format!("amount=1000&currency={NUMBER}&source=tok_visa")),
        post("broken", &format!("card[number={NUMBER}")),
        send(
            "broken",
            "POST /v1/charges",
            &good,
            json_type,
            &format!("{{\"card\":{{\"number\":\"{NUMBER}\","),
        ),
        send("broken", "POST /v1/charges", &good, json_type, &format!("{{\"{NUMBER}\":1,\"{NUMBER}\":1}}")),
        send("key", "POST /v1/customers", &good, &numbered, ""),
        send("key", "POST /v1/customers", &good, &numbered, "name=canary"),
        send("key", "POST /v1/customers", &good, &numbered.replace(NUMBER, &format!("\"{NUMBER}")), ""),
        send("context", "POST /v1/customers", &good, &context, ""),
        send("media type", "POST /v1/charges", &good, &media, "canary"),
        send("path", &format!("GET /v1/charges/{NUMBER}"), &good, "", ""),
        send("path", &format!("GET /v1/idempotency_keys/{NUMBER}"), &good, "", ""),
        send("path", &format!("GET /canary/{NUMBER}"), &good, "", ""),
        send("path", &format!("GET /canary/{NUMBER}/%ff%0a"), &good, "", ""),
        send("query", &format!("GET /v1/charges?canary={NUMBER}"), &good, "", ""),
        send("query", &format!("GET /v1/charges?starting_after={NUMBER}"), &good, "", ""),
        send("method", "PUT /v1/charges/canary", &good, "", &card),
        send("bearer", "GET /v1/charges", &format!("Bearer {BAD_KEY}"), "", ""),
        send("bearer", "POST /v1/charges", &format!("Bearer {BAD_KEY}"), "Idempotency-Key: a\r\n", &card),
        send("basic", "GET /v1/charges", &basic, "", ""),
        send("scheme", "GET /v1/charges", &format!("Digest {BAD_KEY}"), "", ""),
        send("scheme", "GET /v1/charges", BAD_KEY, "", ""),
        send("metrics", "GET /metrics", &good, "", ""),
    ]
}

/// Bytes that are no HTTP at all, so that the parser of the server has something to log.
fn no_requests(api_key: &str) -> Vec<String> {
    vec![
        format!("GET /canary/{NUMBER} HTTP/9.9\r\nAuthorization: Bearer {api_key}\r\n\r\n"),
        format!("GET /v1/charges HTTP/1.1\r\nAuthorization: Bearer {api_key}\r\nX canary: {NUMBER}\r\n\r\n"),
        format!(
            "POST /v1/charges HTTP/1.1\r\nAuthorization: Bearer {api_key}\r\nContent-Length: {NUMBER}x\r\n\r\n"
        ),
        format!(
            "POST /v1/charges HTTP/1.1\r\nAuthorization: Bearer {api_key}\r\nIdempotency-Key: a\r\n\
             Transfer-Encoding: chunked\r\n\r\n{NUMBER}{NUMBER}canary\r\ncanary"
        ),
        format!("canary {NUMBER}\r\n\r\n"),
    ]
}

/// Starts the program as `environment` says, drives it with all requests, stops it, and returns the ids of the
/// requests, its log and its API key.
fn drive(environment: &[(&str, &str)]) -> (Vec<String>, String, String) {
    let database = Arc::new(TestDatabase::new());
    // PostgreSQL trusts whoever comes through its socket, and asks for no password; it is in the settings all the same.
    let url = database.url.replacen('@', ":the-password-of-the-database@", 1);
    let mut all = vec![
        ("SECRET_KEY", SECRET_KEY),
        ("DATABASE_URL", &url),
        ("RUST_LOG", "trace,actix_http::h1=trace,actix_web=trace"),
    ];
    all.extend(environment);
    let mut program = Program::start(&database, &all);
    let mut ids = Vec::new();
    for (name, request) in requests(&database.api_key) {
        let reply = Raw::connect(program.address).ask(request.as_bytes()).expect(name);
        ids.push(reply.header("Request-Id").unwrap_or_else(|| panic!("{name}: {reply:?}")).to_owned());
    }
    for request in no_requests(&database.api_key) {
        let mut connection = Raw::connect(program.address);
        connection.send(request.as_bytes());
        connection.closed_within(Duration::from_millis(300));
    }
    program.end();
    (ids, program.log(), database.api_key.clone())
}

#[track_caller]
fn assert_no_secrets(log: &str, api_key: &str) {
    // The code of an error is no secret.
    let log = log.replace("invalid_cvc", "");
    for secret in NEVER.iter().chain([&api_key, &&api_key[8..40]]) {
        let found: Vec<&str> = log.lines().filter(|line| line.contains(secret)).take(3).collect();
        assert!(found.is_empty(), "{secret} stands in {found:#?}");
    }
}

#[test]
fn each_log_line_is_a_json_object_each_request_has_one_and_no_line_holds_a_secret_at_any_level() {
    let (ids, log, api_key) = drive(&[("LOG_FORMAT", "json")]);
    assert_no_secrets(&log, &api_key);
    let mut lines: BTreeMap<String, Value> = BTreeMap::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for member in ["time", "level", "target", "message"] {
            assert!(line[member].is_string(), "{line}");
        }
        if line["target"] == "oncepay::request" {
            let id = line["request_id"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
            assert!(lines.insert(id, line).is_none(), "two lines of one request");
        }
    }
    for id in &ids {
        let line = &lines[id];
        assert!(line["status"].is_u64() && line["latency_ms"].is_f64(), "{line}");
        for member in ["account", "method", "route", "idempotency", "error", "key", "original", "object"] {
            assert!(line[member].is_string(), "{line}");
        }
    }
    let shown = |number: usize| {
        let line = &lines[&ids[number]];
        let account = line["account"].as_str().unwrap();
        (
            account.starts_with("acct_"),
            line["method"].clone(),
            line["route"].clone(),
            line["status"].clone(),
            line["idempotency"].clone(),
        )
    };
    let expected = |account: bool, line: [&str; 2], status: u16, idempotency: &str| {
        (account, json!(line[0]), json!(line[1]), json!(status), json!(idempotency))
    };
    assert_eq!(shown(0), expected(true, ["POST", "/v1/charges"], 201, "executed"));
    assert_eq!(shown(1), expected(true, ["POST", "/v1/charges"], 201, "replayed"));
    assert_eq!(shown(2), expected(true, ["POST", "/v1/charges"], 422, "mismatch"));
    // A duplicate and its original are found by the key, the object and the first request.
    let of_key = |member: &str| [0, 1].map(|number| lines[&ids[number]][member].as_str().unwrap().to_owned());
    let [first, second] = of_key("key");
    assert!(first == second && first.ends_with('…') && first.chars().count() == 11, "{first} {second}");
    let [first, second] = of_key("object");
    assert!(first == second && first.starts_with("ch_"), "{first} {second}");
    assert_eq!(of_key("original"), ["-".to_owned(), ids[0].clone()]);
    let errors = [0, 2].map(|number: usize| lines[&ids[number]]["error"].as_str().unwrap());
    assert_eq!(errors, ["-", "idempotency_key_reused"]);
    let by_outcome: Vec<&str> = ids.iter().map(|id| lines[id]["idempotency"].as_str().unwrap()).collect();
    for outcome in ["executed", "invalid", "rolled_back", "-"] {
        assert!(by_outcome.contains(&outcome), "{outcome} is not in {by_outcome:?}");
    }
    assert_eq!(shown(ids.len() - 1), expected(false, ["GET", "/metrics"], 200, "-"));
    assert_eq!(shown(ids.len() - 2), expected(false, ["GET", "/v1/charges"], 401, "-"));
}

#[test]
fn the_log_in_plain_text_holds_no_secret_either() {
    let (ids, log, api_key) = drive(&[("LOG_FORMAT", "text")]);
    assert_no_secrets(&log, &api_key);
    for id in ids {
        // A duplicate names the request that it repeats, too.
        let own = format!("request_id={id} ");
        assert_eq!(
            log.lines().filter(|line| line.contains(&own) && line.contains("oncepay::request")).count(),
            1
        );
    }
}

#[test]
fn a_panic_has_a_log_line_and_its_request_has_another() {
    let database = Arc::new(TestDatabase::new());
    let program =
        Program::start(&database, &[("LOG_FORMAT", "json"), (PANIC_AT, Point::AfterEffect.as_str())]);
    let request = requests(&database.api_key).swap_remove(0).1;
    let mut connection = Raw::connect(program.address);
    let reply = connection.ask(request.as_bytes()).expect("an answer").expect_any_error(500);
    let id = reply.header("Request-Id").unwrap();
    assert!(!format!("{reply:?}").contains("asks for a panic"), "{reply:?}");
    // The line of a request is written when its answer has gone out, and then the connection is closed.
    assert!(connection.closed_within(Duration::from_secs(20)).is_some());
    let log = program.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of = |target: &str| lines.iter().filter(|line| line["target"] == target).collect::<Vec<_>>();
    let [panic] = of("oncepay::panic")[..] else { panic!("{log}") };
    assert!(panic["message"].as_str().unwrap().contains("faults.rs"), "{panic}");
    let [fault] = of("oncepay::http::trace")[..] else { panic!("{log}") };
    assert!(
        fault["message"].as_str().unwrap().contains("asks for a panic here") && fault["request_id"] == id,
        "{fault}"
    );
    let [line] = of("oncepay::request")[..] else { panic!("{log}") };
    assert!(line["status"] == 500 && line["request_id"] == id, "{line}");
    assert_no_secrets(&log, &database.api_key);
}

#[tokio::test]
async fn an_endpoint_that_begins_to_fail_is_logged_once() {
    let database = Arc::new(TestDatabase::new());
    let environment = [("WEBHOOK_ALLOW_PRIVATE", "true"), ("WEBHOOK_SCHEDULE", "fast")];
    let program = Program::start(&database, &environment);
    let post = async |path: &str, form: &str| {
        program.post(path).key(&fresh_key()).form(form).send().await.expect(201).id().to_owned()
    };
    let endpoint = post("/v1/webhook_endpoints", "url=http://127.0.0.1:9/&enabled_events[]=*").await;
    for _ in 0..3 {
        post("/v1/customers", "").await;
    }
    let attempts = || database.count("webhook_attempts");
    eventually("all of them and a second time", || attempts() >= 4);
    let log = program.log();
    let warnings: Vec<&str> =
        log.lines().filter(|line| line.contains("WARN") && line.contains(&endpoint)).collect();
    assert!(matches!(warnings[..], [line] if line.contains("refused")), "{warnings:?}");
}

//! The key of a request: what is one, whose it is, and what happens without one.

use std::time::Duration;

use serde_json::json;

use crate::support::bytes::Bytes;
use crate::support::{TestApp, fresh_key, probe_routes, probed};

const CUSTOMERS: &str = "/v1/customers";

#[tokio::test]
async fn what_is_no_key_is_refused_by_its_reason_and_the_handler_never_runs() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let before = app.database.contents();
    let name = fresh_key();
    let probe = Bytes::new("POST", "/v1/probe").bearer(&app.database.api_key).body(format!("name={name}"));
    let call = |keys: &[&[u8]]| {
        let add = |request: Bytes, key: &&[u8]| request.header([b"Idempotency-Key: ", *key].concat());
        keys.iter().fold(probe.clone(), add).send(&app).expect("an answer")
    };
    let (long, long_quoted) = ([b'k'; 256], [b"\"".as_slice(), &[b'k'; 256], b"\""].concat());
    let cases: [(&[&[u8]], &str); 19] = [
        (&[b""], "empty"),
        (&[b"   "], "empty"),
        (&[b"\"\""], "empty"),
        (&[&long], "255"),
        (&[&long_quoted], "255"),
        (&[b"a b"], "space"),
        (&[b"a\tb"], "control"),
        (&[b"\"a b\""], "space"),
        (&["clé".as_bytes()], "ASCII"),
        (&[b"\xff"], "ASCII"),
        (&[b"a", b"b"], "more than once"),
        (&[b"a", b"a"], "more than once"),
        (&[b"\"abc"], "not closed"),
        (&[b"\""], "not closed"),
        (&[b"\"abc\"d"], "quote"),
        (&[b"\"a\", \"b\""], "quote"),
        (&[b"\"a\\nb\""], "quote"),
        (&[b"\"abc\";p=1"], "parameters"),
        (&[b"\"abc\";p"], "parameters"),
    ];
    for (keys, reason) in cases {
        let reply = call(keys).expect_error(400, "idempotency_key_invalid");
        let error = &reply.body["error"];
        assert!(error["message"].as_str().unwrap().contains(reason), "{reason}: {error}");
        assert_eq!(
            (&error["type"], &error["retry"]),
            (&json!("invalid_request_error"), &json!("fix_request"))
        );
    }
    assert_eq!(probed(&name), 0);
    assert_eq!(app.database.contents(), before);
    // The longest key there may be, bare and quoted, is one key.
    call(&[&long[..255]]).expect(200);
    assert!(call(&[&[b"\"".as_slice(), &long[..255], b"\""].concat()]).expect(200).is_replay());
    assert_eq!(probed(&name), 1);
}

#[tokio::test]
async fn a_bare_key_and_its_quoted_form_are_one_key_and_case_counts() {
    let app = TestApp::spawn();
    let create = async |key: &str| app.post(CUSTOMERS).key(key).form("name=Ada").send().await.expect(201);
    for [one, other] in [["abc", "\"abc\""], ["a\"b\\c", "\"a\\\"b\\\\c\""], ["!~;,=/?%00", "\"!~;,=/?%00\""]]
    {
        let first = create(one).await;
        let second = create(other).await;
        assert!(!first.is_replay() && second.is_replay(), "{one} {other}");
        assert_eq!(first.bytes, second.bytes);
        // It is echoed as it was sent.
        assert_eq!(
            (first.header("Idempotency-Key"), second.header("Idempotency-Key")),
            (Some(one), Some(other))
        );
    }
    assert!(!create("ABC").await.is_replay());
    assert_eq!(app.database.count("customers"), 4);
}

#[tokio::test]
async fn two_accounts_and_two_sources_never_meet_in_a_key() {
    let app = TestApp::spawn();
    let (other_account, key) = (app.database.other_account(), fresh_key());
    // The same key, as the card network's id of an event.
    app.database.execute(&format!(
        "INSERT INTO idempotency_records SELECT id, 'network', '{key}', 1, decode(repeat('00', 36), 'hex'), id, 200, \
         'application/json', '', false, 'network', now(), now() + interval '1 day' FROM accounts"
    ));
    let create = |api_key: &str, body: &str| {
        app.call_as(api_key, reqwest::Method::POST, CUSTOMERS).key(&key).form(body).send()
    };
    let mine = create(&app.database.api_key, "name=Ada").await.expect(201);
    let theirs = create(&other_account, "name=Grace").await.expect(201);
    assert!(!mine.is_replay() && !theirs.is_replay());
    assert_eq!(create(&app.database.api_key, "name=Ada").await.expect(201).bytes, mine.bytes);
    assert_eq!(create(&other_account, "name=Grace").await.expect(201).bytes, theirs.bytes);
    create(&other_account, "name=Ada").await.expect_error(422, "idempotency_key_reused");
    assert_eq!(app.database.count("idempotency_records"), 4);
}

#[tokio::test]
async fn a_rotated_api_key_keeps_its_replays_and_a_revoked_one_gets_none() {
    let app = TestApp::spawn();
    let (key, old, new) = (fresh_key(), app.database.api_key.clone(), app.database.another_key());
    let create = |api_key: &str| {
        app.call_as(api_key, reqwest::Method::POST, CUSTOMERS).key(&key).form("name=Ada").send()
    };
    let first = create(&old).await.expect(201);
    let replay = create(&new).await.expect(201);
    assert!(replay.is_replay());
    assert_eq!(replay.bytes, first.bytes);
    app.database.revoke(&old);
    let refused = create(&old).await.expect_error(401, "");
    assert!(!refused.is_replay() && !String::from_utf8_lossy(&refused.bytes).contains("Ada"));
    assert!(refused.header("WWW-Authenticate").is_some());
    assert!(create(&new).await.expect(201).is_replay());
    assert_eq!(app.database.count("customers"), 1);
}

#[tokio::test]
async fn where_keys_are_optional_a_request_without_one_runs_in_a_transaction_unremembered() {
    let app = TestApp::with(|builder| {
        builder.routes = probe_routes;
        builder.key_is_required = false;
    });
    let name = fresh_key();
    let form = format!("name={name}");
    let rows = || app.database.count("accounts");
    for (attempt, expected) in [(1, 2), (2, 3)] {
        let reply = app.post("/v1/probe").form(&form).send().await.expect(200);
        assert!(!reply.is_replay());
        assert_eq!((probed(&name), rows()), (attempt, expected));
    }
    // What fails leaves nothing, and neither does a closure that overlooks a failed statement.
    for (ending, status) in [("error", 400), ("panic", 500), ("swallow", 500)] {
        app.post("/v1/probe").form(&format!("{form}&fail={ending}")).send().await.expect_error(status, "");
        assert_eq!(rows(), 3, "{ending}");
    }
    assert_eq!(app.database.count("idempotency_records"), 0);
    // A key that is sent works as ever, also one that is none.
    let key = fresh_key();
    let call = |key: &str, form: &str| app.post("/v1/probe").key(key).form(form).send();
    let first = call(&key, &form).await.expect(200);
    let replay = call(&key, &form).await.expect(200);
    assert!(!first.is_replay() && replay.is_replay() && replay.bytes == first.bytes);
    call(&key, &format!("{form}&status=201")).await.expect_error(422, "idempotency_key_reused");
    call("a b", &form).await.expect_error(400, "idempotency_key_invalid");
    assert_eq!((rows(), app.database.count("idempotency_records")), (4, 1));
}

#[tokio::test]
async fn a_route_may_have_a_lifetime_of_its_own() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let (key, hour) = (fresh_key(), Duration::from_secs(3600));
    let call = |path: &str| app.post(path).key(&format!("{key}{path}")).form("name=a").send();
    for path in ["/v1/probe", "/v1/secret"] {
        assert!(!call(path).await.expect(200).is_replay());
    }
    app.state.clock.advance(hour + Duration::from_secs(1));
    assert!(call("/v1/probe").await.expect(200).is_replay());
    assert!(!call("/v1/secret").await.expect(200).is_replay());
    // A day, and not a second less.
    app.state.clock.advance(22 * hour + Duration::from_secs(3500));
    assert!(call("/v1/probe").await.expect(200).is_replay());
    app.state.clock.advance(Duration::from_secs(100));
    assert!(!call("/v1/probe").await.expect(200).is_replay());
}

//! Which answers are remembered, which parts of them are stored, and what a duplicate of a running request gets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use oncepay::idempotency::faults::{Faults, Point};
use serde_json::json;

use crate::support::{CHARGE, Gate, Reply, TestApp, eventually, fresh_key, logged, probe_routes, probed};

const CHARGES: &str = "/v1/charges";

#[tokio::test]
async fn a_decline_is_committed_and_remembered() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let call = |body: &str| app.post(CHARGES).key(&key).form(body).send();
    let declined = "amount=1000&currency=usd&source=tok_visa_chargeDeclinedInsufficientFunds";
    let first = call(declined).await.expect_error(402, "card_declined");
    let after = app.database.contents();
    let replay = call(declined).await.expect_error(402, "card_declined");
    assert!(!first.is_replay() && replay.is_replay());
    assert_eq!(first.bytes, replay.bytes);
    for reply in [&first, &replay] {
        assert_eq!(reply.body["error"]["retry"], "new_key");
        assert_eq!(reply.header("Stripe-Should-Retry"), Some("false"));
    }
    assert_eq!(app.database.contents(), after);
    // The failed charge that the error names is there, and so is its event.
    let charge = first.body["error"]["charge"].as_str().unwrap();
    let charge = app.get(&format!("{CHARGES}/{charge}")).send().await.expect(200);
    assert_eq!(charge.body["status"], "failed");
    assert_eq!(app.database.number("SELECT count(*) AS number FROM events WHERE type = 'charge.failed'"), 1);
    // Another card under the same key is a reused key, so the advice to take a new one was right.
    call(CHARGE).await.expect_error(422, "idempotency_key_reused");
    app.post(CHARGES).key(&fresh_key()).form(CHARGE).send().await.expect(201);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refusal_is_forgotten_and_the_key_works_once_the_cause_is_gone() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let card = |number: &str| {
        format!(
            "amount=1000&currency=usd&card[number]={number}&card[exp_month]=12&card[exp_year]=2040&card[cvc]=123"
        )
    };
    let name = fresh_key();
    let probe = |ending: &str| format!("name={name}&fail={ending}");
    let cases = [
        (CHARGES, card("4242424242424241"), 402, "incorrect_number", "fix_request"),
        (CHARGES, card("4539578763621486"), 402, "card_declined", "fix_request"),
        (CHARGES, "amount=1000&currency=usd".to_owned(), 400, "parameter_missing", "fix_request"),
        (CHARGES, format!("{CHARGE}&unknown=1"), 400, "parameter_unknown", "fix_request"),
        (CHARGES, "amount=1&currency=usd&source=tok_visa".to_owned(), 400, "amount_too_small", "fix_request"),
        (
            CHARGES,
            "amount=1000&currency=usd&source=tok_nope".to_owned(),
            400,
            "resource_missing",
            "fix_request",
        ),
        ("/v1/charges/ch_nope", "description=a".to_owned(), 404, "resource_missing", "fix_request"),
        ("/v1/probe", probe("error"), 400, "", "fix_request"),
        ("/v1/probe", probe("panic"), 500, "", "same_key"),
        // A statement failed and the closure ignored it. Its effects are lost, so its answer must be lost too.
        ("/v1/probe", probe("swallow"), 500, "", "same_key"),
    ];
    for (path, body, status, code, retry) in cases {
        let key = fresh_key();
        let before = app.database.contents();
        for _ in 0..2 {
            let reply = app.post(path).key(&key).form(&body).send().await.expect_error(status, code);
            assert!(!reply.is_replay(), "{body}");
            assert_eq!(reply.body["error"]["retry"], retry, "{body}");
        }
        assert_eq!(app.database.contents(), before, "{path} {body}");
        let reply = app.post(CHARGES).key(&key).form(CHARGE).send().await.expect(201);
        assert!(!reply.is_replay());
    }
    assert_eq!(probed(&name), 6);
}

#[tokio::test]
async fn a_lock_timeout_is_forgotten_and_the_same_key_succeeds_later() {
    let app = TestApp::spawn();
    let (key, charge) = (fresh_key(), app.charge().await);
    let refund = || app.post("/v1/refunds").key(&key).form(&format!("charge={charge}")).send();
    let before = app.database.contents();
    let mut holder = app.database.connect();
    holder.batch_execute("BEGIN; SELECT FROM charges FOR UPDATE").unwrap();
    let reply = refund().await.expect_error(409, "lock_timeout");
    assert_eq!(reply.body["error"]["retry"], "same_key");
    assert_eq!(app.database.contents(), before);
    holder.batch_execute("ROLLBACK").unwrap();
    assert!(!refund().await.expect(201).is_replay());
    assert!(refund().await.expect(201).is_replay());
    app.database.assert_clean();
}

#[tokio::test]
async fn the_status_does_not_decide_whether_an_answer_is_remembered() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    for status in [200, 201, 202, 400, 402, 404, 409, 422, 500] {
        let (key, name) = (fresh_key(), fresh_key());
        let call = || app.post("/v1/probe").key(&key).form(&format!("name={name}&status={status}")).send();
        let (first, replay) = (call().await.expect(status), call().await.expect(status));
        assert!(!first.is_replay() && replay.is_replay(), "{status}");
        assert_eq!((&first.bytes, probed(&name)), (&replay.bytes, 1), "{status}");
        if (400..500).contains(&status) {
            assert_eq!(replay.header("Stripe-Should-Retry"), Some("false"), "{status}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_of_a_running_request_gets_409_at_once_whatever_its_body() {
    let key = fresh_key();
    let (gate, faults) = Gate::at(Point::AfterEffect, &key);
    let app = TestApp::with(|builder| builder.faults = faults);
    let call = |key: &str, body: &str| app.post(CHARGES).key(key).form(body).send();
    let first = tokio::spawn(call(&key, CHARGE));
    eventually("the first request", || gate.is_waited_for());
    let before = app.database.contents();
    // The same request, another body, an invalid body, and another route.
    let duplicates = [
        call(&key, CHARGE).await,
        call(&key, "amount=2000&currency=usd&source=tok_visa").await,
        call(&key, "amount=ten").await,
        app.post("/v1/customers").key(&format!("\"{key}\"")).json(&json!({})).send().await,
    ];
    for reply in duplicates {
        let reply = reply.expect_error(409, "idempotency_key_in_use");
        assert_eq!(reply.header("Retry-After"), Some("1"));
        assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"));
        assert_eq!(reply.body["error"]["type"], "invalid_request_error");
        assert_eq!(reply.body["error"]["retry"], "same_key");
    }
    // The first request still runs, no duplicate waited for it, and it alone has an open transaction.
    assert!(!first.is_finished());
    assert_eq!(app.database.contents(), before);
    let open = "SELECT count(*) AS number FROM pg_stat_activity WHERE datname = current_database() \
                AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
    assert_eq!(app.database.number(open), 1);
    // Another key, and the same key of another account, go through.
    call(&fresh_key(), CHARGE).await.expect(201);
    let other = app.call_as(&app.database.other_account(), reqwest::Method::POST, "/v1/customers");
    other.key(&key).form("").send().await.expect(201);
    gate.open();
    let first = first.await.unwrap().expect(201);
    let replay = call(&key, CHARGE).await.expect(201);
    assert!(!first.is_replay() && replay.is_replay());
    assert_eq!(first.bytes, replay.bytes);
    call(&key, "amount=ten").await.expect_error(422, "idempotency_key_reused");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_handler_that_forgets_its_transaction_answers_500() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let before = app.database.contents();
    let key = fresh_key();
    logged("");
    for _ in 0..2 {
        let reply = app.post("/v1/forgetful").key(&key).form("").send().await.expect_error(500, "");
        assert!(!reply.is_replay() && !String::from_utf8_lossy(&reply.bytes).contains("nothing\""));
        let lines = logged(reply.header("Request-Id").unwrap());
        let fault = lines
            .iter()
            .filter(|line| line.starts_with("ERROR") && line.contains("without committing"))
            .count();
        let request = lines
            .iter()
            .filter(|line| line.contains("oncepay::request") && line.contains("status=500"))
            .count();
        assert_eq!((fault, request), (1, 1), "{lines:#?}");
    }
    assert_eq!(app.database.contents(), before);
    app.post(CHARGES).key(&key).form(CHARGE).send().await.expect(201);
}

#[tokio::test]
async fn a_panic_between_any_two_steps_is_all_or_nothing_and_leaves_the_connection_fit_for_the_next() {
    for point in Point::ALL {
        let panicked = AtomicBool::new(false);
        let app = TestApp::with(|builder| {
            builder.pool_size = 1;
            builder.faults = Faults::new(move |here, _| {
                assert!(here != point || panicked.swap(true, Ordering::SeqCst), "told to");
            });
        });
        let before = app.database.contents();
        let call = || app.post(CHARGES).key("key").form(CHARGE).send();
        let reply = call().await.expect_error(500, "");
        assert_eq!(reply.body["error"]["retry"], "same_key");
        let committed = point == Point::AfterCommit;
        assert_eq!(app.database.contents() != before, committed, "{point:?}");
        let retry = call().await.expect(201);
        assert_eq!(retry.is_replay(), committed, "{point:?}");
        assert_eq!(app.database.count("charges"), 1, "{point:?}");
        app.database.assert_clean();
    }
}

#[tokio::test]
async fn a_second_delete_is_404_with_and_without_a_key() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let customer = app.post("/v1/customers").key(&key).form("").send().await.expect(201).id().to_owned();
    let delete = || app.delete(&format!("/v1/customers/{customer}")).key(&key).send();
    let first = delete().await.expect(200);
    assert_eq!(first.body["deleted"], true);
    let after = app.database.contents();
    for _ in 0..2 {
        assert!(!delete().await.expect_error(404, "resource_missing").is_replay());
    }
    assert_eq!(app.database.contents(), after);
    let events =
        "SELECT count(*) AS number FROM events WHERE type = 'customer.deleted' AND idempotency_key IS NULL";
    assert_eq!((app.database.number(events), app.database.count("idempotency_records")), (1, 1));
}

#[tokio::test]
async fn a_replay_has_the_headers_of_the_first_answer_and_a_date_of_its_own() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let call = || {
        app.post(CHARGES).key(&key).header("Cookie", "a=b").header("Origin", "http://x").form(CHARGE).send()
    };
    let first = call().await.expect(201);
    let begun = Instant::now();
    let replay = loop {
        let replay = call().await.expect(201);
        if replay.header("Date") != first.header("Date") {
            break replay;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the date of the first answer was remembered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let names = |reply: &Reply| {
        let mut names: Vec<String> = reply.headers.keys().map(|name| name.as_str().to_owned()).collect();
        names.sort_unstable();
        names
    };
    let first_names = [
        "cache-control",
        "content-length",
        "content-type",
        "date",
        "idempotency-key",
        "location",
        "request-id",
    ];
    assert_eq!(names(&first), first_names);
    let mut replay_names = first_names.to_vec();
    replay_names.extend(["idempotent-replayed", "original-request"]);
    replay_names.sort_unstable();
    assert_eq!(names(&replay), replay_names);
    // No column could store any other header.
    let columns = "SELECT count(*) AS number FROM information_schema.columns \
                   WHERE table_name = 'idempotency_records' AND is_nullable = 'NO'";
    assert_eq!(app.database.number(columns), 13);
    let others = "SELECT count(*) AS number FROM information_schema.columns \
                  WHERE table_name = 'idempotency_records' AND column_name NOT IN ('account_id', 'source', 'key', \
                      'fingerprint_version', 'fingerprint', 'request_id', 'status', 'content_type', 'location', 'sealed', \
                      'body', 'created_at', 'expires_at')";
    assert_eq!(app.database.number(others), 0);
    let traces = "SELECT count(*) AS number FROM idempotency_records r \
                  WHERE r::text ~* 'cookie|origin' OR location LIKE '%http%'";
    assert_eq!(app.database.number(traces), 0);
}

#[tokio::test]
async fn a_secret_answer_is_sealed_where_it_is_stored() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let (key, name) = (fresh_key(), fresh_key());
    let call = |path: &str| app.post(path).key(&format!("{key}{path}")).form(&format!("name={name}")).send();
    for (path, is_sealed) in [("/v1/secret", true), ("/v1/probe", false)] {
        let first = call(path).await.expect(200);
        let replay = call(path).await.expect(200);
        assert!(replay.is_replay());
        assert_eq!(first.bytes, replay.bytes);
        let readable = format!(
            "SELECT count(*) AS number FROM idempotency_records WHERE key = '{key}{path}' \
             AND position('{name}'::bytea IN body) > 0"
        );
        assert_eq!(app.database.number(&readable), i64::from(!is_sealed), "{path}");
        let sealed = format!(
            "SELECT count(*) AS number FROM idempotency_records WHERE key = '{key}{path}' AND sealed = {is_sealed}"
        );
        assert_eq!(app.database.number(&sealed), 1, "{path}");
    }
    // The sealed body can be opened in its own row only.
    app.database.execute(&format!(
        "UPDATE idempotency_records r SET body = s.body, sealed = true FROM idempotency_records s \
         WHERE s.key = '{key}/v1/secret' AND r.key = '{key}/v1/probe'"
    ));
    call("/v1/probe").await.expect_error(500, "");
}

#[tokio::test]
async fn answers_remembered_under_the_old_secret_are_replayed_while_it_is_rotated() {
    let (old, new) = ("an older secret, long enough", "a newer secret, long enough");
    let with = |secrets: &[&str], database| {
        let secrets = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        TestApp::with(|builder| {
            builder.routes = probe_routes;
            builder.secrets = secrets;
            builder.database = database;
        })
    };
    let before = with(&[old], None);
    let database = || Some(before.database.clone());
    let (rotating, after) = (with(&[new, old], database()), with(&[new], database()));
    let key = fresh_key();
    let call =
        |app: &TestApp, path: &str, body: &str| app.post(path).key(&format!("{key}{path}")).form(body).send();
    for path in ["/v1/probe", "/v1/secret"] {
        let first = call(&before, path, "name=a").await.expect(200);
        let replay = call(&rotating, path, "name=a").await.expect(200);
        assert!(replay.is_replay());
        assert_eq!(first.bytes, replay.bytes);
        call(&rotating, path, "name=b").await.expect_error(422, "idempotency_key_reused");
    }
    // An instance without a secret cannot compare, so a duplicate finds its answer there too; what is sealed it cannot
    // open, and says to come again with the same key.
    let replay = call(&after, "/v1/probe", "name=a").await.expect(200);
    assert!(replay.is_replay());
    call(&after, "/v1/secret", "name=a").await.expect_error(500, "");
    // New records are made under the new secret.
    let path = "/v1/secret?";
    let first = call(&rotating, path, "name=a").await.expect(200);
    let replay = call(&after, path, "name=a").await.expect(200);
    assert!(replay.is_replay());
    assert_eq!(first.bytes, replay.bytes);
    call(&before, path, "name=a").await.expect_error(500, "");
}

#[tokio::test]
async fn a_record_of_another_form_of_fingerprint_is_replayed_without_comparison() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let call = |body: &str| app.post(CHARGES).key(&key).form(body).send();
    let first = call(CHARGE).await.expect(201);
    call("amount=1").await.expect_error(422, "idempotency_key_reused");
    app.database.execute("UPDATE idempotency_records SET fingerprint_version = fingerprint_version + 1");
    for body in [CHARGE, "amount=1"] {
        let replay = call(body).await.expect(201);
        assert!(replay.is_replay());
        assert_eq!(replay.bytes, first.bytes);
    }
    assert_eq!(app.database.count("charges"), 1);
}

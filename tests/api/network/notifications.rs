//! Notifications of the card network: the sender's id is the key, its signature takes the place of an API key, and the
//! second delivery changes nothing.

use std::time::Duration;

use futures_util::future::join_all;
use oncepay::wire::signature::{HEADER, sign};
use serde_json::json;

use crate::support::network::{NETWORK_SECRET, NOTIFICATIONS, closed_dispute, fresh_id, opened_dispute};
use crate::support::{CHARGE, HOLD, TestApp, fresh_key};

/// A signature of the right secret at `seconds` from now.
fn signed(app: &TestApp, body: &str, seconds: i64) -> String {
    let at = app.state.clock.now() + chrono::Duration::seconds(seconds);
    sign(&[NETWORK_SECRET.to_owned()], at, body.as_bytes())
}

#[tokio::test]
async fn only_a_notification_that_the_network_signed_just_now_is_taken() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let notification =
        app.notification("dispute.created", opened_dispute(&fresh_id("dp"), &charge, false)).to_string();
    let right = signed(&app, &notification, 0);
    let before = app.database.contents();
    for (wrong, why) in [
        ("", "malformed"),
        ("t=1", "no signature"),
        ("v1=00", "no time"),
        ("t=now,v1=00", "no number"),
        ("t=1,v1=zz", "no hex"),
        (&signed(&app, &notification, -301), "old"),
        (&signed(&app, &notification, 310), "of the future"),
        (
            &sign(&["whsec_other".to_owned()], app.state.clock.now(), notification.as_bytes()),
            "of another secret",
        ),
        (&sign(&[String::new()], app.state.clock.now(), notification.as_bytes()), "of no secret"),
        (&signed(&app, &format!("{notification} "), 0), "of another body"),
        (&right.replace("v1=", "v0="), "of another scheme"),
        (&right[..right.len() - 2], "cut short"),
    ] {
        let reply = app.notify_with(&notification, wrong).await;
        assert_eq!((reply.status, reply.code()), (400, "signature_invalid"), "{why}: {reply:?}");
    }
    // Neither an API key nor an idempotency key replaces a signature.
    let unsigned = app.post(NOTIFICATIONS).key(&fresh_key()).body("application/json", notification.clone());
    unsigned.send().await.expect_error(400, "signature_invalid");
    assert_eq!(app.database.contents(), before);

    // The right signature needs neither of them, also at the edge of the tolerance.
    let reply = app.notify_with(&notification, &signed(&app, &notification, -298)).await.expect(200);
    assert_eq!(reply.body, json!({ "object": "provider_notification", "received": true }));
    assert!(!reply.is_replay());
    assert_eq!(app.database.count("disputes"), 1);
    // While the sender rolls its secret it signs with both.
    let secrets = ["whsec_new".to_owned(), NETWORK_SECRET.to_owned()];
    let both = sign(&secrets, app.state.clock.now(), notification.as_bytes());
    assert!(app.notify_with(&notification, &both).await.expect(200).is_replay());
    app.database.assert_clean();
}

#[tokio::test]
async fn the_same_notification_sent_twice_is_applied_once_and_answered_twice() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let notification = app.notification("dispute.created", opened_dispute(&fresh_id("dp"), &charge, false));
    let first = app.notify(&notification).await.expect(200);
    let after = app.database.contents();
    assert_eq!(app.usd().await, 0);
    for minutes in [1, 60, 93 * 60 - 61] {
        app.state.clock.advance(Duration::from_secs(minutes * 60));
        let again = app.notify(&notification).await.expect(200);
        assert!(again.is_replay(), "{minutes}: {again:?}");
        assert_eq!(again.header("Original-Request"), first.header("Request-Id"));
        assert_ne!(again.header("Request-Id"), first.header("Request-Id"));
        assert_eq!(again.bytes, first.bytes);
        assert_eq!(again.header("Content-Type"), first.header("Content-Type"));
        assert_eq!(app.database.contents(), after);
    }
    // Another order of members or other white space is the same notification; any other change makes another one.
    let body = serde_json::to_string_pretty(&notification).unwrap();
    assert!(app.notify_with(&body, &signed(&app, &body, 0)).await.expect(200).is_replay());
    for (name, value) in [("type", json!("dispute.closed")), ("created", json!(2)), ("more", json!(1))] {
        let mut other = notification.clone();
        other[name] = value;
        app.notify(&other).await.expect_error(422, "idempotency_key_reused");
    }
    assert_eq!(app.database.contents(), after);

    // The record expires after four days. Even then the notification is not applied a second time.
    app.state.clock.advance(Duration::from_secs(2 * 3600));
    let late = app.notify(&notification).await.expect(200);
    assert!(!late.is_replay() && late.bytes == first.bytes, "{late:?}");
    let changed: Vec<String> =
        app.database.contents().into_iter().filter(|row| after[&row.0] != row.1).map(|row| row.0).collect();
    assert_eq!(changed, ["idempotency_records"]);
    app.database.assert_clean();
}

#[tokio::test]
async fn fifty_copies_of_a_notification_at_once_on_two_instances_are_applied_once() {
    let first = TestApp::spawn();
    let second = first.second_instance();
    for event in ["dispute.created", "dispute.closed", "refund.failed"] {
        let charge = first.charge().await;
        let data = match event {
            "dispute.created" => opened_dispute(&fresh_id("dp"), &charge, false),
            "dispute.closed" => closed_dispute(&fresh_id("dp"), &charge, "won"),
            _ => {
                let refund = first.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201);
                json!({ "refund": refund.id() })
            }
        };
        let notification = first.notification(event, data);
        let rows = first.database.count("idempotency_records");
        let replies = join_all((0..50).map(|number| {
            let app = if number % 2 == 0 { &first } else { &second };
            app.notify(&notification)
        }))
        .await;
        let ran = replies.iter().filter(|reply| reply.status == 200 && !reply.is_replay()).count();
        assert_eq!(ran, 1, "{event}");
        for reply in replies {
            match reply.status {
                200 => assert_eq!(reply.body["received"], true),
                503 => assert_eq!(reply.header("Stripe-Should-Retry"), Some("true")),
                _ => drop(reply.expect_error(409, "idempotency_key_in_use")),
            }
        }
        assert!(second.notify(&notification).await.expect(200).is_replay());
        assert_eq!(first.database.count("idempotency_records"), rows + 1);
    }
    // One dispute was opened, one was closed without an opening, and one refund failed.
    assert_eq!(first.database.count("balance_transactions WHERE kind = 'dispute'"), 2);
    assert_eq!(first.database.count("balance_transactions WHERE kind = 'dispute_reversal'"), 1);
    assert_eq!(first.database.count("balance_transactions WHERE kind = 'refund_failure'"), 1);
    first.database.assert_clean();
}

#[tokio::test]
async fn keys_of_the_api_and_ids_of_the_network_never_meet() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let mut notification =
        app.notification("dispute.created", opened_dispute(&fresh_id("dp"), &charge, true));
    notification["id"] = "evt_217".into();
    app.notify(&notification).await.expect(200);
    app.get("/v1/idempotency_keys/evt_217").send().await.expect_error(404, "resource_missing");
    let by_key = || app.post("/v1/customers").key("evt_217").form("name=Ada");
    assert!(!by_key().send().await.expect(201).is_replay());
    assert!(by_key().send().await.expect(201).is_replay());
    assert!(app.notify(&notification).await.expect(200).is_replay());
    // The same holds the other way round, and a notification ignores the header of the API.
    app.post("/v1/customers").key("evt_218").form("name=Ada").send().await.expect(201);
    notification["id"] = "evt_218".into();
    let body = notification.to_string();
    let call = app.post(NOTIFICATIONS).key("evt_217").header(HEADER, &signed(&app, &body, 0));
    assert!(!call.body("application/json", body).send().await.expect(200).is_replay());
    // The events of a notification show no idempotency key.
    let events = app.read("/v1/events?type=charge.dispute.created").await;
    assert_eq!(events["data"][0]["request"]["idempotency_key"], json!(null));
    assert!(events["data"][0]["request"]["id"].is_string());
    // Another account does not share the key either.
    let other = app.database.other_account();
    let to_the_other = app.call_as(&other, reqwest::Method::POST, "/v1/customers").key("evt_217");
    assert!(!to_the_other.form("name=Ada").send().await.expect(201).is_replay());
    app.database.assert_clean();
}

#[tokio::test]
async fn a_notification_that_cannot_be_read_or_applied_is_refused_and_writes_nothing() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let hold = app.submit("/v1/charges", HOLD).await;
    let hold = hold.expect(201).id().to_owned();
    let spare = app.charge().await;
    let known = app.disputed(&charge).await;
    let created =
        |charge: &str| app.notification("dispute.created", opened_dispute(&fresh_id("dp"), charge, false));
    let before = app.database.contents();

    let form = "id=1&type=dispute.created";
    let typed = app.post(NOTIFICATIONS).header(HEADER, &signed(&app, form, 0)).form(form);
    assert_eq!(typed.send().await.status, 415);
    for body in ["", "[]", "1", "{", "{\"id\":1}", "{\"id\":\"\"}", "null"] {
        let reply = app.notify_with(body, &signed(&app, body, 0)).await;
        assert_eq!(
            (reply.status, &reply.body["error"]["type"]),
            (400, &json!("invalid_request_error")),
            "{body}"
        );
    }
    let mut cases = vec![
        (created("ch_unknown"), "data[charge]"),
        (created(&fresh_id("ch")), "data[charge]"),
        (created(&hold), "data[charge]"),
        // Another charge cannot have the same dispute.
        (app.notification("dispute.created", opened_dispute(&known, &spare, false)), "data[dispute]"),
        (app.notification("dispute.closed", closed_dispute(&known, &charge, "maybe")), "data[outcome]"),
        (app.notification("dispute.created", json!({ "charge": charge })), "data[dispute]"),
        (app.notification("refund.succeeded", json!({ "refund": fresh_id("re") })), "data[refund]"),
        (app.notification("refund.failed", json!({ "refund": "re_unknown" })), "data[refund]"),
        (app.notification("refund.failed", json!({ "refund": fresh_id("re"), "more": 1 })), "data[more]"),
        (app.notification("charge.exploded", json!({})), "type"),
        (app.notification("refund.failed", json!(1)), "data"),
    ];
    for (name, value) in [
        ("account", json!("acct_unknown")),
        ("account", json!(fresh_id("acct"))),
        ("account", json!(null)),
        ("created", json!("yesterday")),
        ("id", json!("")),
        ("id", json!("has a space")),
        ("more", json!(1)),
    ] {
        let mut notification = created(&charge);
        notification[name] = value;
        cases.push((notification, name));
    }
    for (notification, param) in cases {
        let reply = app.notify(&notification).await.expect(400);
        assert_eq!(reply.param(), param, "{notification}: {}", reply.body);
    }
    assert_eq!(app.database.contents(), before);
    // An object of another account is unknown here.
    let other = app.database.other_account();
    let theirs = app.call_as(&other, reqwest::Method::POST, "/v1/charges").key(&fresh_key());
    let theirs = theirs.form(CHARGE).send().await.expect(201);
    let foreign = app.notify(&created(theirs.id())).await.expect_error(400, "resource_missing");
    assert_eq!(foreign.param(), "data[charge]");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_notification_that_came_too_early_is_forgotten_and_applied_when_it_comes_again() {
    let app = TestApp::spawn();
    let charge =
        app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_pendingRefund").await.expect(201);
    let refund =
        app.submit("/v1/refunds", &format!("charge={}", charge.id())).await.expect(201).id().to_owned();
    // The test hides the refund, and restores it afterwards.
    app.database.execute("CREATE TABLE kept AS TABLE refunds");
    app.database.execute(
        "ALTER TABLE balance_transactions DROP CONSTRAINT balance_transactions_account_id_refund_id_fkey",
    );
    app.database.execute("DELETE FROM refunds");
    let notification = app.notification("refund.succeeded", json!({ "refund": refund }));
    for _ in 0..2 {
        let early = app.notify(&notification).await.expect_error(400, "resource_missing");
        assert_eq!(early.param(), "data[refund]");
    }
    assert_eq!(app.database.count("idempotency_records WHERE source = 'network'"), 0);
    app.database.execute("INSERT INTO refunds TABLE kept");
    assert!(!app.notify(&notification).await.expect(200).is_replay());
    assert!(app.notify(&notification).await.expect(200).is_replay());
    assert_eq!(app.read(&format!("/v1/refunds/{refund}")).await["status"], "succeeded");
    app.database.assert_clean();
}

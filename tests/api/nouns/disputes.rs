//! Disputes: their notifications, their money, and the evidence of the account.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::network::{closed_dispute, fresh_id, opened_dispute};
use crate::support::shapes::{BALANCE_TRANSACTION, DISPUTE, assert_shape};

/// The states of a dispute, the balance, and whether its charge can be refunded.
async fn state(app: &TestApp, dispute: &str) -> (String, i64, bool) {
    let seen = app.read(&format!("/v1/disputes/{dispute}")).await;
    assert_shape(&seen, DISPUTE);
    (
        seen["status"].as_str().unwrap().to_owned(),
        app.usd().await,
        seen["is_charge_refundable"].as_bool().unwrap(),
    )
}

/// Which tables changed.
fn changed(app: &TestApp, before: &std::collections::BTreeMap<String, String>) -> Vec<String> {
    let now = app.database.contents().into_iter();
    now.filter(|(table, rows)| before[table] != *rows).map(|(table, _)| table).collect()
}

#[tokio::test]
async fn a_dispute_takes_the_money_and_writes_its_events() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    app.submit("/v1/refunds", &format!("charge={charge}&amount=300")).await.expect(201);
    let events = app.event_types().await.len();
    let id = app.disputed(&charge).await;
    let path = format!("/v1/disputes/{id}");
    let dispute = app.read(&path).await;
    assert_shape(&dispute, DISPUTE);
    assert_eq!(
        [&dispute["amount"], &dispute["charge"], &dispute["id"]],
        [&json!(700), &json!(charge), &json!(id)]
    );
    assert_eq!([&dispute["reason"], &dispute["currency"]], ["fraudulent", "usd"]);
    assert_eq!(state(&app, &id).await, ("needs_response".to_owned(), 0, false));
    let row = &dispute["balance_transactions"][0];
    assert_shape(row, BALANCE_TRANSACTION);
    assert_eq!(
        [&row["amount"], &row["type"], &row["reporting_category"], &row["source"]],
        [&json!(-700), &json!("adjustment"), &json!("dispute"), &json!(id)]
    );
    assert_eq!(dispute["evidence_details"]["has_evidence"], false);
    assert!(
        dispute["evidence"].as_object().unwrap().values().all(|text| text.is_null() || text == &json!({}))
    );
    let adjustments = app.read("/v1/balance_transactions?type=adjustment").await;
    assert_eq!(adjustments["data"], dispute["balance_transactions"]);
    let of_charge = app.read(&format!("/v1/balance_transactions?source={charge}")).await;
    assert_eq!(of_charge["data"].as_array().map(Vec::len), Some(1));
    let of_dispute = app.read(&format!("/v1/balance_transactions?source={id}")).await;
    assert_eq!(of_dispute["data"], dispute["balance_transactions"]);
    assert_eq!(app.read(&format!("/v1/charges/{charge}")).await["disputed"], true);
    let expected = ["charge.dispute.created", "charge.dispute.funds_withdrawn"];
    assert_eq!(app.event_types().await[events..], expected);
    for event in app.read("/v1/events?limit=2").await["data"].as_array().unwrap() {
        assert_eq!(event["data"]["object"], dispute);
    }
    app.submit("/v1/refunds", &format!("charge={charge}")).await.expect_error(400, "charge_disputed");
    // The same opening, under its own id or another, changes nothing.
    let before = app.database.contents();
    app.send_notification("dispute.created", opened_dispute(&id, &charge, false)).await;
    app.send_notification("dispute.created", opened_dispute(&fresh_id("dp"), &charge, true)).await;
    assert_eq!(changed(&app, &before), ["idempotency_records"]);
    // A decision about another dispute is none about this one.
    let before = app.database.contents();
    let verdict = app.notification("dispute.closed", closed_dispute(&fresh_id("dp"), &charge, "won"));
    let reply = app.notify(&verdict).await.expect(400);
    assert_eq!(reply.param(), "data[dispute]");
    assert_eq!(app.database.contents(), before);
    app.database.assert_clean();
}

#[tokio::test]
async fn an_inquiry_moves_no_money_and_its_charge_can_be_refunded() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let id = fresh_id("dp");
    let events = app.event_types().await.len();
    app.send_notification("dispute.created", opened_dispute(&id, &charge, true)).await;
    assert_eq!(state(&app, &id).await, ("warning_needs_response".to_owned(), 1000, true));
    assert_eq!(app.event_types().await[events..], ["charge.dispute.created"]);
    assert_eq!(app.read(&format!("/v1/charges/{charge}")).await["disputed"], true);
    app.submit("/v1/refunds", &format!("charge={charge}&amount=100")).await.expect(201);
    let path = format!("/v1/disputes/{id}");
    let asked = app.submit(&path, "evidence[receipt]=here").await.expect(200);
    assert_eq!(asked.body["status"], "warning_under_review");
    app.send_notification("dispute.closed", closed_dispute(&id, &charge, "lost")).await;
    assert_eq!(state(&app, &id).await, ("warning_closed".to_owned(), 900, true));
    assert_eq!(app.read(&path).await["balance_transactions"], json!([]));
    app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201);
    assert_eq!(app.event_types().await.last().unwrap(), "charge.refunded");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_decision_closes_a_dispute_whether_it_arrives_before_or_after_the_opening() {
    let app = TestApp::spawn();
    for (outcome, gain) in [("won", 1000), ("lost", 0)] {
        for early in [false, true] {
            let balance = app.usd().await;
            let charge = app.charge().await;
            let id = fresh_id("dp");
            let events = app.event_types().await.len();
            if !early {
                app.send_notification("dispute.created", opened_dispute(&id, &charge, false)).await;
            }
            app.send_notification("dispute.closed", closed_dispute(&id, &charge, outcome)).await;
            let mut expected =
                vec!["charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.closed"];
            expected.extend((outcome == "won").then_some("charge.dispute.funds_reinstated"));
            assert_eq!(app.event_types().await[events..], expected, "{outcome} {early}");
            let won = outcome == "won";
            assert_eq!(state(&app, &id).await, (outcome.to_owned(), balance + gain, won));
            // A late opening and another decision change nothing.
            let before = app.database.contents();
            app.send_notification("dispute.created", opened_dispute(&id, &charge, false)).await;
            app.send_notification(
                "dispute.closed",
                closed_dispute(&id, &charge, if won { "lost" } else { "won" }),
            )
            .await;
            assert_eq!(changed(&app, &before), ["idempotency_records"]);
            let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1000")).await;
            if won {
                refund.expect(201);
                let rows = app.read(&format!("/v1/disputes/{id}")).await["balance_transactions"].clone();
                let rows = rows.as_array().unwrap().iter().map(|row| {
                    assert_eq!(row["type"], "adjustment");
                    (row["amount"].as_i64().unwrap(), row["reporting_category"].as_str().unwrap().to_owned())
                });
                let expected = [(-1000, "dispute".to_owned()), (1000, "dispute_reversal".to_owned())];
                assert_eq!(rows.collect::<Vec<_>>(), expected);
            } else {
                refund.expect_error(400, "charge_disputed");
            }
        }
    }
    app.database.assert_clean();
}

/// The notifications that the simulated network has yet to send.
fn to_come(app: &TestApp) -> Vec<Value> {
    let bodies = app.database.text(
        "SELECT coalesce(json_agg(body::json ORDER BY id), '[]')::text AS text FROM network_notifications",
    );
    serde_json::from_str(&bodies).unwrap()
}

#[tokio::test]
async fn evidence_is_stored_and_submitted_and_the_issuer_decides_by_its_text() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let id = app.disputed(&charge).await;
    let path = format!("/v1/disputes/{id}");
    let details = |dispute: &Value| {
        let details = &dispute["evidence_details"];
        (details["has_evidence"].as_bool().unwrap(), details["submission_count"].as_i64().unwrap())
    };
    // Evidence that is stored and not submitted.
    let kept =
        app.submit(&path, "evidence[uncategorized_text]=winning_evidence&submit=false").await.expect(200);
    assert_eq!((&kept.body["status"], details(&kept.body)), (&json!("needs_response"), (true, 0)));
    assert_eq!(kept.body["evidence"]["uncategorized_text"], "winning_evidence");
    let unset = app.submit(&path, "evidence[uncategorized_text]=&submit=false").await.expect(200);
    assert_eq!(
        (&unset.body["evidence"]["uncategorized_text"], details(&unset.body)),
        (&json!(null), (false, 0))
    );
    // There is nothing to submit, and metadata alone submit nothing.
    for form in ["submit=true", "metadata[a]=1"] {
        let reply = app.submit(&path, form).await.expect(200);
        assert_eq!(
            (&reply.body["status"], details(&reply.body)),
            (&json!("needs_response"), (false, 0)),
            "{form}"
        );
    }
    assert_eq!(app.read(&path).await["metadata"], json!({ "a": "1" }));
    app.submit(&path, "evidence[receipt]=r&submit=false").await.expect(200);
    app.submit(&path, "metadata[a]=2").await.expect(200);
    assert_eq!(state(&app, &id).await.0, "needs_response");
    // `submit=true` alone submits the stored evidence. Evidence without `submit` is submitted at once.
    let submitted = app.submit(&path, "submit=true").await.expect(200);
    assert_eq!((&submitted.body["status"], details(&submitted.body)), (&json!("under_review"), (true, 1)));
    assert_eq!(to_come(&app), Vec::<Value>::new(), "no text decides, so nothing is to come");
    let json = json!({ "evidence": { "uncategorized_text": "anything" } });
    let again = app.submit_json(&path, &json).await.expect(200);
    assert_eq!(details(&again.body), (true, 2));
    assert_eq!(again.body["evidence"]["receipt"], "r");
    assert_eq!(to_come(&app), Vec::<Value>::new());
    assert_eq!(app.event_types().await.last().unwrap(), "charge.dispute.updated");
    assert_eq!(app.read("/v1/events?limit=1").await["data"][0]["data"]["object"], again.body);

    for (text, outcome) in [("winning_evidence", "won"), ("losing_evidence", "lost")] {
        let balance = app.usd().await;
        let charge = app.charge().await;
        let id = app.disputed(&charge).await;
        let form = format!("evidence[uncategorized_text]={text}");
        app.submit(&format!("/v1/disputes/{id}"), &form).await.expect(200);
        assert_eq!(state(&app, &id).await, ("under_review".to_owned(), balance, false));
        let notification = to_come(&app).pop().unwrap();
        assert_eq!([&notification["type"], &notification["data"]["outcome"]], ["dispute.closed", outcome]);
        app.notify(&notification).await.expect(200);
        let gain = if outcome == "won" { 1000 } else { 0 };
        assert_eq!(state(&app, &id).await, (outcome.to_owned(), balance + gain, outcome == "won"));
    }
    for (form, param) in [
        ("evidence[alibi]=x", "evidence[alibi]"),
        ("evidence=x", "evidence"),
        ("submit=maybe", "submit"),
        ("amount=1", "amount"),
        (&*format!("evidence[receipt]={}", "x".repeat(5001)), "evidence[receipt]"),
    ] {
        let before = app.database.contents();
        assert_eq!(app.submit(&path, form).await.expect(400).param(), param);
        assert_eq!(app.database.contents(), before);
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn an_account_can_accept_a_dispute_and_a_closed_dispute_never_changes() {
    let app = TestApp::spawn();
    for (inquiry, before, after) in
        [(false, "needs_response", "lost"), (true, "warning_needs_response", "warning_closed")]
    {
        let charge = app.charge().await;
        let (id, balance) = (fresh_id("dp"), app.usd().await);
        app.send_notification("dispute.created", opened_dispute(&id, &charge, inquiry)).await;
        let path = format!("/v1/disputes/{id}");
        assert_eq!(app.read(&path).await["status"], before);
        // The issuer would decide for the account, which accepts the dispute before the decision arrives.
        app.submit(&path, "evidence[uncategorized_text]=winning_evidence").await.expect(200);
        let closed = app.submit(&format!("{path}/close"), "").await.expect(200);
        assert_eq!(closed.body["status"], after);
        assert_eq!(app.event_types().await.last().unwrap(), "charge.dispute.closed");
        let notification = to_come(&app).pop().unwrap();
        let kept = app.database.contents();
        app.notify(&notification).await.expect(200);
        assert_eq!(changed(&app, &kept), ["idempotency_records"]);
        let expected = balance - if inquiry { 0 } else { 1000 };
        assert_eq!(state(&app, &id).await, (after.to_owned(), expected, inquiry));
        let kept = app.database.contents();
        for (path, form) in [
            (path.clone(), "metadata[a]=1"),
            (path.clone(), "evidence[receipt]=x"),
            (format!("{path}/close"), ""),
        ] {
            let refused = app.submit(&path, form).await.expect_error(400, "");
            assert!(refused.body["error"]["message"].as_str().unwrap().contains(after), "{}", refused.body);
        }
        assert_eq!(app.database.contents(), kept);
    }
    for path in ["/v1/disputes/dp_unknown".to_owned(), format!("/v1/disputes/{}", fresh_id("dp"))] {
        app.get(&path).send().await.expect_error(404, "resource_missing");
        app.submit(&path, "metadata[a]=1").await.expect_error(404, "resource_missing");
        app.submit(&format!("{path}/close"), "").await.expect_error(404, "resource_missing");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn disputes_are_listed_by_charge_and_by_intent_and_expanded() {
    let app = TestApp::spawn();
    let form = "amount=1000&currency=usd&confirm=true&payment_method=pm_card_visa";
    let intent = app.submit("/v1/payment_intents", form).await.expect(201);
    let (kept, charge) = (intent.id(), intent.body["latest_charge"].as_str().unwrap());
    let of_intent = app.disputed(charge).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(app.disputed(&app.charge().await).await);
    }
    let ids = async |query: &str| -> Vec<String> {
        let list = app.read(&format!("/v1/disputes{query}")).await;
        assert_eq!([&list["object"], &list["url"]], ["list", "/v1/disputes"]);
        let data = list["data"].as_array().unwrap().iter();
        data.map(|dispute| {
            assert_shape(dispute, DISPUTE);
            dispute["id"].as_str().unwrap().to_owned()
        })
        .collect()
    };
    let newest_first: Vec<&String> = others.iter().rev().chain([&of_intent]).collect();
    assert_eq!(ids("").await.iter().collect::<Vec<_>>(), newest_first);
    assert_eq!(ids(&format!("?charge={charge}")).await, [&*of_intent]);
    assert_eq!(ids(&format!("?payment_intent={kept}")).await, [&*of_intent]);
    assert_eq!(ids(&format!("?limit=2&starting_after={}", others[2])).await, [&*others[1], &*others[0]]);
    assert_eq!(ids(&format!("?limit=1&ending_before={of_intent}")).await, [&*others[0]]);
    assert_eq!(ids("?created[gt]=4000000000").await, Vec::<String>::new());
    for (query, param) in [
        (format!("charge={}", fresh_id("ch")), "charge"),
        (format!("payment_intent={}", fresh_id("pi")), "payment_intent"),
        (format!("starting_after={}", fresh_id("dp")), "starting_after"),
    ] {
        let refused = app.get(&format!("/v1/disputes?{query}")).send().await;
        assert_eq!(refused.expect_error(400, "resource_missing").param(), param);
    }

    let plain = app.read(&format!("/v1/disputes/{of_intent}")).await;
    let query = "expand[]=charge&expand[]=payment_intent.latest_charge";
    let mut expanded = app.read(&format!("/v1/disputes/{of_intent}?{query}")).await;
    let charge_now = app.read(&format!("/v1/charges/{charge}")).await;
    assert_eq!(expanded["charge"], charge_now);
    assert_eq!(expanded["payment_intent"]["latest_charge"], charge_now);
    expanded["charge"] = charge.into();
    expanded["payment_intent"] = kept.into();
    assert_eq!(expanded, plain);
    let listed = app.read("/v1/disputes?expand[]=data.charge").await;
    assert!(listed["data"].as_array().unwrap().iter().all(|dispute| dispute["charge"]["disputed"] == true));
    app.submit("/v1/refunds", &format!("payment_intent={kept}")).await.expect_error(400, "charge_disputed");

    // Another account sees none of them.
    let other = app.database.other_account();
    let theirs = |method, path: String| app.call_as(&other, method, &path).key(&crate::support::fresh_key());
    let none = theirs(Method::GET, "/v1/disputes".to_owned()).send().await.expect(200);
    assert_eq!(none.body["data"], json!([]));
    theirs(Method::GET, format!("/v1/disputes/{of_intent}")).send().await.expect(404);
    theirs(Method::POST, format!("/v1/disputes/{of_intent}")).form("submit=true").send().await.expect(404);
    theirs(Method::POST, format!("/v1/disputes/{of_intent}/close")).form("").send().await.expect(404);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_charge_without_money_left_cannot_be_disputed() {
    let app = TestApp::spawn();
    let refunded = app.charge().await;
    app.submit("/v1/refunds", &format!("charge={refunded}")).await.expect(201);
    let declined = app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_chargeDeclined").await;
    let declined = declined.expect(402).body["error"]["charge"].as_str().unwrap().to_owned();
    let before = app.database.contents();
    for charge in [refunded, declined] {
        for (event, data) in [
            ("dispute.created", opened_dispute(&fresh_id("dp"), &charge, false)),
            ("dispute.closed", closed_dispute(&fresh_id("dp"), &charge, "won")),
        ] {
            let refused = app.notify(&app.notification(event, data)).await.expect_error(400, "");
            assert_eq!(refused.param(), "data[charge]");
        }
    }
    assert_eq!(app.database.contents(), before);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_dispute_is_as_old_as_its_id_however_late_its_notification_arrives() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let day_ago = app.state.clock.now().timestamp() - 24 * 3600;
    let named = |seconds: i64| {
        let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, seconds.unsigned_abs(), 0);
        format!("dp_{}", uuid::Uuid::new_v7(timestamp).simple())
    };
    let id = named(day_ago);
    // A malformed id is refused, and so is one with a time in the future.
    for wrong in ["d-1", "dp_ffffffffffffffffffffffffffffffff", &named(day_ago + 2 * 24 * 3600)] {
        let notification = app.notification("dispute.created", opened_dispute(wrong, &charge, false));
        assert_eq!(app.notify(&notification).await.expect(400).param(), "data[dispute]", "{wrong}");
    }
    app.send_notification("dispute.created", opened_dispute(&id, &charge, false)).await;
    assert_eq!(app.read(&format!("/v1/disputes/{id}")).await["created"], day_ago);
    for (query, is_in) in [
        (format!("created={day_ago}"), true),
        (format!("created[gte]={day_ago}"), true),
        (format!("created[lt]={day_ago}"), false),
        (format!("created[gt]={day_ago}"), false),
        (format!("created[lte]={day_ago}"), true),
    ] {
        let list = app.read(&format!("/v1/disputes?{query}")).await;
        assert_eq!(list["data"].as_array().unwrap().len(), usize::from(is_in), "{query}");
    }
}

#[tokio::test]
async fn what_a_dispute_moved_is_found_by_the_dispute_and_can_be_expanded_to_it() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let dispute = app.disputed(&charge).await;
    let path = format!("/v1/balance_transactions?source={dispute}");
    let rows = app.read(&format!("{path}&expand[]=data.source")).await;
    let rows = rows["data"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["amount"], &rows[0]["source"]["id"]), (&json!(-1000), &json!(dispute)));
    let of_charge = app.read(&format!("/v1/balance_transactions?source={charge}")).await;
    let types: Vec<&Value> = of_charge["data"].as_array().unwrap().iter().map(|row| &row["type"]).collect();
    assert_eq!(types, ["charge"]);
    let unknown = app.get("/v1/balance_transactions?source=dp_unknown").send().await;
    assert_eq!(unknown.expect_error(400, "resource_missing").param(), "source");
}

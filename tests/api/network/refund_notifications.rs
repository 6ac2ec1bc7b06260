//! What the network says of a refund later: that it has arrived, or that it has failed and the money is here again.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::shapes::{BALANCE_TRANSACTION, REFUND, assert_shape};
use crate::support::{TestApp, fresh_key};

/// A charge of 10.00 with this card and a refund of a part of it: both ids.
async fn refunded(app: &TestApp, card: &str, amount: i64) -> (String, String) {
    let charge = app.submit("/v1/charges", &format!("amount=1000&currency=usd&source=tok_{card}")).await;
    let charge = charge.expect(201).id().to_owned();
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount={amount}")).await.expect(201);
    let refund = refund.id().to_owned();
    (charge, refund)
}

#[tokio::test]
async fn a_pending_refund_succeeds_when_the_network_says_so() {
    let app = TestApp::spawn();
    let (charge, refund) = refunded(&app, "pendingRefund", 400).await;
    let path = format!("/v1/refunds/{refund}");
    let pending = app.read(&path).await;
    assert_eq!(pending["status"], "pending");
    let (events, ledger) = (app.event_types().await, app.database.count("balance_transactions"));
    app.tell("refund.succeeded", json!({ "refund": refund })).await;
    let mut expected = pending;
    expected["status"] = "succeeded".into();
    assert_eq!(app.read(&path).await, expected);
    // The money was taken when the refund was made; the news moves none.
    assert_eq!(app.database.count("balance_transactions"), ledger);
    assert_eq!(app.event_types().await[events.len()..], ["refund.updated"]);
    assert_eq!(app.read("/v1/events?limit=1").await["data"][0]["data"]["object"], expected);
    assert_eq!(app.read(&format!("/v1/charges/{charge}")).await["amount_refunded"], 400);
    // Said again under another id, it changes nothing.
    let after = app.database.contents();
    app.tell("refund.succeeded", json!({ "refund": refund })).await;
    let changed = app.database.contents().into_iter().filter(|row| after[&row.0] != row.1);
    assert_eq!(changed.map(|row| row.0).collect::<Vec<_>>(), ["idempotency_records"]);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_failed_refund_gives_its_money_back_and_the_charge_can_be_refunded_again() {
    let app = TestApp::spawn();
    for (card, before) in [("refundFail", "succeeded"), ("pendingRefund", "pending"), ("visa", "succeeded")] {
        let balance = app.usd().await;
        let (charge, refund) = refunded(&app, card, 700).await;
        let (charge_path, path) = (format!("/v1/charges/{charge}"), format!("/v1/refunds/{refund}"));
        assert_eq!(app.read(&path).await["status"], before);
        assert_eq!(app.usd().await, balance + 300);
        app.submit("/v1/refunds", &format!("charge={charge}&amount=301")).await.expect(400);
        let events = app.event_types().await.len();

        app.tell("refund.failed", json!({ "refund": refund })).await;
        let failed = app.read(&format!("{path}?expand[]=failure_balance_transaction")).await;
        assert_shape(&failed, REFUND);
        assert_eq!([&failed["status"], &failed["failure_reason"]], ["failed", "declined"]);
        let movement = &failed["failure_balance_transaction"];
        assert_shape(movement, BALANCE_TRANSACTION);
        assert_eq!([&movement["amount"], &movement["type"]], [&json!(700), &json!("refund_failure")]);
        assert_eq!(movement["source"], json!(refund));
        assert_eq!(app.usd().await, balance + 1000);
        let given_back = app.read(&charge_path).await;
        assert_eq!([&given_back["amount_refunded"], &given_back["refunded"]], [&json!(0), &json!(false)]);
        assert_eq!(app.event_types().await[events..], ["refund.updated", "refund.failed"]);
        let told = app.read("/v1/events?type=refund.failed&limit=1").await;
        assert_eq!(told["data"][0]["data"]["object"], app.read(&path).await);
        // Both movements are found by their refund.
        let ledger = app.read(&format!("/v1/balance_transactions?source={refund}")).await;
        let amounts: Vec<_> =
            ledger["data"].as_array().unwrap().iter().map(|row| row["amount"].clone()).collect();
        assert_eq!(amounts, [700, -700]);

        // Late and other news change nothing: what has failed stays failed.
        let after = app.database.contents();
        for event in ["refund.succeeded", "refund.failed", "refund.succeeded"] {
            app.tell(event, json!({ "refund": refund })).await;
        }
        let changed = app.database.contents().into_iter().filter(|row| after[&row.0] != row.1);
        assert_eq!(changed.map(|row| row.0).collect::<Vec<_>>(), ["idempotency_records"]);

        let all = app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201);
        assert_eq!(all.body["amount"], 1000);
        assert_eq!(app.read(&charge_path).await["refunded"], true);
        app.submit("/v1/refunds", &format!("charge={charge}"))
            .await
            .expect_error(400, "charge_already_refunded");
        assert_eq!(app.usd().await, balance);
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn a_failure_that_races_new_refunds_of_its_charge_comes_before_or_after_each() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    for _ in 0..6 {
        let (charge, refund) = refunded(&app, "refundFail", 600).await;
        let news = app.news("refund.failed", json!({ "refund": refund }));
        let fail = async {
            loop {
                let reply = app.notify(&news).await;
                if reply.status == 200 {
                    return;
                }
                assert!([409, 503].contains(&reply.status), "{reply:?}");
            }
        };
        let form = format!("charge={charge}&amount=400");
        let refunds = join_all((0..5).map(|_| app.submit("/v1/refunds", &form)));
        let (_, _, replies) = tokio::join!(fail, async { app.notify(&news).await }, refunds);
        let made = replies.iter().filter(|reply| reply.status == 201).count();
        assert!((1..=2).contains(&made) || replies.iter().any(|reply| reply.status == 409), "{made}");
        let seen = app.read(&format!("/v1/charges/{charge}")).await;
        assert_eq!(seen["amount_refunded"], 400 * made);
        app.database.assert_clean();
    }
    let failures = app.database.count("balance_transactions WHERE kind = 'refund_failure'");
    assert_eq!(failures, 6);
}

#[tokio::test]
async fn an_intents_refund_fails_like_any_other() {
    let app = TestApp::spawn();
    let form = "amount=1000&currency=usd&confirm=true&payment_method=pm_card_refundFail";
    let intent = app.submit("/v1/payment_intents", form).await.expect(201);
    let of_intent = format!("payment_intent={}", intent.id());
    let refund = app.post("/v1/refunds").key(&fresh_key()).form(&of_intent).send().await.expect(201);
    app.submit("/v1/refunds", &of_intent).await.expect(400);
    app.tell("refund.failed", json!({ "refund": refund.id() })).await;
    assert_eq!(app.submit("/v1/refunds", &of_intent).await.expect(201).body["amount"], 1000);
    assert_eq!(app.usd().await, 0);
    app.database.assert_clean();
}

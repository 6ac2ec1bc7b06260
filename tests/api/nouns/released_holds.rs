//! A refund of the whole of a hold releases it, and nothing else does by way of a refund.

use serde_json::Value;

use crate::support::{HOLD, TestApp};

#[tokio::test]
async fn a_refund_of_the_whole_of_a_hold_releases_it_without_a_row_of_the_ledger() {
    let app = TestApp::spawn();
    for amount in ["", "&amount=1000"] {
        let hold = app.submit("/v1/charges", HOLD).await.expect(201).id().to_owned();
        let refund = app.submit("/v1/refunds", &format!("charge={hold}{amount}")).await.expect(201);
        assert_eq!(refund.body["status"], "succeeded");
        assert_eq!(
            (&refund.body["amount"], &refund.body["balance_transaction"]),
            (&1000.into(), &Value::Null)
        );
        assert_eq!(app.events_of(&refund).await, ["refund.created", "charge.refunded"]);
        let charge = app.read(&format!("/v1/charges/{hold}")).await;
        assert_eq!((&charge["refunded"], &charge["captured"]), (&true.into(), &false.into()));
        assert_eq!(charge["amount_refunded"], 1000);
        let capture = app.submit(&format!("/v1/charges/{hold}/capture"), "").await;
        capture.expect_error(400, "charge_expired_for_capture");
        let again = app.submit("/v1/refunds", &format!("charge={hold}")).await;
        again.expect_error(400, "charge_already_refunded");
    }
    assert_eq!(app.database.count("balance_transactions"), 0);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_part_of_a_hold_is_not_released_and_the_message_says_what_to_do() {
    let app = TestApp::spawn();
    let hold = app.submit("/v1/charges", HOLD).await.expect(201).id().to_owned();
    let intent = app.intent_in("requires_capture").await;
    let of_intent = intent["latest_charge"].as_str().unwrap();
    let before = app.database.dump();
    for (form, advice) in [
        (format!("charge={hold}&amount=999"), "capture that part"),
        (format!("charge={hold}&amount=1001"), "capture that part"),
        (format!("charge={of_intent}"), "/cancel"),
        (format!("payment_intent={}", intent["id"].as_str().unwrap()), "/cancel"),
    ] {
        let refused = app.submit("/v1/refunds", &form).await.expect(400);
        let message = refused.body["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(advice), "{message}");
    }
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_released_hold_does_not_come_back_when_the_network_says_that_its_refund_failed() {
    let app = TestApp::spawn();
    let hold = app.submit("/v1/charges", HOLD).await.expect(201).id().to_owned();
    let refund = app.submit("/v1/refunds", &format!("charge={hold}")).await.expect(201).id().to_owned();
    app.send_notification("refund.failed", serde_json::json!({ "refund": refund })).await;
    assert_eq!(app.read(&format!("/v1/refunds/{refund}")).await["status"], "succeeded");
    assert_eq!(app.database.count("balance_transactions"), 0);
    app.database.assert_clean();
}

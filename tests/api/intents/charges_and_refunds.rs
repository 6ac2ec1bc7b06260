//! The charges of an intent, and the refunds of them.

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::shapes::{REFUND, assert_shape};

fn id(object: &Value) -> &str {
    object["id"].as_str().unwrap()
}

#[tokio::test]
async fn an_intents_charge_is_captured_through_the_intent_only() {
    let app = TestApp::spawn();
    for status in ["requires_capture", "succeeded"] {
        let intent = app.intent_in(status).await;
        let path = format!("/v1/charges/{}/capture", intent["latest_charge"].as_str().unwrap());
        let before = app.database.dump();
        let refused = app.submit(&path, "").await.expect_error(400, "");
        assert!(refused.body["error"]["message"].as_str().unwrap().contains(id(&intent)));
        assert_eq!(app.database.dump(), before);
    }
}

#[tokio::test]
async fn an_intent_is_refunded_by_its_name_in_parts_and_never_beyond() {
    let app = TestApp::spawn();
    let intent = app.intent_in("succeeded").await;
    let charge = intent["latest_charge"].as_str().unwrap();
    let by_intent = format!("payment_intent={}", id(&intent));
    let first =
        app.submit("/v1/refunds", &format!("{by_intent}&amount=300&reason=duplicate")).await.expect(201);
    assert_shape(&first.body, REFUND);
    assert_eq!(
        (&first.body["payment_intent"], &first.body["charge"]),
        (&intent["id"], &intent["latest_charge"])
    );
    assert_eq!(first.body["payment_method"], intent["payment_method"]);
    let before = app.database.dump();
    let more = app.submit("/v1/refunds", &format!("{by_intent}&amount=701")).await.expect_error(400, "");
    let message = more.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("7.01") && message.contains("7.00"), "{message}");
    assert_eq!(more.param(), "amount");
    let both = app.submit("/v1/refunds", &format!("{by_intent}&charge={charge}")).await.expect(400);
    assert_eq!(both.param(), "charge");
    assert_eq!(app.database.dump(), before);
    // By the charge it is a refund of the intent too.
    let second = app.submit("/v1/refunds", &format!("charge={charge}&amount=100")).await.expect(201);
    assert_eq!(second.body["payment_intent"], intent["id"]);
    let rest = app.submit("/v1/refunds", &by_intent).await.expect(201);
    assert_eq!(rest.body["amount"], 600);
    app.submit("/v1/refunds", &by_intent).await.expect_error(400, "charge_already_refunded");
    let other = app.intent_in("succeeded").await;
    app.submit("/v1/refunds", &format!("payment_intent={}", id(&other))).await.expect(201);
    let listed = app.read(&format!("/v1/refunds?{by_intent}")).await;
    let ids: Vec<&str> = listed["data"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(ids, [rest.id(), second.id(), first.id()]);
    let charges = app.read(&format!("/v1/charges?{by_intent}")).await;
    assert_eq!(charges["data"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), [charge]);
    assert_eq!(charges["data"][0]["amount_refunded"], 1000);
    assert_eq!(charges["data"][0]["refunded"], true);
    // The intent itself has received what it received.
    assert_eq!(app.intent_now(&intent).await, intent);
    app.database.assert_clean();
}

#[tokio::test]
async fn what_has_moved_no_money_cannot_be_refunded() {
    let app = TestApp::spawn();
    let declined = app.intent("payment_method=pm_card_chargeCustomerFail").await;
    let path = format!("/v1/payment_intents/{}/confirm", id(&declined));
    app.submit(&path, "").await.expect(402);
    let mut intents = vec![declined];
    for status in [
        "requires_payment_method",
        "requires_confirmation",
        "requires_action",
        "requires_capture",
        "canceled",
    ] {
        intents.push(app.intent_in(status).await);
    }
    let released = app.intent_in("requires_capture").await;
    app.submit(&format!("/v1/payment_intents/{}/cancel", id(&released)), "").await.expect(200);
    intents.push(released);
    let before = app.database.dump();
    for intent in intents {
        let refused = app.submit("/v1/refunds", &format!("payment_intent={}", id(&intent))).await;
        assert_eq!(refused.expect_error(400, "").param(), "payment_intent", "{intent}");
    }
    assert_eq!(app.submit("/v1/refunds", "").await.expect(400).param(), "charge");
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_refund_of_a_part_that_was_captured_leaves_the_released_rest_alone() {
    let app = TestApp::spawn();
    let intent = app.intent_in("requires_capture").await;
    let capture = format!("/v1/payment_intents/{}/capture", id(&intent));
    app.submit(&capture, "amount_to_capture=600").await.expect(200);
    let refund = app.submit("/v1/refunds", &format!("payment_intent={}", id(&intent))).await.expect(201);
    assert_eq!(refund.body["amount"], 600);
    let charge = app.read(&format!("/v1/charges/{}", intent["latest_charge"].as_str().unwrap())).await;
    let money =
        (&charge["amount"], &charge["amount_captured"], &charge["amount_refunded"], &charge["refunded"]);
    assert_eq!(money, (&json!(1000), &json!(600), &json!(1000), &json!(true)));
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 0);
    app.database.assert_clean();
}

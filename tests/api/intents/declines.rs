//! Declines of a confirmed intent: they persist, they are remembered, and another card may follow.

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::fresh_key;
use crate::support::intents::{PAYMENT_INTENT, PRICE, path_of};
use crate::support::shapes::{CHARGE, assert_shape};

const INTENTS: &str = "/v1/payment_intents";

const DECLINES: [(&str, &str, &str); 9] = [
    ("visa_chargeDeclined", "card_declined", "generic_decline"),
    ("visa_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
    ("chargeDeclinedLostCard", "card_declined", "lost_card"),
    ("chargeDeclinedStolenCard", "card_declined", "stolen_card"),
    ("chargeDeclinedVelocityLimitExceeded", "card_declined", "card_velocity_exceeded"),
    ("chargeDeclinedExpiredCard", "expired_card", "expired_card"),
    ("chargeDeclinedIncorrectCvc", "incorrect_cvc", "incorrect_cvc"),
    ("chargeDeclinedProcessingError", "processing_error", "processing_error"),
    ("chargeCustomerFail", "card_declined", "generic_decline"),
];

#[tokio::test]
async fn a_decline_persists_is_remembered_byte_for_byte_and_gives_way_to_another_card() {
    let app = TestApp::spawn();
    for (number, (card, code, decline_code)) in DECLINES.into_iter().enumerate() {
        let key = fresh_key();
        // In one call, and in two.
        let in_one = number % 2 == 0;
        let (path, form) = if in_one {
            (INTENTS.to_owned(), format!("{PRICE}&confirm=true&payment_method=pm_card_{card}"))
        } else {
            let intent = app.intent(&format!("payment_method=pm_card_{card}")).await;
            (format!("{}/confirm", path_of(&intent)), String::new())
        };
        let declined = app.post(&path).key(&key).form(&form).send().await.expect_error(402, code);
        let error = &declined.body["error"];
        assert_eq!((&error["type"], &error["decline_code"]), (&json!("card_error"), &json!(decline_code)));
        assert_eq!(error["retry"], "new_key");
        assert_eq!(declined.header("Stripe-Should-Retry"), Some("false"));
        assert!(error["doc_url"].as_str().unwrap().ends_with(&code.replace('_', "-")), "{error}");
        let intent = error["payment_intent"].clone();
        assert_shape(&intent, PAYMENT_INTENT);
        assert_eq!(intent["status"], "requires_payment_method");
        assert_eq!(intent["payment_method"], Value::Null);
        assert_eq!(intent["latest_charge"], error["charge"]);
        assert_eq!(error["payment_method"]["object"], "payment_method");
        let last = &intent["last_payment_error"];
        for property in ["type", "code", "decline_code", "message", "charge", "doc_url"] {
            assert_eq!(last[property], error[property], "{property}");
        }
        assert_eq!(last["payment_method"], error["payment_method"]);
        assert_eq!(app.intent_now(&intent).await, intent);
        let charge = app.read(&format!("/v1/charges/{}", error["charge"].as_str().unwrap())).await;
        assert_shape(&charge, CHARGE);
        assert_eq!((&charge["status"], &charge["paid"]), (&json!("failed"), &json!(false)));
        assert_eq!(charge["failure_code"], code);
        assert_eq!(charge["outcome"]["reason"], decline_code);
        assert_eq!(charge["payment_intent"], intent["id"]);
        let mut events = app.events_of(&declined).await;
        if in_one {
            assert_eq!(events.remove(0), "payment_intent.created");
        }
        assert_eq!(events, ["charge.failed", "payment_intent.payment_failed"]);

        let before = app.database.dump();
        let replay = app.post(&path).key(&key).form(&form).send().await;
        assert!(replay.is_replay());
        assert_eq!((replay.status, &replay.bytes), (402, &declined.bytes));
        assert_eq!(app.database.dump(), before);

        // Without a card there is nothing to confirm; with another one it is paid.
        let confirm = format!("{}/confirm", path_of(&intent));
        app.submit(&confirm, "").await.expect_error(400, "payment_intent_unexpected_state");
        let paid = app.submit(&confirm, "payment_method=pm_card_mastercard").await.expect(200).body;
        assert_eq!((&paid["status"], &paid["last_payment_error"]), (&json!("succeeded"), &Value::Null));
        assert_ne!(paid["latest_charge"], error["charge"]);
        let charges =
            app.read(&format!("/v1/charges?payment_intent={}", intent["id"].as_str().unwrap())).await;
        let statuses: Vec<&Value> =
            charges["data"].as_array().unwrap().iter().map(|charge| &charge["status"]).collect();
        assert_eq!(statuses, ["succeeded", "failed"]);
        // The replay still tells what happened then.
        assert_eq!(app.post(&path).key(&key).form(&form).send().await.bytes, declined.bytes);
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn where_nobody_can_be_asked_a_card_that_asks_fails_without_a_charge() {
    let app = TestApp::spawn();
    for card in ["authenticationRequired", "threeDSecure2Required", "threeDSecureRequiredChargeDeclined"] {
        for how in ["off_session=true", "off_session=one_off", "error_on_requires_action=true"] {
            let form = format!("{PRICE}&confirm=true&{how}&payment_method=pm_card_{card}");
            let made = app.submit(INTENTS, &form).await.expect_error(402, "authentication_required");
            let error = &made.body["error"];
            assert_eq!(
                (&error["type"], &error["decline_code"]),
                (&json!("card_error"), &json!("authentication_required"))
            );
            assert!(error.get("charge").is_none(), "{error}");
            let intent = &error["payment_intent"];
            assert_eq!(
                (&intent["status"], &intent["latest_charge"]),
                (&json!("requires_payment_method"), &Value::Null)
            );
            assert_eq!(intent["last_payment_error"]["code"], "authentication_required");
            assert_eq!(app.intent_now(intent).await, *intent);
            assert_eq!(
                app.events_of(&made).await,
                ["payment_intent.created", "payment_intent.payment_failed"]
            );
            let confirm = format!("{}/confirm", path_of(intent));
            let again = app.submit(&confirm, &format!("{how}&payment_method=pm_card_{card}")).await;
            again.expect_error(402, "authentication_required");
            let asked =
                app.submit(&confirm, &format!("payment_method=pm_card_{card}")).await.expect(200).body;
            assert_eq!(
                (&asked["status"], &asked["last_payment_error"]),
                (&json!("requires_action"), &Value::Null)
            );
        }
    }
    assert_eq!(app.database.count("charges"), 0);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_card_that_was_declined_stays_with_its_customer_and_an_expanded_answer_is_expanded() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let kept = app.kept_method("chargeCustomerFail", &customer).await;
    let form = format!(
        "{PRICE}&customer={customer}&payment_method={kept}&confirm=true&capture_method=manual&setup_future_usage=off_session"
    );
    let before = app.database.dump();
    app.submit(INTENTS, &format!("{form}&expand[]=nope")).await.expect_error(400, "");
    assert_eq!(app.database.dump(), before);
    let declined =
        app.submit(INTENTS, &format!("{form}&expand[]=latest_charge&expand[]=customer")).await.expect(402);
    let intent = &declined.body["error"]["payment_intent"];
    assert_eq!(intent["latest_charge"]["status"], "failed");
    assert_eq!(intent["customer"]["id"], *customer);
    assert_eq!(app.read(&format!("/v1/payment_methods/{kept}")).await["customer"], *customer);
    // A card that is no card is refused before there is an intent.
    let before = app.database.dump();
    let card = "payment_method_data[card][number]=4242424242424241&payment_method_data[card][exp_month]=1&payment_method_data[card][exp_year]=2040";
    let refused = app
        .submit(INTENTS, &format!("{PRICE}&confirm=true&{card}"))
        .await
        .expect_error(402, "incorrect_number");
    assert_eq!(refused.body["error"]["retry"], "fix_request");
    assert_eq!(app.database.dump(), before);
    app.database.assert_clean();
}

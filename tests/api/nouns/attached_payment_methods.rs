//! Payment methods that a customer keeps: given, refused, taken back, and used by default.

use serde_json::Value;

use crate::support::TestApp;
use crate::support::intents::PRICE;

const METHODS: &str = "/v1/payment_methods";

#[tokio::test]
async fn a_method_is_given_to_one_customer_once() {
    let app = TestApp::spawn();
    let (ada, grace) = (app.customer().await, app.customer().await);
    let method = app.method("visa").await;
    let attach = format!("{METHODS}/{method}/attach");
    let first = app.submit(&attach, &format!("customer={ada}")).await.expect(200);
    assert_eq!(first.body["customer"], ada);
    let events = app.event_objects_of(&first).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "payment_method.attached");
    assert_eq!(events[0]["data"]["object"], first.body);
    // Again to the same is no change, and so no event.
    let again = app.submit(&attach, &format!("customer={ada}")).await.expect(200);
    assert_eq!(again.body, first.body);
    assert!(app.events_of(&again).await.is_empty());
    let before = app.database.dump();
    let other = app.submit(&attach, &format!("customer={grace}")).await;
    other.expect_error(400, "payment_method_unexpected_state");
    assert_eq!(app.submit(&attach, "").await.expect_error(400, "parameter_missing").param(), "customer");
    app.submit(&attach, &format!("customer={ada}&x=1")).await.expect_error(400, "parameter_unknown");
    assert_eq!(app.database.dump(), before);
    let made_with = app.submit(METHODS, &format!("card[token]=tok_visa&customer={grace}")).await.expect(201);
    assert_eq!(made_with.body["customer"], grace);
    assert_eq!(app.events_of(&made_with).await, ["payment_method.attached"]);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_card_that_always_declines_cannot_be_kept_and_nothing_changes() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    for (card, code, decline_code) in [
        ("visa_chargeDeclined", "card_declined", "generic_decline"),
        ("chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("visa_chargeDeclinedLostCard", "card_declined", "lost_card"),
        ("visa_chargeDeclinedStolenCard", "card_declined", "stolen_card"),
        ("visa_chargeDeclinedVelocityLimitExceeded", "card_declined", "card_velocity_exceeded"),
        ("chargeDeclinedExpiredCard", "expired_card", "expired_card"),
        ("chargeDeclinedIncorrectCvc", "incorrect_cvc", "incorrect_cvc"),
        ("chargeDeclinedProcessingError", "processing_error", "processing_error"),
    ] {
        let method = app.method(card).await;
        let before = app.database.dump();
        for (path, form) in [
            (format!("{METHODS}/{method}/attach"), format!("customer={customer}")),
            (format!("{METHODS}/pm_card_{card}/attach"), format!("customer={customer}")),
            (METHODS.to_owned(), format!("card[token]=tok_{card}&customer={customer}")),
            ("/v1/customers".to_owned(), format!("payment_method={method}")),
            ("/v1/customers".to_owned(), format!("payment_method=pm_card_{card}")),
        ] {
            let refused = app.submit(&path, &form).await.expect_error(402, code);
            assert_eq!(refused.body["error"]["decline_code"], decline_code, "{path}");
            assert_eq!(refused.body["error"]["type"], "card_error", "{path}");
            assert_eq!(refused.body["error"]["retry"], "fix_request", "{path}");
        }
        assert_eq!(app.database.dump(), before, "{card}");
    }
    let kept = app.kept_method("chargeCustomerFail", &customer).await;
    let form = format!("{PRICE}&customer={customer}&payment_method={kept}&confirm=true");
    app.submit("/v1/payment_intents", &form).await.expect_error(402, "card_declined");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_deleted_customer_is_given_nothing() {
    let app = TestApp::spawn();
    let (customer, method) = (app.customer().await, app.method("visa").await);
    app.delete(&format!("/v1/customers/{customer}")).send().await.expect(200);
    let before = app.database.dump();
    for (path, form) in [
        (format!("{METHODS}/{method}/attach"), ""),
        (METHODS.to_owned(), "card[token]=tok_visa&"),
        ("/v1/payment_intents".to_owned(), "amount=1000&currency=usd&"),
    ] {
        let refused = app.submit(&path, &format!("{form}customer={customer}")).await;
        assert_eq!(refused.expect_error(400, "resource_missing").param(), "customer", "{path}");
    }
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_detached_method_is_no_default_any_more_and_is_never_used_again() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let of_customer = format!("/v1/customers/{customer}");
    let method = app.kept_method("visa", &customer).await;
    let card = method.replace("pm_", "card_");
    let defaults = format!("invoice_settings[default_payment_method]={method}&default_source={card}");
    let shown = app.submit(&of_customer, &defaults).await.expect(200).body;
    assert_eq!(shown["invoice_settings"]["default_payment_method"], *method);
    assert_eq!(shown["default_source"], *card);
    let intent = app.intent(&format!("customer={customer}&payment_method={method}")).await;

    let detach = format!("{METHODS}/{method}/detach");
    let detached = app.submit(&detach, "").await.expect(200);
    assert_eq!(detached.body["customer"], Value::Null);
    assert_eq!(app.events_of(&detached).await, ["customer.updated", "payment_method.detached"]);
    let customer_now = app.read(&of_customer).await;
    assert_eq!(customer_now["invoice_settings"]["default_payment_method"], Value::Null);
    assert_eq!(customer_now["default_source"], Value::Null);
    assert_eq!(app.read(&format!("{of_customer}/payment_methods")).await["data"], Value::Array(vec![]));
    assert_eq!(app.read(&format!("{METHODS}/{method}")).await, detached.body);

    let before = app.database.dump();
    let confirm = format!("/v1/payment_intents/{}/confirm", intent["id"].as_str().unwrap());
    for (path, form, code) in [
        (detach, String::new(), "payment_method_unexpected_state"),
        (
            format!("{METHODS}/{method}/attach"),
            format!("customer={customer}"),
            "payment_method_unexpected_state",
        ),
        (confirm.clone(), String::new(), "payment_method_unexpected_state"),
        (confirm, format!("payment_method={method}"), "payment_method_unexpected_state"),
        (
            "/v1/payment_intents".to_owned(),
            format!("{PRICE}&payment_method={method}"),
            "payment_method_unexpected_state",
        ),
        ("/v1/customers".to_owned(), format!("payment_method={method}"), "payment_method_unexpected_state"),
        (
            of_customer.clone(),
            format!("invoice_settings[default_payment_method]={method}"),
            "resource_missing",
        ),
        (of_customer.clone(), format!("default_source={card}"), "resource_missing"),
        ("/v1/charges".to_owned(), format!("{PRICE}&customer={customer}&source={card}"), "resource_missing"),
    ] {
        app.submit(&path, &form).await.expect_error(400, code);
    }
    assert_eq!(app.database.dump(), before);
    let loose = app.method("visa").await;
    app.submit(&format!("{METHODS}/{loose}/detach"), "")
        .await
        .expect_error(400, "payment_method_unexpected_state");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_default_method_is_one_that_the_customer_keeps() {
    let app = TestApp::spawn();
    let (ada, grace) = (app.customer().await, app.customer().await);
    let of_ada = format!("/v1/customers/{ada}");
    let (own, anothers) = (app.kept_method("visa", &ada).await, app.kept_method("visa", &grace).await);
    let default = |id: &str| format!("invoice_settings[default_payment_method]={id}");
    let set = app.submit(&of_ada, &default(&own)).await.expect(200).body;
    assert_eq!(set["invoice_settings"]["default_payment_method"], *own);
    let nobodys = app.method("visa").await;
    let before = app.database.dump();
    for id in [anothers, nobodys] {
        let refused = app.submit(&of_ada, &default(&id)).await.expect_error(400, "resource_missing");
        assert_eq!(refused.param(), "invoice_settings[default_payment_method]");
    }
    assert_eq!(app.database.dump(), before);
    let unset = app.submit(&of_ada, &default("")).await.expect(200).body;
    assert_eq!(unset["invoice_settings"]["default_payment_method"], Value::Null);
    // At birth, the method that comes along can be the default.
    let loose = app.method("visa").await;
    let form = format!("payment_method={loose}&{}", default(&loose));
    let born = app.submit("/v1/customers", &form).await.expect(201);
    assert_eq!(born.body["invoice_settings"]["default_payment_method"], *loose);
    assert_eq!(app.events_of(&born).await, ["customer.created", "payment_method.attached"]);
    app.database.assert_clean();
}

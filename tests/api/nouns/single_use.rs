//! A payment method pays any number of times for the customer who owns it, and once without one.

use futures_util::future::join_all;

use crate::support::TestApp;
use crate::support::intents::PRICE;

const INTENTS: &str = "/v1/payment_intents";

#[tokio::test]
async fn a_method_that_no_customer_owns_pays_once() {
    let app = TestApp::spawn();
    let method = app.method("visa").await;
    let pay = format!("{PRICE}&payment_method={method}&confirm=true");
    app.submit(INTENTS, &pay).await.expect(201);
    let waiting = app.intent("").await;
    let customer = app.customer().await;
    let before = app.database.dump();
    let path = format!("{INTENTS}/{}", waiting["id"].as_str().unwrap());
    for (path, form) in [
        (INTENTS.to_owned(), pay),
        (INTENTS.to_owned(), format!("{PRICE}&payment_method={method}")),
        (path.clone(), format!("payment_method={method}")),
        (format!("{path}/confirm"), format!("payment_method={method}")),
        (format!("/v1/payment_methods/{method}/attach"), format!("customer={customer}")),
        ("/v1/customers".to_owned(), format!("payment_method={method}")),
    ] {
        let refused = app.submit(&path, &form).await.expect_error(400, "payment_method_unexpected_state");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("may not be used again"), "{path}: {message}");
    }
    assert_eq!(app.database.dump(), before);
    app.database.assert_clean();
}

#[tokio::test]
async fn the_method_that_a_charge_made_of_a_source_has_paid_too() {
    let app = TestApp::spawn();
    let charge = app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_visa").await.expect(201);
    let method = charge.body["payment_method"].as_str().unwrap();
    let refused = app.submit(INTENTS, &format!("{PRICE}&payment_method={method}&confirm=true")).await;
    refused.expect_error(400, "payment_method_unexpected_state");
}

#[tokio::test]
async fn a_declined_attempt_does_not_use_a_method_up() {
    let app = TestApp::spawn();
    let method = app.method("chargeCustomerFail").await;
    let pay = format!("{PRICE}&payment_method={method}&confirm=true");
    for _ in 0..2 {
        app.submit(INTENTS, &pay).await.expect_error(402, "card_declined");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn a_method_that_is_attached_first_pays_again_and_again() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let method = app.attached_method("visa", &customer).await;
    let pay = format!("{PRICE}&customer={customer}&payment_method={method}&confirm=true");
    for _ in 0..3 {
        app.submit(INTENTS, &pay).await.expect(201);
    }
    // A method that is to be used again is attached by the payment itself.
    let saved = app.method("visa").await;
    let form = format!("{PRICE}&customer={customer}&payment_method={saved}&confirm=true");
    for setup in ["&setup_future_usage=off_session", ""] {
        app.submit(INTENTS, &format!("{form}{setup}")).await.expect(201);
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn of_several_payments_at_once_with_one_loose_method_one_succeeds() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    for _ in 0..4 {
        let method = app.method("visa").await;
        let pay = format!("{PRICE}&payment_method={method}&confirm=true");
        let replies = join_all((0..8).map(|_| app.submit(INTENTS, &pay))).await;
        let paid = replies.iter().filter(|reply| reply.status == 201).count();
        assert_eq!(paid, 1, "{:?}", replies.iter().map(|reply| reply.status).collect::<Vec<_>>());
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn a_test_method_that_is_named_twice_in_one_request_is_one_method() {
    let app = TestApp::spawn();
    let form = "payment_method=pm_card_visa&invoice_settings[default_payment_method]=pm_card_visa";
    let customer = app.submit("/v1/customers", form).await.expect(201);
    let default = customer.body["invoice_settings"]["default_payment_method"].as_str().unwrap();
    let methods = app.read(&format!("/v1/customers/{}/payment_methods", customer.id())).await;
    let methods = methods["data"].as_array().unwrap();
    assert_eq!((methods.len(), methods[0]["id"].as_str()), (1, Some(default)));
    for form in [
        "invoice_settings[default_payment_method]=pm_card_visa",
        "payment_method=pm_card_visa&invoice_settings[default_payment_method]=pm_card_mastercard",
    ] {
        let refused = app.submit("/v1/customers", form).await.expect_error(400, "resource_missing");
        assert_eq!(refused.param(), "invoice_settings[default_payment_method]");
    }
    app.database.assert_clean();
}

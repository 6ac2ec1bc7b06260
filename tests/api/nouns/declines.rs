//! Declined charges: a 402 that leaves a failed charge behind, and is remembered.

use serde_json::{Value, json};

use crate::support::shapes::{CHARGE, assert_shape};
use crate::support::{TestApp, fresh_key};

/// Every card that a charge without a payment intent declines: name, number, code, decline code.
const DECLINING: [(&str, &str, &str, &str); 13] = [
    ("visa_chargeDeclined", "4000000000000002", "card_declined", "generic_decline"),
    ("visa_chargeDeclinedInsufficientFunds", "4000000000009995", "card_declined", "insufficient_funds"),
    ("visa_chargeDeclinedLostCard", "4000000000009987", "card_declined", "lost_card"),
    ("visa_chargeDeclinedStolenCard", "4000000000009979", "card_declined", "stolen_card"),
    (
        "visa_chargeDeclinedVelocityLimitExceeded",
        "4000000000006975",
        "card_declined",
        "card_velocity_exceeded",
    ),
    ("chargeDeclinedExpiredCard", "4000000000000069", "expired_card", "expired_card"),
    ("chargeDeclinedIncorrectCvc", "4000000000000127", "incorrect_cvc", "incorrect_cvc"),
    ("chargeDeclinedProcessingError", "4000000000000119", "processing_error", "processing_error"),
    ("chargeCustomerFail", "4000000000000341", "card_declined", "generic_decline"),
    ("chargeDeclined", "4000000000000002", "card_declined", "generic_decline"),
    ("chargeDeclinedInsufficientFunds", "4000000000009995", "card_declined", "insufficient_funds"),
    // Nobody can be asked to confirm: there is no payment intent.
    ("authenticationRequired", "4000002500003155", "authentication_required", "authentication_required"),
    ("threeDSecure2Required", "4000000000003220", "authentication_required", "authentication_required"),
];

/// Every card that is good.
const SUCCEEDING: [(&str, &str, &str); 13] = [
    ("visa", "4242424242424242", "visa"),
    ("visa_debit", "4000056655665556", "visa"),
    ("mastercard", "5555555555554444", "mastercard"),
    ("amex", "378282246310005", "amex"),
    ("discover", "6011111111111117", "discover"),
    ("diners", "3056930009020004", "diners"),
    ("jcb", "3566002020360505", "jcb"),
    ("unionpay", "6200000000000005", "unionpay"),
    ("createDispute", "4000000000000259", "visa"),
    ("createDisputeInquiry", "4000000000001976", "visa"),
    ("createDisputeProductNotReceived", "4000000000002685", "visa"),
    ("pendingRefund", "4000000000007726", "visa"),
    ("refundFail", "4000000000005126", "visa"),
];

/// A charge of a card, by its name and by its number.
fn forms(name: &str, number: &str) -> [String; 2] {
    let charge = "amount=1000&currency=usd&source";
    [
        format!("{charge}=tok_{name}"),
        format!("{charge}[number]={number}&source[exp_month]=12&source[exp_year]=2040&source[cvc]=1234"),
    ]
}

#[tokio::test]
async fn every_declining_card_declines_with_its_code_and_leaves_a_failed_charge() {
    let app = TestApp::spawn();
    for (name, number, code, decline_code) in DECLINING {
        for form in forms(name, number) {
            let key = fresh_key();
            let decline = app.post("/v1/charges").key(&key).form(&form).send().await;
            let decline = decline.expect_error(402, code);
            let error = &decline.body["error"];
            assert_eq!([&error["type"], &error["decline_code"]], ["card_error", decline_code], "{form}");
            assert_eq!(error["retry"], "new_key");
            assert!(!error["message"].as_str().unwrap().is_empty());
            let charge = app.read(&format!("/v1/charges/{}", error["charge"].as_str().unwrap())).await;
            assert_shape(&charge, CHARGE);
            let expected = json!({
                "status": "failed", "paid": false, "captured": false, "refunded": false, "failure_code": code,
                "failure_message": error["message"], "amount": 1000, "amount_captured": 0, "amount_refunded": 0,
                "balance_transaction": null,
            });
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(&charge[name], value, "{name} of {form}");
            }
            assert_eq!(charge["outcome"]["type"], "issuer_declined");
            assert_eq!(charge["outcome"]["reason"], decline_code);
            // A decline is remembered, as it left a charge.
            let replay = app.post("/v1/charges").key(&key).form(&form).send().await.expect(402);
            assert!(replay.is_replay());
            assert_eq!(replay.bytes, decline.bytes);
        }
    }
    assert_eq!(app.database.count("charges"), 26);
    assert_eq!(app.database.count("balance_transactions"), 0);
    assert_eq!(app.database.count("events"), 26);
    app.database.assert_clean();
}

#[tokio::test]
async fn every_good_card_is_charged_by_name_and_by_number() {
    let app = TestApp::spawn();
    for (name, number, brand) in SUCCEEDING {
        for form in forms(name, number) {
            let charge = app.submit("/v1/charges", &form).await.expect(201).body;
            let card = &charge["payment_method_details"]["card"];
            assert_eq!(card["brand"], brand);
            assert_eq!(card["last4"], number[number.len() - 4..]);
            assert_eq!([&charge["failure_code"], &charge["failure_message"]], [&Value::Null, &Value::Null]);
            assert_eq!(charge["outcome"]["type"], "authorized");
        }
    }
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 26_000);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_failed_charge_can_be_described_but_never_moves_money() {
    let app = TestApp::spawn();
    let decline = app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_chargeDeclined").await;
    let id = decline.expect(402).body["error"]["charge"].as_str().unwrap().to_owned();
    let path = format!("/v1/charges/{id}");
    let changed = app.submit(&path, "description=tried&metadata[a]=1").await.expect(200).body;
    assert_eq!([&changed["description"], &changed["status"]], ["tried", "failed"]);
    app.submit(&format!("{path}/capture"), "").await.expect(400);
    let refund = app.submit("/v1/refunds", &format!("charge={id}")).await.expect_error(400, "");
    assert_eq!(refund.param(), "charge");
    let listed = app.read("/v1/charges").await;
    assert_eq!(listed["data"], json!([changed]));
    assert_eq!(app.database.count("balance_transactions"), 0);
    app.database.assert_clean();
}

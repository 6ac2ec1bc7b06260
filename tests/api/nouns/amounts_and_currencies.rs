//! Amounts and currencies: minimum and maximum, minor units, and what is no amount.

use serde_json::json;

use crate::support::TestApp;

/// The least that can be charged in each currency, in its minor unit.
const MINIMUMS: [(&str, i64); 28] = [
    ("aud", 50),
    ("brl", 50),
    ("cad", 50),
    ("chf", 50),
    ("eur", 50),
    ("inr", 50),
    ("nzd", 50),
    ("sgd", 50),
    ("usd", 50),
    ("gbp", 30),
    ("jpy", 50),
    ("mxn", 1000),
    ("sek", 300),
    ("nok", 300),
    ("dkk", 250),
    ("pln", 200),
    ("ron", 200),
    ("aed", 200),
    ("myr", 200),
    ("hkd", 400),
    ("czk", 1500),
    ("huf", 17_500),
    ("thb", 1000),
    // Currencies without a minimum of their own have one minor unit, or the least that cards can settle.
    ("krw", 1),
    ("clp", 1),
    ("zmw", 1),
    ("kwd", 10),
    ("bhd", 10),
];

#[tokio::test]
async fn each_currency_has_its_minimum_and_all_have_one_maximum() {
    let app = TestApp::spawn();
    for (currency, minimum) in MINIMUMS {
        let charge = async |amount: i64| {
            app.submit("/v1/charges", &format!("amount={amount}&currency={currency}&source=tok_visa")).await
        };
        let least = charge(minimum).await.expect(201).body;
        assert_eq!([&least["amount"], &least["currency"]], [&json!(minimum), &json!(currency)]);
        let less = charge(minimum - 1).await.expect_error(400, "amount_too_small");
        assert_eq!(less.param(), "amount");
    }
    for (amount, currency) in [(99_999_999, "usd"), (99_999_999, "jpy"), (99_999_990, "kwd")] {
        let form = format!("amount={amount}&currency={currency}&source=tok_visa");
        app.submit("/v1/charges", &form).await.expect(201);
        let form = format!("amount=100000000&currency={currency}&source=tok_visa");
        app.submit("/v1/charges", &form).await.expect_error(400, "amount_too_large");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn currencies_are_read_in_any_case_and_shown_in_lower_case() {
    let app = TestApp::spawn();
    for written in ["usd", "USD", "Usd"] {
        let form = format!("amount=1000&currency={written}&source=tok_visa");
        assert_eq!(app.submit("/v1/charges", &form).await.expect(201).body["currency"], "usd");
    }
    let balance = app.read("/v1/balance").await;
    assert_eq!(balance["available"].as_array().unwrap().len(), 1);
    for unknown in ["zzz", "us", "usdd", "", "u%24d", "%F0%9F%92%B5"] {
        let form = format!("amount=1000&currency={unknown}&source=tok_visa");
        let error = app.submit("/v1/charges", &form).await.expect(400);
        assert_eq!(error.param(), "currency", "{unknown}");
    }
    for wrong in [json!(1), json!(["usd"]), json!({ "code": "usd" }), json!(true)] {
        let body = json!({ "amount": 1000, "currency": wrong, "source": "tok_visa" });
        assert_eq!(app.submit_json("/v1/charges", &body).await.expect(400).param(), "currency");
    }
}

#[tokio::test]
async fn a_three_decimal_amount_ends_in_zero_and_a_zero_decimal_one_is_whole() {
    let app = TestApp::spawn();
    for currency in ["bhd", "jod", "kwd", "omr", "tnd"] {
        let form = format!("amount=1234&currency={currency}&source=tok_visa");
        let error = app.submit("/v1/charges", &form).await.expect_error(400, "invalid_amount");
        assert_eq!(error.param(), "amount");
        let form = format!("amount=1230&currency={currency}&source=tok_visa&capture=false");
        let held = app.submit("/v1/charges", &form).await.expect(201);
        let capture = format!("/v1/charges/{}/capture", held.id());
        app.submit(&capture, "amount=1").await.expect_error(400, "invalid_amount");
        app.submit(&capture, "amount=10").await.expect(200);
    }
    // A person reads 500 yen and not 5.00.
    let yen = app.submit("/v1/charges", "amount=500&currency=jpy&source=tok_visa").await.expect(201);
    let error = app.submit("/v1/refunds", &format!("charge={}&amount=501", yen.id())).await.expect(400);
    let message = error.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("JPY 501") && message.contains("JPY 500"), "{message}");
}

#[tokio::test]
async fn an_amount_that_is_no_integer_is_refused() {
    let app = TestApp::spawn();
    for written in ["10.5", "", "x", "1e3", "0x10", "1_000", "1,000", "%2B5", "9223372036854775808", "-9e99"]
    {
        let form = format!("amount={written}&currency=usd&source=tok_visa");
        let error = app.submit("/v1/charges", &form).await.expect_error(400, "parameter_invalid_integer");
        assert_eq!(error.param(), "amount", "{written}");
    }
    let half = app.submit("/v1/charges", "amount=10.5&currency=usd&source=tok_visa").await;
    assert_eq!(half.body["error"]["message"], "Invalid integer: 10.5");
    for json in ["10.5", "1e3", "\"1000\"", "true", "[1000]", "{}", "9223372036854775808", "1e400"] {
        let body = format!(r#"{{"amount":{json},"currency":"usd","source":"tok_visa"}}"#);
        let call = app.post("/v1/charges").key("a-key-that-stays-free").body("application/json", body);
        let error = call.send().await.expect(400);
        assert_eq!(error.body["error"]["type"], "invalid_request_error", "{json}");
    }
    for (form, code) in [
        ("amount=9223372036854775807", "amount_too_large"),
        ("amount=-9223372036854775808", "amount_too_small"),
        ("amount=0", "amount_too_small"),
        ("amount=-1000", "amount_too_small"),
    ] {
        let form = format!("{form}&currency=usd&source=tok_visa");
        app.submit("/v1/charges", &form).await.expect_error(400, code);
    }
    let missing = app.submit("/v1/charges", "currency=usd&source=tok_visa").await;
    assert_eq!(missing.expect_error(400, "parameter_missing").param(), "amount");
    assert_eq!(app.database.count("charges") + app.database.count("payment_methods"), 0);
}

#[tokio::test]
async fn a_currency_that_is_written_with_two_zeros_is_whole() {
    let app = TestApp::spawn();
    for currency in ["ugx", "isk"] {
        for amount in [150, 1] {
            let form = format!("amount={amount}&currency={currency}&source=tok_visa");
            let error = app.submit("/v1/charges", &form).await.expect_error(400, "parameter_invalid_integer");
            assert_eq!(error.param(), "amount");
            let form = format!("amount={amount}&currency={currency}");
            app.submit("/v1/payment_intents", &form).await.expect_error(400, "parameter_invalid_integer");
        }
        let form = format!("amount=500&currency={currency}&source=tok_visa");
        let charge = app.submit("/v1/charges", &form).await.expect(201).id().to_owned();
        let part = app.submit("/v1/refunds", &format!("charge={charge}&amount=150")).await;
        part.expect_error(400, "parameter_invalid_integer");
        let more = app.submit("/v1/refunds", &format!("charge={charge}&amount=600")).await.expect(400);
        let message = more.body["error"]["message"].as_str().unwrap();
        let shown = format!("{} 5)", currency.to_uppercase());
        assert!(message.contains(&shown) && !message.contains("500"), "{message}");
    }
    app.database.assert_clean();
}

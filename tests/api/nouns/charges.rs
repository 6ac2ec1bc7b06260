//! Charges: made, held and captured, changed. Their declines are in `declines.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::shapes::{self, CHARGED_CARD, assert_shape, without_identity};
use crate::support::{CHARGE, HOLD, TestApp, fresh_key};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Makes a charge, and gives its path.
async fn charge(app: &TestApp, form: &str) -> String {
    let charge = app.submit("/v1/charges", form).await.expect(201);
    format!("/v1/charges/{}", charge.id())
}

#[tokio::test]
async fn a_charge_is_made_and_changed_alike_by_form_and_by_json() {
    let app = TestApp::spawn();
    let by_form = app
        .submit(
            "/v1/charges",
            "amount=1234&currency=UsD&source=tok_mastercard&description=A+book&receipt_email=a%40b.c\
             &statement_descriptor=BOOKS&statement_descriptor_suffix=ONE&metadata[order]=7&capture=true\
             &shipping[name]=Ada&shipping[address][line1]=1+St.&shipping[carrier]=Post&shipping[tracking_number]=T1",
        )
        .await
        .expect(201);
    let by_json = app
        .submit_json(
            "/v1/charges",
            &json!({
                "amount": 1234, "currency": "usd", "source": "tok_mastercard", "description": "A book",
                "receipt_email": "a@b.c", "statement_descriptor": "BOOKS", "statement_descriptor_suffix": "ONE",
                "metadata": { "order": 7 }, "capture": true,
                "shipping": { "name": "Ada", "address": { "line1": "1 St." }, "carrier": "Post",
                    "tracking_number": "T1" },
            }),
        )
        .await
        .expect(201);
    assert_eq!(without_identity(&by_form.body), without_identity(&by_json.body));
    let charge = &by_form.body;
    assert_shape(charge, shapes::CHARGE);
    assert_shape(&charge["payment_method_details"]["card"], CHARGED_CARD);
    assert!(charge["outcome"]["type"].is_string());
    let facts = json!({
        "object": "charge", "amount": 1234, "amount_captured": 1234, "amount_refunded": 0, "captured": true,
        "currency": "usd", "customer": null, "description": "A book", "disputed": false, "failure_code": null,
        "livemode": false, "metadata": { "order": "7" }, "paid": true, "receipt_email": "a@b.c", "refunded": false,
        "statement_descriptor": "BOOKS", "statement_descriptor_suffix": "ONE", "status": "succeeded",
    });
    for (name, value) in facts.as_object().unwrap() {
        assert_eq!(&charge[name], value, "{name}");
    }
    assert_eq!(charge["shipping"]["carrier"], "Post");
    assert_eq!(charge["payment_method_details"]["card"]["brand"], "mastercard");
    assert_eq!(charge["payment_method_details"]["card"]["last4"], "4444");
    let path = format!("/v1/charges/{}", by_form.id());
    assert_eq!(by_form.header("Location"), Some(&*path));
    assert_eq!(app.read(&path).await, *charge);

    let form = "description=&metadata[order]=&metadata[note]=n&receipt_email=x%40y.z&fraud_details[user_report]=safe\
                &shipping[name]=Grace&shipping[address][city]=Rome";
    let changed = app.submit(&path, form).await.expect(200).body;
    let other = app
        .submit_json(
            &format!("/v1/charges/{}", by_json.id()),
            &json!({
                "description": null, "metadata": { "order": null, "note": "n" }, "receipt_email": "x@y.z",
                "fraud_details": { "user_report": "safe" },
                "shipping": { "name": "Grace", "address": { "city": "Rome" } },
            }),
        )
        .await
        .expect(200)
        .body;
    assert_eq!(without_identity(&changed), without_identity(&other));
    assert_shape(&changed, shapes::CHARGE);
    assert_eq!(changed["description"], Value::Null);
    assert_eq!(changed["metadata"], json!({ "note": "n" }));
    assert_eq!(changed["fraud_details"], json!({ "user_report": "safe" }));
    assert_eq!(changed["shipping"]["name"], "Grace");
    assert_eq!(app.read(&path).await, changed);
    let cleared = app.submit(&path, "metadata=&fraud_details[user_report]=").await.expect(200).body;
    assert_eq!([&cleared["metadata"], &cleared["fraud_details"]], [&json!({}), &json!({})]);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_hold_moves_money_when_it_is_captured_and_only_what_is_captured() {
    let app = TestApp::spawn();
    for (capture, captured, released) in [("", 1000, 0), ("amount=1000", 1000, 0), ("amount=300", 300, 700)] {
        let ledger = app.database.count("balance_transactions");
        let path = charge(&app, HOLD).await;
        let held = app.read(&path).await;
        assert_shape(&held, shapes::CHARGE);
        assert_eq!([&held["captured"], &held["paid"]], [false, true]);
        assert_eq!([&held["amount_captured"], &held["amount_refunded"]], [0, 0]);
        assert_eq!([&held["status"], &held["balance_transaction"]], [&json!("succeeded"), &Value::Null]);
        assert_eq!(app.database.count("balance_transactions"), ledger);
        let done = app.submit(&format!("{path}/capture"), capture).await.expect(200).body;
        assert_shape(&done, shapes::CHARGE);
        assert_eq!([&done["captured"], &done["refunded"]], [true, false]);
        assert_eq!(done["amount"], 1000);
        assert_eq!([&done["amount_captured"], &done["amount_refunded"]], [captured, released]);
        let transaction = done["balance_transaction"].as_str().unwrap();
        let transaction = app.read(&format!("/v1/balance_transactions/{transaction}")).await;
        assert_eq!(transaction["amount"], captured);
        assert_eq!(app.read(&path).await, done);
    }
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 2300);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_capture_is_made_alike_by_form_and_by_json_and_can_add_to_the_charge() {
    let app = TestApp::spawn();
    let hold = &format!("{HOLD}&receipt_email=a%40b.c");
    let (first, second) = (charge(&app, hold).await, charge(&app, hold).await);
    let form = "amount=400&receipt_email=x%40y.z&statement_descriptor=ONE&statement_descriptor_suffix=TWO";
    let by_form = app.submit(&format!("{first}/capture"), form).await.expect(200).body;
    let body = json!({ "amount": 400, "receipt_email": "x@y.z", "statement_descriptor": "ONE",
        "statement_descriptor_suffix": "TWO" });
    let by_json = app.submit_json(&format!("{second}/capture"), &body).await.expect(200).body;
    assert_eq!(without_identity(&by_form), without_identity(&by_json));
    assert_eq!([&by_form["receipt_email"], &by_form["statement_descriptor"]], ["x@y.z", "ONE"]);
}

#[tokio::test]
async fn what_cannot_be_captured_says_why_and_stays_as_it_is() {
    let app = TestApp::spawn();
    let captured = charge(&app, CHARGE).await;
    let held = charge(&app, HOLD).await;
    let decline =
        app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_chargeDeclined&capture=false");
    let failed = decline.await.expect(402).body["error"]["charge"].as_str().unwrap().to_owned();
    let failed = format!("/v1/charges/{failed}");
    let before = app.database.dump();
    for (path, form, code, param) in [
        (&captured, "", "charge_already_captured", ""),
        (&captured, "amount=1", "charge_already_captured", ""),
        (&failed, "", "", ""),
        (&held, "amount=1001", "amount_too_large", "amount"),
        (&held, "amount=0", "parameter_invalid_integer", "amount"),
        (&held, "amount=-5", "parameter_invalid_integer", "amount"),
        (&held, "amount=1.5", "parameter_invalid_integer", "amount"),
        (&held, "amount=", "parameter_invalid_integer", "amount"),
        (&held, "transfer_data[amount]=1", "parameter_unknown", "transfer_data"),
    ] {
        let error = app.submit(&format!("{path}/capture"), form).await.expect_error(400, code);
        assert_eq!(error.param(), param, "{form}");
    }
    let unknown =
        app.submit("/v1/charges/ch_unknown/capture", "").await.expect_error(404, "resource_missing");
    assert_eq!(unknown.body["error"]["message"], "No such charge: 'ch_unknown'");
    assert_eq!(app.database.dump(), before);
    app.submit(&format!("{held}/capture"), "amount=1").await.expect(200);
    app.submit(&format!("{held}/capture"), "amount=1").await.expect_error(400, "charge_already_captured");
}

#[tokio::test]
async fn a_hold_is_gone_after_seven_days() {
    let app = TestApp::spawn();
    let (in_time, too_late) = (charge(&app, HOLD).await, charge(&app, HOLD).await);
    app.state.clock.advance(7 * DAY - Duration::from_secs(600));
    app.submit(&format!("{in_time}/capture"), "").await.expect(200);
    app.state.clock.advance(Duration::from_secs(601));
    let late = app.submit(&format!("{too_late}/capture"), "").await;
    late.expect_error(400, "charge_expired_for_capture");
    assert_eq!(app.read(&too_late).await["captured"], false);
    assert_eq!(app.database.count("balance_transactions"), 1);
    app.database.assert_clean();
}

#[tokio::test]
async fn an_update_changes_no_money_and_gives_a_customer_only_to_a_charge_without_one() {
    let app = TestApp::spawn();
    let ada = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let grace = app.submit("/v1/customers", "").await.expect(201);
    let gone = app.submit("/v1/customers", "").await.expect(201);
    app.delete(&format!("/v1/customers/{}", gone.id())).send().await.expect(200);
    let path = charge(&app, CHARGE).await;
    let with = |customer: &str| format!("customer={customer}");
    for (form, code, param) in [
        (with(gone.id()), "resource_missing", "customer"),
        (with("cus_unknown"), "resource_missing", "customer"),
        ("amount=1".to_owned(), "parameter_unknown", "amount"),
        ("currency=eur".to_owned(), "parameter_unknown", "currency"),
        ("fraud_details[user_report]=maybe".to_owned(), "", "fraud_details[user_report]"),
        ("fraud_details[x]=safe".to_owned(), "parameter_unknown", "fraud_details[x]"),
        ("receipt_email=nobody".to_owned(), "email_invalid", "receipt_email"),
        ("transfer_group=x".to_owned(), "parameter_unknown", "transfer_group"),
    ] {
        let error = app.submit(&path, &form).await.expect_error(400, code);
        assert_eq!(error.param(), param, "{form}");
    }
    assert_eq!(app.submit(&path, &with(ada.id())).await.expect(200).body["customer"], ada.id());
    // The same one again is no change; another one is.
    app.submit(&path, &with(ada.id())).await.expect(200);
    assert_eq!(app.submit(&path, &with(grace.id())).await.expect_error(400, "").param(), "customer");
    let listed = app.read(&format!("/v1/charges?customer={}", ada.id())).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
    app.submit("/v1/charges/ch_unknown", "").await.expect_error(404, "resource_missing");
}

#[tokio::test]
async fn a_source_can_be_named_in_every_way() {
    let app = TestApp::spawn();
    let token_form = "card[number]=6011111111111117&card[exp_month]=12&card[exp_year]=2040";
    let (token, other) =
        (app.submit("/v1/tokens", token_form).await, app.submit("/v1/tokens", token_form).await);
    let customer = app.submit("/v1/customers", "source=tok_jcb").await.expect(201);
    let first = customer.body["default_source"].as_str().unwrap();
    let path = format!("/v1/customers/{}", customer.id());
    app.submit(&path, "source=tok_amex").await.expect(200);
    let card = |name: &str| {
        format!(
            "{name}[number]=3056930009020004&{name}[exp_month]=12&{name}[exp_year]=2040&{name}[object]=card"
        )
    };
    let cases = [
        ("source=tok_visa".to_owned(), "4242"),
        (format!("source={}", token.id()), "1117"),
        (format!("card={}", other.id()), "1117"),
        ("card=tok_visa_debit".to_owned(), "5556"),
        (card("source"), "0004"),
        (card("card"), "0004"),
        (format!("customer={}", customer.id()), "0005"),
        (format!("customer={}&source={first}", customer.id()), "0505"),
    ];
    for (source, last4) in &cases {
        let charge = app.submit("/v1/charges", &format!("amount=500&currency=eur&{source}")).await;
        let charge = charge.expect(201).body;
        assert_eq!(charge["payment_method_details"]["card"]["last4"], *last4, "{source}");
        let customer = if source.starts_with("customer") { json!(customer.id()) } else { Value::Null };
        assert_eq!(charge["customer"], customer, "{source}");
    }
    assert_eq!(app.database.count("charges"), 8);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_source_that_cannot_be_charged_is_refused_and_nothing_is_stored() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let stranger = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let bare = app.submit("/v1/customers", "").await.expect(201);
    let token_form = "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040";
    let token = app.submit("/v1/tokens", token_form).await.expect(201);
    let used = app.submit("/v1/tokens", token_form).await.expect(201);
    charge(&app, &format!("amount=500&currency=eur&source={}", used.id())).await;
    let card = stranger.body["default_source"].as_str().unwrap();
    let before = app.database.dump();
    for (source, code, param) in [
        (String::new(), "parameter_missing", "source"),
        ("source=".to_owned(), "parameter_missing", "source"),
        (format!("source={}", used.id()), "token_already_used", "source"),
        ("source=pm_card_visa".to_owned(), "resource_missing", "source"),
        ("source=pm_0199aabbccdd7eef8011223344556677".to_owned(), "resource_missing", "source"),
        ("source=tok_unheard_of".to_owned(), "resource_missing", "source"),
        ("source=tok_visa&card=tok_visa".to_owned(), "", "card"),
        ("source[object]=bank_account&source[number]=1".to_owned(), "parameter_missing", "source[exp_month]"),
        (format!("source={card}"), "", "source"),
        (format!("customer={}&source={card}", customer.id()), "resource_missing", "source"),
        (format!("customer={}&source={}", customer.id(), token.id()), "", "source"),
        (format!("customer={}", bare.id()), "missing", "card"),
        ("customer=cus_unknown".to_owned(), "resource_missing", "customer"),
        ("payment_method=pm_card_visa&source=tok_visa".to_owned(), "parameter_unknown", "payment_method"),
    ] {
        let form = format!("amount=500&currency=eur&{source}");
        let error = app.submit("/v1/charges", &form).await.expect_error(400, code);
        assert_eq!(error.param(), param, "{form}");
    }
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn charges_of_another_account_do_not_exist() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let post = async |path: &str, form: &str| {
        app.call_as(&other, reqwest::Method::POST, path).key(&fresh_key()).form(form).send().await
    };
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let path = charge(&app, "amount=500&currency=eur&source=tok_visa&capture=false").await;
    let before = app.read(&path).await;
    let get = app.call_as(&other, reqwest::Method::GET, &path).send().await;
    get.expect_error(404, "resource_missing");
    post(&path, "description=x").await.expect_error(404, "resource_missing");
    post(&format!("{path}/capture"), "").await.expect_error(404, "resource_missing");
    let refund = format!("charge={}", before["id"].as_str().unwrap());
    post("/v1/refunds", &refund).await.expect_error(400, "resource_missing");
    let charge = format!("amount=500&currency=eur&customer={}", customer.id());
    post("/v1/charges", &charge).await.expect_error(400, "resource_missing");
    let list = format!("/v1/charges?starting_after={}", before["id"].as_str().unwrap());
    let list = app.call_as(&other, reqwest::Method::GET, &list).send().await;
    list.expect_error(400, "resource_missing");
    assert_eq!(app.read(&path).await, before);
}

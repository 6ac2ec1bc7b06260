//! Refunds: all of a charge or a part, and never more.

use serde_json::{Value, json};

use crate::support::shapes::{REFUND, assert_shape, without_identity};
use crate::support::{HOLD, TestApp, fresh_key};

#[tokio::test]
async fn a_refund_is_made_and_changed_alike_by_form_and_by_json() {
    let app = TestApp::spawn();
    let (first, second) = (app.charge().await, app.charge().await);
    let form = format!("charge={first}&amount=300&reason=requested_by_customer&metadata[why]=late");
    let by_form = app.submit("/v1/refunds", &form).await.expect(201);
    let body = json!({ "charge": second, "amount": 300, "reason": "requested_by_customer",
        "metadata": { "why": "late" } });
    let by_json = app.submit_json("/v1/refunds", &body).await.expect(201);
    assert_eq!(without_identity(&by_form.body), without_identity(&by_json.body));
    let refund = &by_form.body;
    assert_shape(refund, REFUND);
    assert_eq!([&refund["amount"], &refund["charge"]], [&json!(300), &json!(first)]);
    assert_eq!(
        [&refund["status"], &refund["currency"], &refund["reason"]],
        ["succeeded", "usd", "requested_by_customer"]
    );
    let path = format!("/v1/refunds/{}", by_form.id());
    assert_eq!(by_form.header("Location"), Some(&*path));
    assert_eq!(app.read(&path).await, *refund);

    let changed = app.submit(&path, "metadata[why]=&metadata[who]=Ada").await.expect(200).body;
    let other = format!("/v1/refunds/{}", by_json.id());
    let other = app.submit_json(&other, &json!({ "metadata": { "why": null, "who": "Ada" } })).await;
    assert_eq!(without_identity(&changed), without_identity(&other.expect(200).body));
    assert_eq!(changed["metadata"], json!({ "who": "Ada" }));
    assert_eq!(app.read(&path).await, changed);
    let amount = app.submit(&path, "amount=1").await.expect_error(400, "parameter_unknown");
    assert_eq!(amount.param(), "amount");
    app.submit("/v1/refunds/re_unknown", "").await.expect_error(404, "resource_missing");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refund_without_an_amount_takes_all_that_is_left() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let path = format!("/v1/charges/{charge}");
    let part = app.submit("/v1/refunds", &format!("charge={charge}&amount=400")).await.expect(201).body;
    assert_eq!(part["amount"], 400);
    let seen = app.read(&path).await;
    assert_eq!([&seen["amount_refunded"], &seen["refunded"]], [&json!(400), &json!(false)]);
    // More than what is left names both amounts, and changes nothing.
    let before = app.database.dump();
    let error = app.submit("/v1/refunds", &format!("charge={charge}&amount=601")).await.expect_error(400, "");
    let message = error.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("6.01") && message.contains("6.00"), "{message}");
    assert_eq!(error.param(), "amount");
    assert_eq!(app.database.dump(), before);
    let rest = app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201).body;
    assert_eq!(rest["amount"], 600);
    let seen = app.read(&path).await;
    assert_eq!([&seen["amount_refunded"], &seen["refunded"]], [&json!(1000), &json!(true)]);
    assert_eq!(
        [&seen["status"], &seen["captured"], &seen["paid"]],
        [&json!("succeeded"), &json!(true), &json!(true)]
    );
    for more in ["", "&amount=1"] {
        let error = app.submit("/v1/refunds", &format!("charge={charge}{more}")).await;
        error.expect_error(400, "charge_already_refunded");
    }
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 0);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refund_of_a_partly_captured_charge_is_of_the_captured_part() {
    let app = TestApp::spawn();
    let hold = app.submit("/v1/charges", HOLD).await;
    let charge = hold.expect(201).id().to_owned();
    let path = format!("/v1/charges/{charge}");
    app.submit(&format!("{path}/capture"), "amount=300").await.expect(200);
    app.submit("/v1/refunds", &format!("charge={charge}&amount=301")).await.expect_error(400, "");
    let refund = app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201).body;
    assert_eq!(refund["amount"], 300);
    let seen = app.read(&path).await;
    assert_eq!([&seen["amount_captured"], &seen["amount_refunded"]], [300, 1000]);
    assert_eq!(seen["refunded"], true);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refused_refund_says_why_and_changes_nothing() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let hold = app.submit("/v1/charges", HOLD).await;
    let held = hold.expect(201).id().to_owned();
    let decline = app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_chargeDeclined").await;
    let failed = decline.expect(402).body["error"]["charge"].as_str().unwrap().to_owned();
    let three_decimals = app.submit("/v1/charges", "amount=1000&currency=kwd&source=tok_visa").await;
    let dinars = three_decimals.expect(201).id().to_owned();
    let before = app.database.dump();
    for (form, code, param) in [
        (format!("charge={held}&amount=5"), "", "charge"),
        (format!("charge={failed}"), "", "charge"),
        (String::new(), "parameter_missing", "charge"),
        ("amount=5".to_owned(), "parameter_missing", "charge"),
        ("charge=ch_unknown".to_owned(), "resource_missing", "charge"),
        ("payment_intent=pi_unknown".to_owned(), "resource_missing", "payment_intent"),
        (format!("charge={charge}&amount=0"), "parameter_invalid_integer", "amount"),
        (format!("charge={charge}&amount=-1"), "parameter_invalid_integer", "amount"),
        (format!("charge={charge}&amount=1.5"), "parameter_invalid_integer", "amount"),
        (format!("charge={charge}&amount=99999999999999999999"), "parameter_invalid_integer", "amount"),
        (format!("charge={charge}&amount=9223372036854775807"), "", "amount"),
        (format!("charge={dinars}&amount=5"), "invalid_amount", "amount"),
        (format!("charge={charge}&reason=because"), "", "reason"),
        (format!("charge={charge}&reason=expired_uncaptured_charge"), "", "reason"),
        (format!("charge={charge}&reverse_transfer=true"), "parameter_unknown", "reverse_transfer"),
        (format!("charge={charge}&nonsense=1"), "parameter_unknown", "nonsense"),
    ] {
        let error = app.submit("/v1/refunds", &form).await.expect_error(400, code);
        assert_eq!(error.param(), param, "{form}");
    }
    assert_eq!(app.database.dump(), before);
    app.submit("/v1/refunds", &format!("charge={dinars}&amount=10")).await.expect(201);
}

#[tokio::test]
async fn each_reason_that_a_caller_may_name_is_taken() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    for (reason, expected) in [
        ("duplicate", json!("duplicate")),
        ("fraudulent", json!("fraudulent")),
        ("requested_by_customer", json!("requested_by_customer")),
        ("", Value::Null),
    ] {
        let form = format!("charge={charge}&amount=1&reason={reason}");
        assert_eq!(app.submit("/v1/refunds", &form).await.expect(201).body["reason"], expected);
    }
}

#[tokio::test]
async fn a_refund_to_the_test_card_of_pending_refunds_is_pending_and_takes_the_money_at_once() {
    let app = TestApp::spawn();
    for (token, status) in [("tok_pendingRefund", "pending"), ("tok_visa", "succeeded")] {
        let charge = app.submit("/v1/charges", &format!("amount=1000&currency=usd&source={token}")).await;
        let refund = app.submit("/v1/refunds", &format!("charge={}", charge.expect(201).id())).await;
        let refund = refund.expect(201);
        assert_eq!(refund.body["status"], status);
        assert_eq!(app.read(&format!("/v1/refunds/{}", refund.id())).await, refund.body);
    }
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 0);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refund_names_the_customer_of_its_charge_and_can_be_listed_by_charge() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let charge =
        app.submit("/v1/charges", &format!("amount=1000&currency=usd&customer={}", customer.id())).await;
    let charge = charge.expect(201).id().to_owned();
    let other = app.charge().await;
    let mut ids = Vec::new();
    for charge in [&charge, &other, &charge] {
        let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=100")).await.expect(201);
        let expected = if *charge == other { Value::Null } else { json!(customer.id()) };
        assert_eq!(refund.body["customer"], expected);
        ids.push(refund.id().to_owned());
    }
    let list = app.read(&format!("/v1/refunds?charge={charge}")).await;
    let found: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(found, [&*ids[2], &*ids[0]]);
    let unknown = app.get("/v1/refunds?charge=ch_unknown").send().await;
    assert_eq!(unknown.expect_error(400, "resource_missing").param(), "charge");
}

#[tokio::test]
async fn refunds_of_another_account_do_not_exist() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let charge = app.charge().await;
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    let path = format!("/v1/refunds/{}", refund.id());
    let get = async |path: &str| app.call_as(&other, reqwest::Method::GET, path).send().await;
    get(&path).await.expect_error(404, "resource_missing");
    let update = app.call_as(&other, reqwest::Method::POST, &path).key(&fresh_key()).form("metadata[a]=1");
    update.send().await.expect_error(404, "resource_missing");
    assert_eq!(get("/v1/refunds").await.expect(200).body["data"], json!([]));
    get(&format!("/v1/refunds?charge={charge}")).await.expect_error(400, "resource_missing");
    let create = app.call_as(&other, reqwest::Method::POST, "/v1/refunds").key(&fresh_key());
    let create = create.form(&format!("charge={charge}")).send().await.expect_error(400, "resource_missing");
    assert_eq!(create.body["error"]["message"], format!("No such charge: '{charge}'"));
    assert_eq!(app.read(&path).await, refund.body);
}

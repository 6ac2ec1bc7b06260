//! The balance, and the ledger that it is the sum of.

use serde_json::{Value, json};

use crate::support::shapes::{BALANCE, BALANCE_TRANSACTION, LIST, assert_shape};
use crate::support::{HOLD, TestApp};

/// Amounts by currency, as the balance shows them.
fn amounts(balance: &Value) -> Value {
    assert_shape(balance, BALANCE);
    assert_eq!([&balance["object"], &balance["livemode"]], [&json!("balance"), &json!(false)]);
    let amounts = balance["available"].as_array().unwrap().iter();
    let pairs = amounts.map(|part| (part["currency"].as_str().unwrap().to_owned(), part["amount"].clone()));
    Value::Object(pairs.collect())
}

#[tokio::test]
async fn the_balance_is_the_sum_of_the_ledger_by_currency() {
    let app = TestApp::spawn();
    assert_eq!(amounts(&app.read("/v1/balance").await), json!({ "usd": 0 }));
    let mut charges = Vec::new();
    for (amount, currency) in [(1000, "usd"), (500, "usd"), (700, "eur"), (90, "jpy")] {
        let form = format!("amount={amount}&currency={currency}&source=tok_visa");
        charges.push(app.submit("/v1/charges", &form).await.expect(201).id().to_owned());
    }
    // Neither a hold nor a decline is money.
    app.submit("/v1/charges", HOLD).await.expect(201);
    app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_chargeDeclined").await.expect(402);
    app.submit("/v1/refunds", &format!("charge={}&amount=1", charges[0])).await.expect(201);
    app.submit("/v1/refunds", &format!("charge={}", charges[2])).await.expect(201);
    let balance = app.read("/v1/balance").await;
    assert_eq!(amounts(&balance), json!({ "usd": 1499, "eur": 0, "jpy": 90 }));
    for part in balance["pending"].as_array().unwrap() {
        assert_eq!(part["amount"], 0);
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn every_movement_has_its_row_of_the_ledger() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=400")).await.expect(201);
    let charge = app.read(&format!("/v1/charges/{charge}")).await;
    for (object, amount, kind) in [(&charge, 1000, "charge"), (&refund.body, -400, "refund")] {
        let id = object["balance_transaction"].as_str().unwrap();
        let row = app.read(&format!("/v1/balance_transactions/{id}")).await;
        assert_shape(&row, BALANCE_TRANSACTION);
        let expected = json!({
            "object": "balance_transaction", "amount": amount, "net": amount, "fee": 0, "fee_details": [],
            "currency": "usd", "type": kind, "reporting_category": kind, "source": object["id"],
            "status": "available", "balance_type": "payments", "created": object["created"],
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&row[name], value, "{name} of the {kind}");
        }
    }
    let list = app.read("/v1/balance_transactions").await;
    assert_shape(&list, LIST);
    assert_eq!(list["url"], "/v1/balance_transactions");
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    assert_eq!(list["data"][0]["source"], refund.id());
}

#[tokio::test]
async fn the_ledger_can_be_narrowed_to_a_currency_a_type_and_a_source() {
    let app = TestApp::spawn();
    let dollars = app.charge().await;
    let euros = app.submit("/v1/charges", "amount=700&currency=eur&source=tok_visa").await.expect(201);
    let refund = app.submit("/v1/refunds", &format!("charge={dollars}&amount=400")).await.expect(201);
    let (refund, euros) = (refund.id(), euros.id());
    for (query, expected) in [
        (String::new(), vec![refund, euros, &*dollars]),
        ("currency=usd".to_owned(), vec![refund, &*dollars]),
        ("currency=EUR".to_owned(), vec![euros]),
        ("currency=gbp".to_owned(), vec![]),
        ("type=charge".to_owned(), vec![euros, &*dollars]),
        ("type=refund".to_owned(), vec![refund]),
        ("type=payout".to_owned(), vec![]),
        (format!("source={dollars}"), vec![&*dollars]),
        (format!("source={refund}"), vec![refund]),
        (format!("source={refund}&type=charge"), vec![]),
        ("type=charge&currency=usd".to_owned(), vec![&*dollars]),
    ] {
        let list = app.read(&format!("/v1/balance_transactions?{query}")).await;
        let found: Vec<&str> =
            list["data"].as_array().unwrap().iter().map(|row| row["source"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{query}");
    }
    for (query, param) in [("currency=zzz", "currency"), ("source=ch_unknown", "source"), ("fee=1", "fee")] {
        let error = app.get(&format!("/v1/balance_transactions?{query}")).send().await.expect(400);
        assert_eq!(error.param(), param);
    }
}

#[tokio::test]
async fn the_money_of_another_account_is_not_seen() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let charge = app.charge().await;
    let get = async |path: &str| app.call_as(&other, reqwest::Method::GET, path).send().await;
    assert_eq!(amounts(&get("/v1/balance").await.expect(200).body), json!({ "usd": 0 }));
    let source = get(&format!("/v1/balance_transactions?source={charge}")).await;
    assert_eq!(source.expect_error(400, "resource_missing").param(), "source");
    for query in ["", "?currency=usd"] {
        let list = get(&format!("/v1/balance_transactions{query}")).await.expect(200);
        assert_eq!(list.body["data"], json!([]), "{query}");
    }
    let row = app.read("/v1/balance_transactions").await["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/balance_transactions/{row}");
    get(&path).await.expect_error(404, "resource_missing");
    let cursor = get(&format!("/v1/balance_transactions?starting_after={row}")).await;
    assert_eq!(cursor.expect_error(400, "resource_missing").param(), "starting_after");
    app.read(&path).await;
}

//! Lists within objects, and what Stripe can expand that this service does not have.

use serde_json::{Value, json};

use crate::support::shapes::{CARD, LIST, REFUND, assert_shape};
use crate::support::{Proxy, TestApp};

/// The ids in a list, in order.
fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|object| object["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_refunds_of_a_charge_are_a_list_within_it_and_its_url_pages_on() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let path = format!("/v1/charges/{charge}");
    let plain = app.read(&path).await;
    assert!(plain.get("refunds").is_none());
    let url = format!("{path}/refunds");
    let none = app.read(&format!("{path}?expand[]=refunds")).await;
    assert_eq!(none["refunds"], json!({ "object": "list", "data": [], "has_more": false, "url": url }));

    let mut refunds = Vec::new();
    for _ in 0..12 {
        let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=5")).await.expect(201);
        refunds.insert(0, refund.id().to_owned());
    }
    let mut expanded = app.read(&format!("{path}?expand[]=refunds")).await;
    let list = expanded.as_object_mut().unwrap().remove("refunds").unwrap();
    assert_shape(&list, LIST);
    assert_eq!(ids(&list), refunds[..10]);
    assert_eq!((&list["has_more"], &list["url"]), (&json!(true), &json!(url)));
    list["data"].as_array().unwrap().iter().for_each(|refund| assert_shape(refund, REFUND));
    // All else of the charge is as before.
    assert_eq!(expanded, app.read(&path).await);
    let next = app.read(&format!("{url}?starting_after={}", refunds[9])).await;
    assert_eq!(ids(&next), refunds[10..]);
    assert_eq!((&next["has_more"], &next["url"]), (&json!(false), &json!(url)));
    assert_eq!(ids(&app.read(&format!("{url}?limit=3")).await), refunds[..3]);
    app.get("/v1/charges/ch_x/refunds").send().await.expect_error(404, "resource_missing");

    // The list stands wherever the charge does, and what is in it can be expanded further.
    let path = format!("/v1/refunds/{}?expand[]=charge.refunds.data.balance_transaction", refunds[0]);
    let deep = app.read(&path).await;
    assert_eq!(deep["charge"]["refunds"]["data"][9]["balance_transaction"]["amount"], -5);
    let created =
        app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_visa&expand[]=refunds").await;
    assert_eq!(created.expect(201).body["refunds"]["data"], json!([]));
    let other = app.charge().await;
    let charges = app.read("/v1/charges?expand[]=data.refunds").await;
    let of = |id: &str| {
        let mut charges = charges["data"].as_array().unwrap().iter();
        ids(&charges.find(|charge| charge["id"] == id).unwrap()["refunds"]).len()
    };
    assert_eq!((of(&charge), of(&other)), (10, 0));
    let intent = app.intent("payment_method=pm_card_visa&confirm=true&expand[]=latest_charge.refunds").await;
    assert_eq!(intent["latest_charge"]["refunds"]["object"], "list");
    // The ledger holds rows of refunds too, which have no such list.
    let ledger = app.read("/v1/balance_transactions?expand[]=data.source.refunds&limit=100").await;
    for source in ledger["data"].as_array().unwrap().iter().map(|row| &row["source"]) {
        assert_eq!(source.get("refunds").is_some(), source["object"] == "charge", "{source}");
    }
}

#[tokio::test]
async fn the_cards_of_a_customer_are_a_list_within_it() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let path = format!("/v1/customers/{}", customer.id());
    app.submit(&path, "source=tok_amex").await.expect(200);
    let expanded = app.read(&format!("{path}?expand[]=sources&expand[]=default_source")).await;
    let sources = &expanded["sources"];
    assert_shape(sources, LIST);
    assert_eq!(sources["url"], format!("{path}/sources"));
    let brands: Vec<&Value> = sources["data"].as_array().unwrap().iter().map(|card| &card["brand"]).collect();
    assert_eq!(brands, ["American Express", "Visa"]);
    assert_eq!(sources["data"][0], expanded["default_source"]);
    assert_shape(&sources["data"][1], CARD);
    let list = app.read(&format!("{path}/sources?object=card&limit=1")).await;
    assert_eq!((&list["data"][0], &list["has_more"]), (&sources["data"][0], &json!(true)));
    let next = format!("{path}/sources?starting_after={}", sources["data"][0]["id"].as_str().unwrap());
    assert_eq!(app.read(&next).await["data"], json!([sources["data"][1]]));
    let deep = app.read(&format!("{path}?expand[]=sources.data.customer")).await;
    assert_eq!(deep["sources"]["data"][1]["customer"]["id"], customer.id());
}

#[tokio::test]
async fn what_this_service_does_not_have_is_an_empty_list_or_null_and_the_request_is_done() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201).id().to_owned();
    let path = format!("/v1/customers/{customer}");
    for property in ["subscriptions", "tax_ids"] {
        let list = app.read(&format!("{path}?expand[]={property}")).await[property].clone();
        let url = format!("{path}/{property}");
        assert_eq!(list, json!({ "object": "list", "data": [], "has_more": false, "url": url }));
        let all = app.read(&format!("/v1/customers?expand[]=data.{property}")).await;
        assert_eq!(all["data"][0][property], list);
    }
    for property in ["tax", "invoice_credit_balance", "cash_balance", "test_clock"] {
        let expanded = app.read(&format!("{path}?expand[]={property}")).await;
        assert_eq!(expanded.get(property), Some(&Value::Null), "{property}");
    }

    let form = format!("amount=1000&currency=usd&customer={customer}");
    let charge = app.submit("/v1/charges", &form).await.expect(201).id().to_owned();
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    let intent = app.intent("payment_method=pm_card_visa&confirm=true").await;
    let method = app.method("visa").await;
    let token =
        app.submit("/v1/tokens", "card[number]=4242424242424242&card[exp_month]=1&card[exp_year]=40").await;
    let dispute = app.disputed(&app.charge().await).await;
    for (path, properties) in [
        (path.clone(), "discount discount.promotion_code subscriptions.data.items default_source.account"),
        (
            format!("/v1/charges/{charge}"),
            "application application_fee on_behalf_of review source_transfer transfer transfer_data.destination \
             outcome.rule customer.subscriptions review.charge.customer on_behalf_of.settings.branding.icon",
        ),
        (format!("/v1/refunds/{}", refund.id()), "source_transfer_reversal transfer_reversal charge.review"),
        (
            format!("/v1/payment_intents/{}", intent["id"].as_str().unwrap()),
            "application on_behalf_of review transfer_data.destination last_payment_error.payment_method.customer \
             latest_charge.application_fee.balance_transaction payment_method.card.generated_from.setup_attempt",
        ),
        (format!("/v1/payment_methods/{method}"), "card.generated_from.setup_attempt customer.tax"),
        (format!("/v1/tokens/{}", token.expect(201).id()), "card.customer card.account"),
        (format!("/v1/disputes/{dispute}"), "evidence.receipt balance_transactions.source charge.review"),
        ("/v1/balance".to_owned(), "instant_available.net_available"),
        ("/v1/account".to_owned(), "settings.branding.logo"),
        ("/v1/balance_transactions".to_owned(), "data.source.source_transfer data.source.application"),
        ("/v1/charges".to_owned(), "data.review data.customer.subscriptions data.refunds.data"),
        ("/v1/payment_intents".to_owned(), "data.latest_charge.review data.review.x"),
    ] {
        for property in properties.split_whitespace() {
            // A part of an object cannot be expanded, only what is in it.
            let status = if property == "discount" { 400 } else { 200 };
            app.get(&format!("{path}?expand[]={property}")).send().await.expect(status);
        }
    }
    let charge = app.read(&format!("/v1/charges/{charge}?expand[]=review&expand[]=transfer")).await;
    assert_eq!((charge.get("review"), charge.get("transfer")), (Some(&Value::Null), Some(&Value::Null)));
    let of_dispute = app.read(&format!("/v1/disputes/{dispute}?expand[]=balance_transactions.source")).await;
    assert!(of_dispute["balance_transactions"][0]["source"].is_object(), "{of_dispute}");
    // A deleted customer has nothing left to show.
    app.delete(&path).send().await.expect(200);
    let deleted = app.read(&format!("{path}?expand[]=subscriptions&expand[]=tax")).await;
    assert_eq!(deleted, json!({ "id": customer, "object": "customer", "deleted": true }));
}

#[tokio::test]
async fn what_stripe_cannot_expand_is_refused_within_lists_too() {
    let app = TestApp::spawn();
    let charge = format!("/v1/charges/{}", app.charge().await);
    for property in [
        "refunds.x",
        "refunds.data.x",
        "refunds.data.",
        "payment_method",
        "outcome",
        "metadata",
        "review.",
        "dispute",
    ] {
        let error = app.get(&format!("{charge}?expand[]={property}")).send().await.expect_error(400, "");
        assert_eq!(error.param(), "expand[0]", "{property}");
    }
}

#[tokio::test]
async fn a_list_within_objects_takes_one_statement_for_all_of_them_which_stays_prepared() {
    let (app, proxy) = Proxy::with_app(|_| ());
    for _ in 0..12 {
        let charge = app.charge().await;
        for _ in 0..2 {
            app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
        }
    }
    let traffic = async |limit: usize| {
        proxy.take();
        let list = app.read(&format!("/v1/charges?expand[]=data.refunds&limit={limit}")).await;
        assert_eq!(ids(&list["data"][limit - 1]["refunds"]).len(), 2);
        proxy.take()
    };
    traffic(2).await;
    let (few, many) = (traffic(2).await, traffic(12).await);
    // The statements are the account, BEGIN, the charges, the refunds and ROLLBACK.
    assert_eq!((few.statements.len(), &many.statements), (5, &few.statements));
    assert_eq!(many.count('P'), 0, "{:#?}", many.statements);
}

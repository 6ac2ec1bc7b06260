//! `expand[]` on and towards intents and payment methods, four levels deep.

use serde_json::Value;

use crate::support::intents::{PAYMENT_INTENT, PAYMENT_METHOD, PRICE, path_of};
use crate::support::shapes::{BALANCE_TRANSACTION, CHARGE, CUSTOMER, assert_shape};
use crate::support::{TestApp, fresh_key};

/// What stands at a path of properties, as in `latest_charge.balance_transaction`.
fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |object, property| &object[property])
}

#[tokio::test]
async fn what_an_intent_its_charge_and_its_refund_name_can_be_expanded_on_every_call() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let method = app.kept_method("visa", &customer).await;
    let default = format!("invoice_settings[default_payment_method]={method}");
    app.submit(&format!("/v1/customers/{customer}"), &default).await.expect(200);
    let form = format!("customer={customer}&payment_method={method}&confirm=true");
    let intent = app.intent(&form).await;
    let refund = app
        .submit("/v1/refunds", &format!("payment_intent={}&amount=1", intent["id"].as_str().unwrap()))
        .await;
    let refund = format!("/v1/refunds/{}", refund.expect(201).id());
    let charge = format!("/v1/charges/{}", intent["latest_charge"].as_str().unwrap());
    for (path, property, shape) in [
        (&*path_of(&intent), "customer", CUSTOMER),
        (&path_of(&intent), "payment_method", PAYMENT_METHOD),
        (&path_of(&intent), "payment_method.customer", CUSTOMER),
        (&path_of(&intent), "latest_charge", CHARGE),
        (&path_of(&intent), "latest_charge.balance_transaction.source", CHARGE),
        (
            &path_of(&intent),
            "latest_charge.balance_transaction.source.balance_transaction",
            BALANCE_TRANSACTION,
        ),
        (&path_of(&intent), "customer.invoice_settings.default_payment_method.customer", CUSTOMER),
        (&charge, "payment_intent", PAYMENT_INTENT),
        (&charge, "payment_intent.customer.invoice_settings.default_payment_method", PAYMENT_METHOD),
        (&refund, "payment_intent.latest_charge.balance_transaction", BALANCE_TRANSACTION),
        (&refund, "payment_method", PAYMENT_METHOD),
        (&refund, "charge.payment_intent.payment_method", PAYMENT_METHOD),
        (&format!("/v1/customers/{customer}"), "invoice_settings.default_payment_method", PAYMENT_METHOD),
        (&format!("/v1/payment_methods/{method}"), "customer", CUSTOMER),
    ] {
        let expanded = app.read(&format!("{path}?expand[]={property}")).await;
        let object = at(&expanded, property);
        assert_shape(object, shape);
        // It is the very object that stands at its id.
        let plain = app.read(path).await;
        let first = property.split('.').next().unwrap();
        assert!(plain[first].is_string() || first == "invoice_settings", "{path} {property}");
        if property.split('.').count() < 4 {
            let list = path.rsplit_once('/').unwrap().0;
            let list = app.read(&format!("{list}?expand[]=data.{property}&limit=100")).await;
            let row = list["data"].as_array().unwrap().iter().find(|row| row["id"] == plain["id"]);
            assert_eq!(at(row.unwrap(), property), object, "{path} {property}");
        }
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn lists_count_data_as_a_level_and_refuse_what_there_is_not() {
    let app = TestApp::spawn();
    let intent = app.intent_in("succeeded").await;
    let path = path_of(&intent);
    let four = "data.latest_charge.balance_transaction.source";
    let list = app.read(&format!("/v1/payment_intents?expand[]={four}")).await;
    assert_eq!(at(&list["data"][0], "latest_charge.balance_transaction.source.id"), &intent["latest_charge"]);
    for (path, property) in [
        ("/v1/payment_intents".to_owned(), "data.latest_charge.balance_transaction.source.customer"),
        ("/v1/payment_intents".to_owned(), "latest_charge"),
        (path.clone(), "latest_charge.balance_transaction.source.balance_transaction.source"),
        (path.clone(), "amount"),
        (path.clone(), "next_action"),
        (path.clone(), "latest_charge.payment_method"),
        (path, "payment_method.card"),
    ] {
        let refused = app.get(&format!("{path}?expand[]={property}")).send().await.expect_error(400, "");
        assert_eq!(refused.param(), "expand[0]", "{property}");
    }
}

#[tokio::test]
async fn a_mutation_expands_its_answer_and_its_events_keep_ids() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let form = format!(
        "{PRICE}&payment_method=pm_card_visa&confirm=true&capture_method=manual&expand[]=latest_charge&expand[]=payment_method"
    );
    let made = app.post("/v1/payment_intents").key(&key).form(&form).send().await.expect(201);
    assert_shape(&made.body["latest_charge"], CHARGE);
    assert_shape(&made.body["payment_method"], PAYMENT_METHOD);
    let path = path_of(&made.body);
    for (call, expand) in [("", "payment_method"), ("/capture", "latest_charge.balance_transaction")] {
        let reply = app
            .submit(&format!("{path}{call}"), &format!("metadata[a]=1&expand[]={expand}"))
            .await
            .expect(200);
        assert!(at(&reply.body, expand).is_object(), "{call}");
    }
    let replay = app.post("/v1/payment_intents").key(&key).form(&form).send().await;
    assert!(replay.is_replay());
    assert_eq!(replay.bytes, made.bytes);
    for event in app.read("/v1/events?type=payment_intent.*").await["data"].as_array().unwrap() {
        assert!(!event["data"]["object"]["latest_charge"].is_object());
    }
    let other = app.intent_in("requires_confirmation").await;
    let confirmed =
        app.submit(&format!("{}/confirm", path_of(&other)), "expand[]=latest_charge").await.expect(200);
    assert_shape(&confirmed.body["latest_charge"], CHARGE);
    let canceled = app.intent_in("requires_capture").await;
    let canceled =
        app.submit(&format!("{}/cancel", path_of(&canceled)), "expand[]=latest_charge").await.expect(200);
    assert_eq!(canceled.body["latest_charge"]["amount_refunded"], 1000);
}

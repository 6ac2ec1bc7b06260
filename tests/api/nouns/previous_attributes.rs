//! `data.previous_attributes`: what an update changed, as it was before.

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::network::opened_dispute;

/// The newest event of a type.
async fn newest(app: &TestApp, event: &str) -> Value {
    app.read(&format!("/v1/events?type={event}&limit=1")).await["data"][0].clone()
}

/// Updates an object several times. Each update must be told by `event` with these old values, and no others.
async fn check(app: &TestApp, path: &str, event: &str, updates: &[(&str, Value)]) {
    for (form, previous) in updates {
        app.submit(path, form).await.expect(200);
        let data = newest(app, event).await["data"].clone();
        assert_eq!(data["previous_attributes"], *previous, "{event}: {form}");
        assert_eq!(data["object"], app.read(path).await, "{event}: {form}");
    }
}

#[tokio::test]
async fn the_update_of_a_customer_tells_the_old_values_of_what_changed() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "name=Ada&metadata[a]=1&source=tok_visa").await.expect(201);
    let path = format!("/v1/customers/{}", customer.id());
    let first = customer.body["default_source"].clone();
    let method = app.attached_method("amex", customer.id()).await;
    let default = format!("invoice_settings[default_payment_method]={method}");
    let updates = [
        ("name=Grace", json!({ "name": "Ada" })),
        ("email=a@b.c&description=x", json!({ "email": null, "description": null })),
        ("email=&name=Grace", json!({ "email": "a@b.c" })),
        ("metadata[a]=2", json!({ "metadata": { "a": "1" } })),
        ("metadata[b]=3", json!({ "metadata": { "b": null } })),
        ("metadata[a]=", json!({ "metadata": { "a": "2" } })),
        ("metadata=", json!({ "metadata": { "b": "3" } })),
        ("address[city]=Rome&address[line1]=x", json!({ "address": null })),
        ("address[city]=Oslo&address[line1]=x", json!({ "address": { "city": "Rome" } })),
        ("preferred_locales[]=en", json!({ "preferred_locales": [] })),
        (&default, json!({ "invoice_settings": { "default_payment_method": null } })),
        ("source=tok_mastercard", json!({ "default_source": first })),
        ("name=Grace", json!({})),
    ];
    check(&app, &path, "customer.updated", &updates).await;
    // A method that is detached is no default any more.
    app.submit(&format!("/v1/payment_methods/{method}/detach"), "").await.expect(200);
    let data = newest(&app, "customer.updated").await["data"].clone();
    assert_eq!(
        data["previous_attributes"],
        json!({ "invoice_settings": { "default_payment_method": method } })
    );
}

#[tokio::test]
async fn every_other_update_tells_the_old_values_too() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let updates = [
        ("description=x", json!({ "description": null })),
        ("fraud_details[user_report]=safe", json!({ "fraud_details": { "user_report": null } })),
        (
            "description=y&metadata[order]=7&receipt_email=a@b.c",
            json!({ "description": "x", "metadata": { "order": null }, "receipt_email": null }),
        ),
    ];
    check(&app, &format!("/v1/charges/{charge}"), "charge.updated", &updates).await;

    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    let updates = [("metadata[a]=1", json!({ "metadata": { "a": null } }))];
    check(&app, &format!("/v1/refunds/{}", refund.id()), "refund.updated", &updates).await;

    let method = app.method("visa").await;
    let old_year = app.read(&format!("/v1/payment_methods/{method}")).await["card"]["exp_year"].clone();
    let updates = [
        ("card[exp_year]=2040", json!({ "card": { "exp_year": old_year } })),
        (
            "billing_details[name]=Ada&billing_details[address][city]=Rome",
            json!({ "billing_details": { "name": null, "address": { "city": null } } }),
        ),
    ];
    check(&app, &format!("/v1/payment_methods/{method}"), "payment_method.updated", &updates).await;

    let dispute = app.disputed(&app.charge().await).await;
    let updates = [
        (
            "evidence[customer_name]=Ada&submit=false",
            json!({
                "evidence": { "customer_name": null },
                "evidence_details": { "has_evidence": false },
            }),
        ),
        (
            "submit=true",
            json!({
                "evidence_details": { "submission_count": 0 },
                "status": "needs_response",
            }),
        ),
    ];
    check(&app, &format!("/v1/disputes/{dispute}"), "charge.dispute.updated", &updates).await;
}

#[tokio::test]
async fn a_refund_that_the_network_settles_or_fails_tells_its_old_status() {
    let app = TestApp::spawn();
    for (event, told) in [("refund.succeeded", "pending"), ("refund.failed", "pending")] {
        let charge = app.submit("/v1/charges", "amount=1000&currency=usd&source=tok_pendingRefund").await;
        let refund =
            app.submit("/v1/refunds", &format!("charge={}", charge.expect(201).id())).await.expect(201);
        app.send_notification(event, json!({ "refund": refund.id() })).await.expect(200);
        let previous = newest(&app, "refund.updated").await["data"]["previous_attributes"].clone();
        assert_eq!(previous["status"], told);
        if event == "refund.failed" {
            assert_eq!(previous["failure_reason"], Value::Null);
            assert!(newest(&app, "refund.failed").await["data"].get("previous_attributes").is_none());
        } else {
            assert_eq!(previous, json!({ "status": "pending" }));
        }
    }
}

#[tokio::test]
async fn no_other_event_has_previous_attributes_and_none_has_an_account() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201).id().to_owned();
    app.submit(&format!("/v1/customers/{customer}"), "name=x").await.expect(200);
    app.delete(&format!("/v1/customers/{customer}")).send().await.expect(200);
    let charge = app.charge().await;
    app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    let dispute = format!("dp_{}", uuid::Uuid::now_v7().simple());
    app.send_notification("dispute.created", opened_dispute(&dispute, &charge, false)).await.expect(200);
    app.intent("payment_method=pm_card_visa&confirm=true&capture_method=manual").await;
    let events = app.read("/v1/events?limit=100").await;
    let events = events["data"].as_array().unwrap();
    assert!(events.len() > 8, "{events:?}");
    for event in events {
        let is_update = event["type"].as_str().unwrap().ends_with(".updated");
        assert_eq!(event["data"].get("previous_attributes").is_some(), is_update, "{event}");
        assert!(event.get("account").is_none() && event.get("context").is_none(), "{event}");
    }
}

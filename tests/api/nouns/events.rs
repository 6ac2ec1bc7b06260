//! Events: in which order they are written, what they show, and how to find them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::shapes::{EVENT, LIST, assert_shape};
use crate::support::{CHARGE, HOLD, TestApp, fresh_key};

/// The types of the listed events, the newest first.
fn types(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The events since the last call, the oldest first.
async fn news(app: &TestApp, seen: &mut usize) -> Vec<Value> {
    let list = app.read("/v1/events?limit=100").await;
    let mut events = list["data"].as_array().unwrap().clone();
    events.reverse();
    let fresh = events.split_off(*seen);
    *seen += fresh.len();
    fresh
}

#[tokio::test]
async fn every_effect_writes_its_events_in_order_each_with_a_snapshot_and_its_request() {
    let app = TestApp::spawn();
    let mut seen = 0;
    let customer = app.submit("/v1/customers", "").await.expect(201).id().to_owned();
    news(&app, &mut seen).await;
    let charge_id = app.charge().await;
    let refunded = app.charge().await;
    let refund = app.submit("/v1/refunds", &format!("charge={refunded}&amount=1")).await.expect(201);
    let hold = app.submit("/v1/charges", HOLD).await.expect(201);
    news(&app, &mut seen).await;
    let to_capture = format!("/v1/charges/{}/capture", hold.id());
    let to_refund = format!("charge={refunded}");
    for (path, form, status, expected) in [
        ("/v1/customers", "name=a", 201, vec!["customer.created"]),
        ("/v1/customers", "source=tok_visa", 201, vec!["customer.created", "payment_method.attached"]),
        (&*format!("/v1/customers/{customer}"), "name=b", 200, vec!["customer.updated"]),
        ("/v1/charges", CHARGE, 201, vec!["charge.succeeded"]),
        ("/v1/charges", HOLD, 201, vec!["charge.succeeded"]),
        (&*to_capture, "amount=300", 200, vec!["charge.captured"]),
        (&*format!("/v1/charges/{charge_id}"), "description=x", 200, vec!["charge.updated"]),
        ("/v1/charges", "amount=1000&currency=usd&source=tok_chargeDeclined", 402, vec!["charge.failed"]),
        ("/v1/refunds", &*to_refund, 201, vec!["refund.created", "charge.refunded"]),
        (&*format!("/v1/refunds/{}", refund.id()), "metadata[a]=1", 200, vec!["refund.updated"]),
        ("/v1/tokens", "card[number]=4242424242424242&card[exp_month]=1&card[exp_year]=40", 201, vec![]),
        ("/v1/charges", "amount=1&currency=usd&source=tok_visa", 400, vec![]),
        ("/v1/customers", "source=tok_chargeDeclined", 402, vec![]),
    ] {
        let key = fresh_key();
        let reply = app.post(path).key(&key).form(form).send().await.expect(status);
        // A replay writes none.
        app.post(path).key(&key).form(form).send().await.expect(status);
        let events = news(&app, &mut seen).await;
        let found: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{path} {form}");
        for event in &events {
            assert_shape(event, EVENT);
            let request = json!({ "id": reply.header("Request-Id"), "idempotency_key": key });
            assert_eq!(event["request"], request);
            let object = &event["data"]["object"];
            let kind = object["object"].as_str().unwrap();
            let stands_at = format!("/v1/{kind}s/{}", object["id"].as_str().unwrap());
            assert_eq!(*object, app.read(&stands_at).await, "{path} {form}");
            assert_eq!(app.read(&format!("/v1/events/{}", event["id"].as_str().unwrap())).await, *event);
        }
    }
    app.delete(&format!("/v1/customers/{customer}")).send().await.expect(200);
    let events = news(&app, &mut seen).await;
    assert_eq!(events[0]["type"], "customer.deleted");
    assert_eq!(events[0]["request"]["idempotency_key"], Value::Null);
    assert_eq!(events[0]["data"]["object"]["name"], "b");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_snapshot_stays_as_it_was() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "name=before").await.expect(201);
    let event = app.read("/v1/events").await["data"][0].clone();
    app.submit(&format!("/v1/customers/{}", customer.id()), "name=after").await.expect(200);
    let later = app.read(&format!("/v1/events/{}", event["id"].as_str().unwrap())).await;
    assert_eq!(later, event);
    assert_eq!(later["data"]["object"], customer.body);
}

#[tokio::test]
async fn events_can_be_narrowed_by_type() {
    let app = TestApp::spawn();
    app.submit("/v1/customers", "").await.expect(201);
    let charge = app.charge().await;
    app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201);
    let all = ["charge.refunded", "refund.created", "charge.succeeded", "customer.created"];
    let twenty: String = (0..19).map(|number| format!("&types[]=x.{number}")).collect();
    let twenty = format!("types[]=refund.created{twenty}");
    for (query, expected) in [
        ("", &all[..]),
        ("type=*", &all[..]),
        ("type=charge.succeeded", &all[2..3]),
        ("type=charge.*", &["charge.refunded", "charge.succeeded"]),
        ("type=charge*", &[]),
        ("type=charg.*", &[]),
        ("type=%25.*", &[]),
        ("type=c_arge.*", &[]),
        ("type=nothing.happened", &[]),
        ("types[]=refund.created&types[]=customer.created", &["refund.created", "customer.created"]),
        ("types[0]=charge.refunded", &all[..1]),
        (&*twenty, &all[1..2]),
    ] {
        let list = app.read(&format!("/v1/events?{query}")).await;
        assert_shape(&list, LIST);
        assert_eq!(types(&list), expected, "{query}");
    }
    for query in [&*format!("{twenty}&types[]=one.more"), "type=a&types[]=b", "types=charge.succeeded"] {
        let error = app.get(&format!("/v1/events?{query}")).send().await.expect_error(400, "");
        assert_eq!(error.param(), "types", "{query}");
    }
}

#[tokio::test]
async fn events_can_be_narrowed_by_time() {
    let app = TestApp::spawn();
    app.submit("/v1/customers", "").await.expect(201);
    app.state.clock.advance(Duration::from_secs(100));
    app.charge().await;
    let later = app.read("/v1/events").await["data"][0]["created"].as_i64().unwrap();
    for (query, expected) in [
        (format!("created={later}"), vec!["charge.succeeded"]),
        (format!("created[gte]={later}"), vec!["charge.succeeded"]),
        (format!("created[lt]={later}"), vec!["customer.created"]),
        (format!("created[gte]={later}&type=customer.*"), vec![]),
    ] {
        assert_eq!(types(&app.read(&format!("/v1/events?{query}")).await), expected, "{query}");
    }
}

#[tokio::test]
async fn events_of_another_account_do_not_exist() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    app.charge().await;
    let event = app.read("/v1/events").await["data"][0]["id"].as_str().unwrap().to_owned();
    let get = async |path: &str| app.call_as(&other, reqwest::Method::GET, path).send().await;
    get(&format!("/v1/events/{event}")).await.expect_error(404, "resource_missing");
    assert_eq!(get("/v1/events?type=charge.*").await.expect(200).body["data"], json!([]));
    let cursor = get(&format!("/v1/events?ending_before={event}")).await;
    assert_eq!(cursor.expect_error(400, "resource_missing").param(), "ending_before");
}

//! Payment intents that go well: made, changed, confirmed, captured, canceled, listed.

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::intents::{PAYMENT_INTENT, PRICE, STATUSES, path_of, unknown_id};
use crate::support::shapes::{CHARGE, assert_shape, without_identity};

const INTENTS: &str = "/v1/payment_intents";

#[tokio::test]
async fn an_intent_has_every_key_in_every_state() {
    let app = TestApp::spawn();
    for status in STATUSES {
        let intent = app.intent_in(status).await;
        assert_shape(&intent, PAYMENT_INTENT);
        assert_eq!(intent["object"], "payment_intent");
        assert_eq!(intent["livemode"], false);
        assert_eq!(intent["payment_method_types"], json!(["card"]));
        let secret = intent["client_secret"].as_str().unwrap();
        let (id, random) = secret.split_once("_secret_").unwrap();
        assert_eq!(intent["id"], id);
        assert!(random.len() >= 16 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{secret}");
        let money = (&intent["amount"], &intent["amount_capturable"], &intent["amount_received"]);
        let expected = match status {
            "requires_capture" => (1000, 1000, 0),
            "succeeded" => (1000, 0, 1000),
            _ => (1000, 0, 0),
        };
        assert_eq!(money, (&json!(expected.0), &json!(expected.1), &json!(expected.2)), "{status}");
        assert_eq!(intent["canceled_at"].is_i64(), status == "canceled");
        assert_eq!(intent["next_action"].is_object(), status == "requires_action");
        assert_eq!(intent["latest_charge"].is_string(), matches!(status, "requires_capture" | "succeeded"));
    }
    let secrets =
        [app.intent("").await, app.intent("").await].map(|intent| intent["client_secret"].to_string());
    assert_ne!(secrets[0].split_once("_secret_").unwrap().1, secrets[1].split_once("_secret_").unwrap().1);
}

#[tokio::test]
async fn what_is_said_of_an_intent_is_shown_and_its_charge_says_it_too() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let method = app.kept_method("visa", &customer).await;
    let form = format!(
        "{PRICE}&customer={customer}&payment_method={method}&confirm=true&description=Shoes&metadata[order]=7\
         &receipt_email=a%40b.c&statement_descriptor=SHOES&statement_descriptor_suffix=RED\
         &shipping[name]=Ada&shipping[address][city]=Ghent&shipping[carrier]=Post&setup_future_usage=off_session\
         &payment_method_types[]=card&payment_method_options[card][request_three_d_secure]=any&confirmation_method=manual"
    );
    let by_form = app.submit(INTENTS, &form).await.expect(201);
    let intent = &by_form.body;
    assert_eq!(by_form.header("Location"), Some(path_of(intent).as_str()));
    assert_eq!(app.intent_now(intent).await, *intent);
    assert_shape(intent, PAYMENT_INTENT);
    let charge = app.read(&format!("/v1/charges/{}", intent["latest_charge"].as_str().unwrap())).await;
    assert_shape(&charge, CHARGE);
    for (property, value) in [
        ("customer", json!(customer)),
        ("description", json!("Shoes")),
        ("metadata", json!({ "order": "7" })),
        ("receipt_email", json!("a@b.c")),
        ("statement_descriptor", json!("SHOES")),
        ("statement_descriptor_suffix", json!("RED")),
        ("amount", json!(1000)),
        ("currency", json!("usd")),
        ("payment_method", json!(method)),
    ] {
        assert_eq!(intent[property], value, "{property}");
        assert_eq!(charge[property], value, "{property} of the charge");
    }
    assert_eq!(intent["shipping"]["address"]["city"], "Ghent");
    assert_eq!(intent["shipping"], charge["shipping"]);
    assert_eq!(intent["setup_future_usage"], "off_session");
    assert_eq!(intent["confirmation_method"], "manual");
    assert_eq!(intent["automatic_payment_methods"], Value::Null);
    assert_eq!(intent["payment_method_options"]["card"]["request_three_d_secure"], "any");
    assert_eq!(charge["payment_intent"], intent["id"]);
    assert_eq!((&charge["paid"], &charge["captured"]), (&json!(true), &json!(true)));
    let by_json = app
        .submit_json(
            INTENTS,
            &json!({
                "amount": 1000, "currency": "USD", "customer": customer, "payment_method": method, "confirm": true,
                "description": "Shoes", "metadata": { "order": 7 }, "receipt_email": "a@b.c",
                "statement_descriptor": "SHOES", "statement_descriptor_suffix": "RED",
                "shipping": { "name": "Ada", "address": { "city": "Ghent" }, "carrier": "Post" },
                "setup_future_usage": "off_session", "allowed_payment_method_types": ["card"],
                "payment_method_options": { "card": { "request_three_d_secure": "any" } },
                "confirmation_method": "manual",
            }),
        )
        .await
        .expect(201);
    let mut shapes = [intent.clone(), by_json.body].map(|shape| without_identity(&shape));
    for shape in &mut shapes {
        shape["client_secret"] = Value::Null;
    }
    assert_eq!(shapes[0], shapes[1]);
    app.database.assert_clean();
}

#[tokio::test]
async fn events_come_in_their_order_and_show_each_moment() {
    let app = TestApp::spawn();
    let success =
        app.submit(INTENTS, &format!("{PRICE}&payment_method=pm_card_visa&confirm=true")).await.expect(201);
    let events = app.event_objects_of(&success).await;
    let types: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["payment_intent.created", "charge.succeeded", "payment_intent.succeeded"]);
    assert_eq!(events[0]["data"]["object"]["status"], "requires_confirmation");
    assert_eq!(events[0]["data"]["object"]["latest_charge"], Value::Null);
    assert_eq!(events[1]["data"]["object"]["id"], success.body["latest_charge"]);
    assert_eq!(events[2]["data"]["object"], success.body);
    let key = &events[2]["request"]["idempotency_key"];
    assert!(events.iter().all(|event| event["request"]["idempotency_key"] == *key && key.is_string()));

    let intent = app.intent("capture_method=manual").await;
    let step = async |call: &str, form: &str| {
        let reply = app.submit(&format!("{}{call}", path_of(&intent)), form).await.expect(200);
        let last = app.event_objects_of(&reply).await.pop();
        if let Some(event) = last {
            assert_eq!(event["data"]["object"], reply.body, "{call}");
        }
        app.events_of(&reply).await
    };
    assert!(step("", "description=x").await.is_empty());
    assert_eq!(
        step("/confirm", "payment_method=pm_card_visa").await,
        ["charge.succeeded", "payment_intent.amount_capturable_updated"]
    );
    assert_eq!(
        step("/capture", "amount_to_capture=600").await,
        ["charge.captured", "payment_intent.succeeded"]
    );
    let refund =
        app.submit("/v1/refunds", &format!("payment_intent={}", intent["id"].as_str().unwrap())).await;
    assert_eq!(app.events_of(&refund.expect(201)).await, ["refund.created", "charge.refunded"]);
    let held = app.intent_in("requires_capture").await;
    let canceled = app.submit(&format!("{}/cancel", path_of(&held)), "").await.expect(200);
    assert_eq!(app.events_of(&canceled).await, ["payment_intent.canceled"]);
    let filtered = app.read("/v1/events?type=payment_intent.*&limit=100").await;
    assert!(
        filtered["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["data"]["object"]["object"] == "payment_intent")
    );
    app.database.assert_clean();
}

#[tokio::test]
async fn a_hold_is_captured_whole_or_in_part_and_the_rest_let_go() {
    let app = TestApp::spawn();
    for (form, captured) in [
        ("", 1000),
        ("amount_to_capture=1000", 1000),
        ("amount_to_capture=1", 1),
        ("amount_to_capture=600&final_capture=true", 600),
    ] {
        let intent = app.intent_in("requires_capture").await;
        let capture = format!("{}/capture", path_of(&intent));
        let charge_path = format!("/v1/charges/{}", intent["latest_charge"].as_str().unwrap());
        let charge = app.read(&charge_path).await;
        assert_eq!((&charge["captured"], &charge["balance_transaction"]), (&json!(false), &Value::Null));
        let before = app.database.dump();
        for (form, code) in [
            ("amount_to_capture=1001", "amount_too_large"),
            ("amount_to_capture=0", "parameter_invalid_integer"),
            ("amount_to_capture=-5", "parameter_invalid_integer"),
            ("amount_to_capture=1.5", "parameter_invalid_integer"),
        ] {
            assert_eq!(app.submit(&capture, form).await.expect_error(400, code).param(), "amount_to_capture");
        }
        assert_eq!(app.submit(&capture, "final_capture=false").await.expect(400).param(), "final_capture");
        assert_eq!(
            app.submit(&capture, "amount=5").await.expect_error(400, "parameter_unknown").param(),
            "amount"
        );
        assert_eq!(app.database.dump(), before);
        let done = app
            .submit(&capture, &format!("{form}&metadata[a]=1&statement_descriptor=X"))
            .await
            .expect(200)
            .body;
        assert_eq!(done["status"], "succeeded");
        assert_eq!(
            (&done["amount"], &done["amount_capturable"], &done["amount_received"]),
            (&json!(1000), &json!(0), &json!(captured))
        );
        assert_eq!((&done["metadata"]["a"], &done["statement_descriptor"]), (&json!("1"), &json!("X")));
        let charge = app.read(&charge_path).await;
        assert_eq!(
            (&charge["amount_captured"], &charge["amount_refunded"]),
            (&json!(captured), &json!(1000 - captured))
        );
        assert_eq!((&charge["captured"], &charge["refunded"]), (&json!(true), &json!(false)));
    }
    let total = app.read("/v1/balance").await["available"][0]["amount"].clone();
    assert_eq!(total, 1000 + 1000 + 1 + 600);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_cancellation_releases_the_hold_and_says_why() {
    let app = TestApp::spawn();
    for reason in ["abandoned", "duplicate", "fraudulent", "requested_by_customer"] {
        let intent = app.intent_in("requires_capture").await;
        let path = format!("{}/cancel", path_of(&intent));
        for wrong in ["automatic", "expired", "x"] {
            let refused =
                app.submit(&path, &format!("cancellation_reason={wrong}")).await.expect_error(400, "");
            assert_eq!(refused.param(), "cancellation_reason");
        }
        let done = app.submit(&path, &format!("cancellation_reason={reason}")).await.expect(200).body;
        assert_eq!((&done["status"], &done["cancellation_reason"]), (&json!("canceled"), &json!(reason)));
        assert_eq!((&done["amount_capturable"], &done["amount_received"]), (&json!(0), &json!(0)));
        let charge = app.read(&format!("/v1/charges/{}", intent["latest_charge"].as_str().unwrap())).await;
        assert_eq!((&charge["amount_refunded"], &charge["amount_captured"]), (&json!(1000), &json!(0)));
        assert_eq!((&charge["refunded"], &charge["captured"]), (&json!(true), &json!(false)));
    }
    assert_eq!(app.database.count("balance_transactions"), 0);
    assert_eq!(app.intent_in("canceled").await["cancellation_reason"], Value::Null);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_card_that_worked_is_kept_if_it_is_to_be_used_again() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let card = "payment_method_data[type]=card&payment_method_data[card][token]=tok_visa";
    for (form, status, is_kept) in [
        (
            format!(
                "confirm=true&payment_method=pm_card_visa&setup_future_usage=off_session&customer={customer}"
            ),
            "succeeded",
            true,
        ),
        (format!("confirm=true&{card}&setup_future_usage=on_session&customer={customer}"), "succeeded", true),
        (
            format!(
                "confirm=true&{card}&setup_future_usage=on_session&customer={customer}&capture_method=manual"
            ),
            "requires_capture",
            true,
        ),
        (format!("confirm=true&payment_method=pm_card_visa&customer={customer}"), "succeeded", false),
        (
            "confirm=true&payment_method=pm_card_visa&setup_future_usage=off_session".to_owned(),
            "succeeded",
            false,
        ),
        (
            format!("payment_method=pm_card_visa&setup_future_usage=off_session&customer={customer}"),
            "requires_confirmation",
            false,
        ),
        (
            format!(
                "confirm=true&payment_method=pm_card_authenticationRequired&setup_future_usage=off_session&customer={customer}"
            ),
            "requires_action",
            false,
        ),
    ] {
        let reply = app.submit(INTENTS, &format!("{PRICE}&{form}")).await.expect(201);
        assert_eq!(reply.body["status"], status);
        let method = app
            .read(&format!("/v1/payment_methods/{}", reply.body["payment_method"].as_str().unwrap()))
            .await;
        assert_eq!(method["customer"], if is_kept { json!(customer) } else { Value::Null }, "{form}");
        let events = app.events_of(&reply).await;
        assert_eq!(events.contains(&"payment_method.attached".to_owned()), is_kept, "{form}: {events:?}");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn an_update_changes_what_it_names_and_unsets_what_is_empty() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let intent = app
        .intent("description=a&receipt_email=a%40b.c&metadata[a]=1&metadata[b]=2&statement_descriptor=A&shipping[name]=A&shipping[address][city]=G&setup_future_usage=on_session")
        .await;
    let path = path_of(&intent);
    let mut expected = intent.clone();
    for (form, changes) in [
        ("metadata[b]=&metadata[c]=3", json!({ "metadata": { "a": "1", "c": "3" } })),
        ("metadata=", json!({ "metadata": {} })),
        ("description=", json!({ "description": null })),
        ("receipt_email=", json!({ "receipt_email": null })),
        ("shipping=", json!({ "shipping": null })),
        ("statement_descriptor=", json!({ "statement_descriptor": null })),
        ("setup_future_usage=", json!({ "setup_future_usage": null })),
        ("amount=2000&currency=EUR", json!({ "amount": 2000, "currency": "eur" })),
        ("capture_method=manual", json!({ "capture_method": "manual" })),
        (&*format!("customer={customer}"), json!({ "customer": customer })),
    ] {
        for (property, value) in changes.as_object().unwrap() {
            expected[property] = value.clone();
        }
        assert_eq!(app.submit(&path, form).await.expect(200).body, expected, "{form}");
        assert_eq!(app.read(&path).await, expected, "{form}");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn lists_page_both_ways_and_keep_to_one_customer() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let of = if number % 2 == 0 { format!("customer={customer}") } else { String::new() };
        ids.insert(0, app.intent(&of).await["id"].as_str().unwrap().to_owned());
    }
    let shown = async |query: &str| {
        let list = app.read(&format!("{INTENTS}?{query}")).await;
        assert_eq!(list["url"], INTENTS);
        let data = list["data"].as_array().unwrap();
        let ids: Vec<String> = data.iter().map(|intent| intent["id"].as_str().unwrap().to_owned()).collect();
        (ids, list["has_more"] == true)
    };
    assert_eq!(shown("").await, (ids.clone(), false));
    assert_eq!(shown("limit=2").await, (ids[..2].to_vec(), true));
    assert_eq!(shown(&format!("limit=2&starting_after={}", ids[1])).await, (ids[2..4].to_vec(), true));
    assert_eq!(shown(&format!("limit=2&ending_before={}", ids[3])).await, (ids[1..3].to_vec(), true));
    let of_customer: Vec<String> = ids.iter().step_by(2).cloned().collect();
    assert_eq!(shown(&format!("customer={customer}")).await, (of_customer, false));
    assert_eq!(shown("created[gt]=4000000000").await, (vec![], false));
    for (query, code, param) in [
        (format!("customer={}", unknown_id("cus")), "resource_missing", "customer"),
        (format!("starting_after={}", unknown_id("pi")), "resource_missing", "starting_after"),
        ("starting_after=ch_x".to_owned(), "resource_missing", "starting_after"),
        ("status=succeeded".to_owned(), "parameter_unknown", "status"),
    ] {
        let refused = app.get(&format!("{INTENTS}?{query}")).send().await.expect_error(400, code);
        assert_eq!(refused.param(), param);
    }
}

#[tokio::test]
async fn a_deleted_customer_pays_no_more() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "name=Ada").await.expect(201);
    let form = format!("amount=500&currency=usd&customer={}", customer.id());
    let intent = app.submit("/v1/payment_intents", &form).await.expect(201);
    app.delete(&format!("/v1/customers/{}", customer.id())).send().await.expect(200);
    let path = format!("/v1/payment_intents/{}/confirm", intent.id());
    let refused = app.submit(&path, "payment_method=pm_card_visa&setup_future_usage=off_session").await;
    assert_eq!(refused.expect_error(400, "resource_missing").param(), "customer");
    assert_eq!(app.database.count("charges"), 0);
    app.database.assert_clean();
}

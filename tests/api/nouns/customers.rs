//! Customers: made, changed, listed and deleted.

use serde_json::{Value, json};

use crate::support::shapes::{CUSTOMER, LIST, assert_shape, without_identity};
use crate::support::{TestApp, fresh_key};

#[tokio::test]
async fn a_customer_is_made_and_changed_alike_by_form_and_by_json() {
    let app = TestApp::spawn();
    let by_form = app
        .submit(
            "/v1/customers",
            "email=a%40example.com&name=Ada+Lovelace&phone=555&description=first&preferred_locales[]=en\
             &preferred_locales[]=fr&address[line1]=1+St.&address[city]=Paris&address[country]=FR&shipping[name]=Ada\
             &shipping[phone]=556&shipping[address][line1]=2+St.&metadata[a]=1&metadata[b]=two&source=tok_visa",
        )
        .await
        .expect(201);
    let by_json = app
        .submit_json(
            "/v1/customers",
            &json!({
                "email": "a@example.com", "name": "Ada Lovelace", "phone": "555", "description": "first",
                "preferred_locales": ["en", "fr"],
                "address": { "line1": "1 St.", "city": "Paris", "country": "FR" },
                "shipping": { "name": "Ada", "phone": "556", "address": { "line1": "2 St." } },
                "metadata": { "a": 1, "b": "two" }, "source": "tok_visa",
            }),
        )
        .await
        .expect(201);
    assert_eq!(without_identity(&by_form.body), without_identity(&by_json.body));
    assert_shape(&by_form.body, CUSTOMER);
    let customer = &by_form.body;
    assert_eq!(customer["object"], "customer");
    assert_eq!(customer["livemode"], false);
    assert_eq!(customer["metadata"], json!({ "a": "1", "b": "two" }));
    assert_eq!(customer["preferred_locales"], json!(["en", "fr"]));
    assert_eq!(customer["address"]["city"], "Paris");
    assert_eq!(customer["address"]["line2"], Value::Null);
    assert_eq!(customer["shipping"]["address"]["line1"], "2 St.");
    assert!(customer["default_source"].as_str().unwrap().starts_with("card_"));
    let path = format!("/v1/customers/{}", by_form.id());
    assert_eq!(by_form.header("Location"), Some(&*path));
    assert_eq!(app.read(&path).await, *customer);

    let changed = app.submit(&path, "name=Grace&metadata[a]=&metadata[c]=3&address=").await.expect(200);
    let other = app
        .submit_json(
            &format!("/v1/customers/{}", by_json.id()),
            &json!({ "name": "Grace", "metadata": { "a": null, "c": 3 }, "address": null }),
        )
        .await
        .expect(200);
    assert_eq!(without_identity(&changed.body), without_identity(&other.body));
    assert_shape(&changed.body, CUSTOMER);
    assert_eq!(changed.body["metadata"], json!({ "b": "two", "c": "3" }));
    assert_eq!(changed.body["address"], Value::Null);
    assert_eq!(app.read(&path).await, changed.body);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_customer_needs_nothing_and_has_every_key_all_the_same() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "").await.expect(201).body;
    assert_shape(&customer, CUSTOMER);
    assert_eq!(customer["metadata"], json!({}));
    assert_eq!(customer["email"], Value::Null);
    assert_eq!(customer["preferred_locales"], json!([]));
    assert_eq!(customer["default_source"], Value::Null);
}

#[tokio::test]
async fn an_update_changes_what_it_names_and_an_empty_value_unsets() {
    let app = TestApp::spawn();
    let all = "email=a%40b.c&name=n&phone=p&description=d&address[city]=c&shipping[name]=s&shipping[address][city]=c\
               &preferred_locales[0]=en";
    let made = app.submit("/v1/customers", all).await.expect(201).body;
    let path = format!("/v1/customers/{}", made["id"].as_str().unwrap());
    let mut expected = made;
    for name in ["email", "name", "phone", "description", "address", "shipping", "preferred_locales"] {
        let changed = app.submit(&path, &format!("{name}=")).await.expect(200).body;
        expected[name] = if name == "preferred_locales" { json!([]) } else { Value::Null };
        assert_eq!(changed, expected, "{name}");
    }
    // Nothing named, nothing changed.
    assert_eq!(app.submit(&path, "").await.expect(200).body, expected);
    assert_eq!(app.read(&path).await, expected);
}

#[tokio::test]
async fn metadata_merge_by_key_and_keep_to_their_limits() {
    let app = TestApp::spawn();
    let fifty: Vec<String> = (0..50).map(|number| format!("metadata[k{number}]=v")).collect();
    let customer = app.submit("/v1/customers", &fifty.join("&")).await.expect(201);
    let path = format!("/v1/customers/{}", customer.id());
    let long_key = format!("metadata[{}]=v", "k".repeat(41));
    let long_value = format!("metadata[k0]={}", "v".repeat(501));
    for refused in ["metadata[one_more]=v", &*long_key, &*long_value, "metadata=text", "metadata[a][b]=1"] {
        let error = app.submit(&path, refused).await.expect_error(400, "");
        assert!(error.param().starts_with("metadata"), "{}", error.body);
    }
    let bracket = app.submit_json(&path, &json!({ "metadata": { "a[b": "1" } })).await.expect(400);
    assert_eq!(bracket.param(), "metadata");
    assert_eq!(app.read(&path).await, customer.body);
    let edge = format!("metadata[k0]=&metadata[{}]={}", "k".repeat(40), "v".repeat(500));
    let changed = app.submit(&path, &edge).await.expect(200).body;
    assert_eq!(changed["metadata"].as_object().unwrap().len(), 50);
    let cleared = app.submit(&path, "metadata=").await.expect(200).body;
    assert_eq!(cleared["metadata"], json!({}));
}

#[tokio::test]
async fn what_cannot_be_a_property_of_a_customer_is_refused_by_name() {
    let app = TestApp::spawn();
    let long_text = format!("description={}", "d".repeat(5001));
    let long_email = format!("email={}%40b.c", "e".repeat(512));
    let cases = [
        (&*long_text, "parameter_invalid_string_too_long", "description"),
        (&*long_email, "parameter_invalid_string_too_long", "email"),
        ("email=nobody", "email_invalid", "email"),
        ("shipping[name]=Ada", "parameter_missing", "shipping[address]"),
        ("shipping[address][city]=Paris", "parameter_missing", "shipping[name]"),
        ("address=Paris", "", "address"),
        ("address[planet]=Earth", "parameter_unknown", "address[planet]"),
        ("preferred_locales=en", "", "preferred_locales"),
        ("nickname=x", "parameter_unknown", "nickname"),
        ("tax_exempt=none", "parameter_unknown", "tax_exempt"),
        ("source=tok_nobody", "resource_missing", "source"),
    ];
    for (form, code, param) in cases {
        let error = app.submit("/v1/customers", form).await.expect_error(400, code);
        assert_eq!(error.param(), param, "{form}");
        assert_eq!(error.body["error"]["type"], "invalid_request_error");
    }
    assert_eq!(app.database.count("customers") + app.database.count("events"), 0);
    // At the edge all is well.
    let edge = format!("description={}&email={}%40b.c", "é".repeat(5000), "e".repeat(508));
    app.submit("/v1/customers", &edge).await.expect(201);
}

#[tokio::test]
async fn a_deleted_customer_can_be_seen_but_neither_changed_nor_charged_nor_deleted_again() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "name=Ada&source=tok_visa").await.expect(201);
    let card = customer.body["default_source"].as_str().unwrap();
    let path = format!("/v1/customers/{}", customer.id());
    let charge = app
        .submit("/v1/charges", &format!("amount=1000&currency=usd&customer={}", customer.id()))
        .await
        .expect(201);
    let deleted = json!({ "id": customer.id(), "object": "customer", "deleted": true });
    assert_eq!(app.delete(&path).send().await.expect(200).body, deleted);
    assert_eq!(app.read(&path).await, deleted);
    assert_eq!(app.read("/v1/customers").await["data"], json!([]));
    let events = app.database.count("events");
    app.delete(&path).send().await.expect_error(404, "resource_missing");
    let update = app.submit(&path, "name=Grace").await.expect_error(404, "resource_missing");
    assert_eq!(update.param(), "id");
    assert_eq!(update.body["error"]["message"], format!("No such customer: '{}'", customer.id()));
    for more in [String::new(), format!("&source={card}")] {
        let form = format!("amount=1000&currency=usd&customer={}{more}", customer.id());
        let error = app.submit("/v1/charges", &form).await.expect_error(400, "resource_missing");
        assert_eq!(error.param(), "customer");
    }
    assert_eq!(app.database.count("events"), events);
    // What it paid stays, and names it.
    let charge = app.read(&format!("/v1/charges/{}?expand[]=customer", charge.id())).await;
    assert_eq!(charge["customer"], deleted);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_list_of_customers_can_be_narrowed_to_an_email() {
    let app = TestApp::spawn();
    let mut ids = Vec::new();
    for email in ["a%40b.c", "x%40y.z", "a%40b.c"] {
        let customer = app.submit("/v1/customers", &format!("email={email}")).await.expect(201);
        ids.push(customer.id().to_owned());
    }
    let list = app.read("/v1/customers?email=a%40b.c").await;
    assert_shape(&list, LIST);
    assert_eq!(list["url"], "/v1/customers");
    let found: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(found, [&*ids[2], &*ids[0]]);
    assert_eq!(app.read("/v1/customers?email=A%40b.c").await["data"], json!([]));
    assert_eq!(app.read("/v1/customers").await["data"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_source_is_kept_and_becomes_the_default() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let path = format!("/v1/customers/{}", customer.id());
    let first = customer.body["default_source"].clone();
    // As a token, as a card typed under either name, and as a token that was made before.
    let token = app
        .submit("/v1/tokens", "card[number]=4242424242424242&card[exp_month]=1&card[exp_year]=2040")
        .await
        .expect(201);
    let mut defaults = vec![first.clone()];
    for form in [
        "source=tok_mastercard",
        "source[object]=card&source[number]=5555555555554444&source[exp_month]=2&source[exp_year]=2041",
        "card[number]=378282246310005&card[exp_month]=3&card[exp_year]=42&card[cvc]=1234",
        "card=tok_jcb",
        &format!("source={}", token.id()),
    ] {
        let changed = app.submit(&path, form).await.expect(200).body;
        assert!(!defaults.contains(&changed["default_source"]), "{form}");
        defaults.push(changed["default_source"].clone());
    }
    // An older one can be chosen again, and nobody else's.
    let form = format!("default_source={}", first.as_str().unwrap());
    assert_eq!(app.submit(&path, &form).await.expect(200).body["default_source"], first);
    let stranger = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    for name in ["default_source", "source"] {
        let form = format!("{name}={}", stranger.body["default_source"].as_str().unwrap());
        let error = app.submit(&path, &form).await.expect_error(400, "resource_missing");
        assert_eq!(error.param(), name);
    }
    let expanded = app.read(&format!("{path}?expand[]=default_source")).await;
    assert_eq!(expanded["default_source"]["customer"], customer.id());
    assert_eq!(expanded["default_source"]["last4"], "4242");
    app.submit(&path, &format!("source={}", token.id())).await.expect_error(400, "token_already_used");
    app.submit(&path, "source=tok_visa&card=tok_visa").await.expect_error(400, "");
    app.database.assert_clean();
}

#[tokio::test]
async fn a_card_that_always_declines_is_not_kept_and_nothing_is_stored() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "name=Ada").await.expect(201);
    let path = format!("/v1/customers/{}", customer.id());
    let token = app
        .submit("/v1/tokens", "card[number]=4000000000009995&card[exp_month]=1&card[exp_year]=2040")
        .await
        .expect(201);
    let before = app.database.dump();
    let source = format!("source={}", token.id());
    for path in ["/v1/customers", &*path] {
        for (form, code, decline) in [
            ("name=x&source=tok_chargeDeclined", "card_declined", "generic_decline"),
            ("name=x&source=tok_visa_chargeDeclined", "card_declined", "generic_decline"),
            ("name=x&source=tok_chargeDeclinedExpiredCard", "expired_card", "expired_card"),
            (&*source, "card_declined", "insufficient_funds"),
        ] {
            let error = app.submit(path, form).await.expect_error(402, code);
            assert_eq!(error.body["error"]["type"], "card_error");
            assert_eq!(error.body["error"]["decline_code"], decline);
        }
    }
    assert_eq!(app.database.dump(), before);
    // Nothing remains of the key either.
    let key = fresh_key();
    app.post(&path).key(&key).form("source=tok_chargeDeclined").send().await.expect(402);
    app.post(&path).key(&key).form("source=tok_visa").send().await.expect(200);
    // One card declines only when it is charged.
    let customer = app.submit("/v1/customers", "source=tok_chargeCustomerFail").await.expect(201);
    let form = format!("amount=1000&currency=usd&customer={}", customer.id());
    app.submit("/v1/charges", &form).await.expect_error(402, "card_declined");
}

#[tokio::test]
async fn nothing_is_told_of_a_customer_after_its_deletion() {
    let app = TestApp::spawn();
    let method = app.submit("/v1/payment_methods", "type=card&card[token]=tok_visa").await.expect(201);
    let customer = app.submit("/v1/customers", &format!("payment_method={}", method.id())).await.expect(201);
    let form = format!("invoice_settings[default_payment_method]={}", method.id());
    app.submit(&format!("/v1/customers/{}", customer.id()), &form).await.expect(200);
    app.delete(&format!("/v1/customers/{}", customer.id())).send().await.expect(200);
    app.submit(&format!("/v1/payment_methods/{}/detach", method.id()), "").await;
    let types = app.event_types().await;
    assert_eq!(types.iter().rfind(|name| name.starts_with("customer.")).unwrap(), "customer.deleted");
    assert_eq!(types.last().unwrap(), "payment_method.detached");
    app.database.assert_clean();
}

#[tokio::test]
async fn customers_of_another_account_do_not_exist() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let as_other = |method: &str, path: &str| app.call_as(&other, method.parse().unwrap(), path);
    let customer = app.submit("/v1/customers", "email=a%40b.c&source=tok_visa").await.expect(201);
    let (id, card) = (customer.id(), customer.body["default_source"].as_str().unwrap());
    let path = format!("/v1/customers/{id}");
    as_other("GET", &path).send().await.expect_error(404, "resource_missing");
    as_other("DELETE", &path).send().await.expect_error(404, "resource_missing");
    as_other("POST", &path)
        .key(&fresh_key())
        .form("name=x")
        .send()
        .await
        .expect_error(404, "resource_missing");
    for query in ["", "?email=a%40b.c"] {
        let list = as_other("GET", &format!("/v1/customers{query}")).send().await.expect(200);
        assert_eq!(list.body["data"], json!([]));
    }
    let own = as_other("POST", "/v1/customers").key(&fresh_key()).form("").send().await.expect(201);
    let own_path = format!("/v1/customers/{}", own.id());
    let form = format!("default_source={card}");
    let foreign = as_other("POST", &own_path).key(&fresh_key()).form(&form).send().await;
    let foreign = foreign.expect_error(400, "resource_missing");
    // The message is the one that an id gets which nobody has.
    assert_eq!(foreign.body["error"]["message"], format!("No such source: '{card}'"));
    assert_eq!(app.read(&path).await, customer.body);
}

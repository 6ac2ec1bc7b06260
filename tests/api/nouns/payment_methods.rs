//! Payment methods: made, shown, changed, given to a customer and taken back.

use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::intents::{METHOD_CARD, PAYMENT_METHOD, PRICE, said, unknown_id};
use crate::support::shapes::{assert_shape, without_identity};

const METHODS: &str = "/v1/payment_methods";
const CARD: &str = "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040&card[cvc]=123";

#[tokio::test]
async fn a_payment_method_is_made_of_a_card_a_token_or_the_name_of_one() {
    let app = TestApp::spawn();
    let token = app.submit("/v1/tokens", CARD).await.expect(201).id().to_owned();
    let mut fingerprints = Vec::new();
    for card in [CARD.to_owned(), "card[token]=tok_visa".to_owned(), format!("card[token]={token}")] {
        let reply = app.submit(METHODS, &format!("type=card&{card}")).await.expect(201);
        let path = format!("{METHODS}/{}", reply.id());
        assert_eq!(reply.header("Location"), Some(path.as_str()));
        assert_shape(&reply.body, PAYMENT_METHOD);
        assert_shape(&reply.body["card"], METHOD_CARD);
        assert_eq!(reply.body["object"], "payment_method");
        assert_eq!(reply.body["type"], "card");
        assert_eq!(reply.body["customer"], Value::Null);
        assert_eq!(reply.body["metadata"], json!({}));
        assert_eq!(reply.body["card"]["last4"], "4242");
        assert_eq!(app.read(&path).await, reply.body);
        // One that belongs to nobody has no event.
        assert!(app.events_of(&reply).await.is_empty());
        fingerprints.push(reply.body["card"]["fingerprint"].clone());
    }
    assert!(fingerprints.iter().all(|fingerprint| *fingerprint == fingerprints[0]), "{fingerprints:?}");
    let other = app.submit(METHODS, "card[token]=tok_mastercard").await.expect(201);
    assert_ne!(other.body["card"]["fingerprint"], fingerprints[0]);
    let spent = app.submit(METHODS, &format!("card[token]={token}")).await;
    assert_eq!(spent.expect_error(400, "token_already_used").param(), "card[token]");
}

#[tokio::test]
async fn form_and_json_make_the_same_payment_method() {
    let app = TestApp::spawn();
    let holder = "billing_details[name]=Ada&billing_details[email]=ada%40b.c&billing_details[phone]=1\
                  &billing_details[address][city]=Ghent&billing_details[address][postal_code]=9000&metadata[a]=1";
    let by_form = app.submit(METHODS, &format!("type=card&{CARD}&{holder}")).await.expect(201).body;
    let by_json = app
        .submit_json(
            METHODS,
            &json!({
                "type": "card",
                "card": { "number": "4242 4242 4242 4242", "exp_month": 12, "exp_year": 2040, "cvc": "123" },
                "billing_details": {
                    "name": "Ada", "email": "ada@b.c", "phone": "1",
                    "address": { "city": "Ghent", "postal_code": "9000" },
                },
                "metadata": { "a": "1" },
            }),
        )
        .await
        .expect(201)
        .body;
    assert_eq!(without_identity(&by_form), without_identity(&by_json));
    assert_eq!(by_form["billing_details"]["address"]["city"], "Ghent");
    assert_eq!(by_form["card"]["checks"]["cvc_check"], "pass");
    assert_eq!(by_form["card"]["checks"]["address_postal_code_check"], "pass");
    // What is typed with the method goes before what its token has.
    let token = app.submit("/v1/tokens", &format!("{CARD}&card[name]=Old&card[address_city]=Bruges")).await;
    let form = format!("card[token]={}&billing_details[name]=New", token.expect(201).id());
    let overlaid = app.submit(METHODS, &form).await.expect(201).body;
    assert_eq!(overlaid["billing_details"]["name"], "New");
    assert_eq!(overlaid["billing_details"]["address"]["city"], "Bruges");
}

#[tokio::test]
async fn the_name_of_a_test_method_is_another_object_each_time() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let mut ids = vec![
        app.kept_method("visa", &customer).await,
        app.kept_method("visa", &customer).await,
        app.intent("payment_method=pm_card_visa").await["payment_method"].as_str().unwrap().to_owned(),
        app.intent("payment_method=pm_card_visa").await["payment_method"].as_str().unwrap().to_owned(),
    ];
    for id in &ids {
        assert_eq!(app.read(&format!("{METHODS}/{id}")).await["card"]["last4"], "4242");
    }
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn an_update_changes_holder_expiry_and_metadata_and_nothing_else() {
    let app = TestApp::spawn();
    let customer = app.customer().await;
    let path = format!("{METHODS}/{}", app.kept_method("visa", &customer).await);
    let before = app.read(&path).await;
    let form = "billing_details[name]=Ada&billing_details[address][line1]=1+Way&card[exp_month]=3&card[exp_year]=41\
                &metadata[a]=1&metadata[b]=2";
    let reply = app.submit(&path, form).await.expect(200);
    assert_eq!(app.events_of(&reply).await, ["payment_method.updated"]);
    let mut expected = before.clone();
    expected["billing_details"]["name"] = "Ada".into();
    expected["billing_details"]["address"]["line1"] = "1 Way".into();
    expected["card"]["exp_month"] = 3.into();
    expected["card"]["exp_year"] = 2041.into();
    expected["card"]["checks"]["address_line1_check"] = "pass".into();
    expected["metadata"] = json!({ "a": "1", "b": "2" });
    assert_eq!(reply.body, expected);
    assert_eq!(app.read(&path).await, expected);
    let merged = app.submit(&path, "metadata[a]=&metadata[c]=3&billing_details[name]=").await.expect(200);
    assert_eq!(merged.body["metadata"], json!({ "b": "2", "c": "3" }));
    assert_eq!(merged.body["billing_details"]["name"], Value::Null);
    assert_eq!(merged.body["billing_details"]["address"]["line1"], "1 Way");
    let before = app.database.dump();
    for (form, status, code, param) in [
        ("card[exp_month]=13", 402, "invalid_expiry_month", "exp_month"),
        ("card[exp_year]=2001", 402, "invalid_expiry_year", "exp_year"),
        ("card[number]=4242424242424242", 400, "parameter_unknown", "card[number]"),
        ("card[cvc]=123", 400, "parameter_unknown", "card[cvc]"),
        ("customer=cus_x", 400, "parameter_unknown", "customer"),
        ("type=card", 400, "parameter_unknown", "type"),
        ("billing_details[x]=1", 400, "parameter_unknown", "billing_details[x]"),
        ("billing_details[email]=x", 400, "email_invalid", "billing_details[email]"),
    ] {
        assert_eq!(app.submit(&path, form).await.expect_error(status, code).param(), param, "{form}");
    }
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_card_that_is_no_card_is_refused_and_no_number_remains_anywhere() {
    let app = TestApp::spawn();
    let rest = "card[exp_month]=12&card[exp_year]=2040";
    let before = app.database.dump();
    for (form, status, code, param) in [
        (format!("card[number]=4242424242424241&{rest}"), 402, "incorrect_number", "number"),
        (format!("card[number]=4111111111111111&{rest}"), 402, "card_declined", "number"),
        (format!("card[number]=4242424242424242&{rest}&card[cvc]=1"), 402, "invalid_cvc", "cvc"),
        (
            format!("card[number]=4242424242424242&card[x]=4242424242424242&{rest}"),
            400,
            "parameter_unknown",
            "card[x]",
        ),
        (
            "card[number]=4242424242424242&card[exp_month]=0&card[exp_year]=2040".into(),
            402,
            "invalid_expiry_month",
            "exp_month",
        ),
        (
            "card[number]=4242424242424242&card[exp_year]=2040".into(),
            400,
            "parameter_missing",
            "card[exp_month]",
        ),
        ("card[number][a]=4242424242424242&card[exp_month]=1".into(), 400, "", "card[number]"),
        ("card=4242424242424242".into(), 400, "", "card"),
        ("card[token]=tok_4242424242424242".into(), 400, "resource_missing", "card[token]"),
        ("type=4242424242424242".into(), 400, "", "type"),
        ("type=klarna&card[token]=tok_visa".into(), 400, "", "type"),
        ("".into(), 400, "parameter_missing", "card"),
        ("payment_method=pm_card_visa".into(), 400, "parameter_unknown", "payment_method"),
        ("card[token]=tok_visa&nope=1".into(), 400, "parameter_unknown", "nope"),
    ] {
        let reply = app.submit(METHODS, &form).await.expect_error(status, code);
        assert_eq!(reply.param(), param, "{form}");
        let text = String::from_utf8_lossy(&reply.bytes).replace("4242424242424241", "4242424242424242");
        assert!(!text.contains("4242424242424242") && !text.contains("4111111111111111"), "{text}");
    }
    assert_eq!(app.database.dump(), before);
    let made = app.submit(METHODS, CARD).await.expect(201);
    let data = format!(
        "{PRICE}&confirm=true&payment_method_data[type]=card&{}",
        CARD.replace("card[", "payment_method_data[card][")
    );
    let paid = app.submit("/v1/payment_intents", &data).await.expect(201);
    for text in [app.database.dump(), made.body.to_string(), paid.body.to_string()] {
        assert!(!text.contains("424242424242"));
    }
}

#[tokio::test]
async fn lists_hold_what_a_customer_keeps_newest_first_and_page_both_ways() {
    let app = TestApp::spawn();
    let (customer, other) = (app.customer().await, app.customer().await);
    let mut kept = Vec::new();
    for card in ["visa", "mastercard", "amex"] {
        kept.push(app.kept_method(card, &customer).await);
    }
    kept.reverse();
    app.kept_method("visa", &other).await;
    app.method("visa").await;
    let ids = |list: &Value| -> Vec<String> {
        list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|method| method["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let of_customer = format!("/v1/customers/{customer}/payment_methods");
    for (path, url) in [
        (format!("{METHODS}?customer={customer}&type=card"), METHODS.to_owned()),
        (format!("{of_customer}?type=card"), of_customer.clone()),
    ] {
        let list = app.read(&path).await;
        assert_eq!(ids(&list), kept);
        assert_eq!((&list["url"], &list["has_more"]), (&json!(url), &json!(false)));
        let first = app.read(&format!("{path}&limit=1")).await;
        assert_eq!((ids(&first), &first["has_more"]), (kept[..1].to_vec(), &json!(true)));
        assert_eq!(ids(&app.read(&format!("{path}&starting_after={}", kept[0])).await), kept[1..]);
        assert_eq!(ids(&app.read(&format!("{path}&limit=1&ending_before={}", kept[2])).await), kept[1..2]);
    }
    let method = format!("{of_customer}/{}", kept[0]);
    assert_eq!(app.read(&method).await, app.read(&format!("{METHODS}/{}", kept[0])).await);
    app.get(&format!("/v1/customers/{other}/payment_methods/{}", kept[0]))
        .send()
        .await
        .expect_error(404, "resource_missing");
    for (path, status, code, param) in [
        (format!("{METHODS}?customer={}", unknown_id("cus")), 400, "resource_missing", "customer"),
        (format!("{METHODS}?starting_after={}", unknown_id("pm")), 400, "resource_missing", "starting_after"),
        (format!("{METHODS}?type=sepa_debit"), 400, "", "type"),
        (format!("{of_customer}?customer={other}"), 400, "parameter_unknown", "customer"),
        (format!("/v1/customers/{}/payment_methods", unknown_id("cus")), 404, "resource_missing", "id"),
    ] {
        assert_eq!(app.get(&path).send().await.expect_error(status, code).param(), param, "{path}");
    }
}

#[tokio::test]
async fn ids_of_another_kind_or_another_account_are_as_unknown_as_any() {
    let app = TestApp::spawn();
    let key = app.database.other_account();
    let foreign = app
        .call_as(&key, reqwest::Method::POST, METHODS)
        .key("k")
        .form("card[token]=tok_visa")
        .send()
        .await
        .expect(201);
    let foreign = foreign.id().to_owned();
    let customer = app.customer().await;
    let token = app.submit("/v1/tokens", CARD).await.expect(201).id().to_owned();
    let kept = app.kept_method("visa", &customer).await;
    let before = app.database.dump();
    for id in [foreign.as_str(), token.as_str(), "tok_visa", "pm_x", "pm_card_nobody"] {
        let unknown = unknown_id("pm");
        for (suffix, form) in
            [("", "metadata[a]=1"), ("/attach", &*format!("customer={customer}")), ("/detach", "")]
        {
            let of = async |id: &str| {
                let reply = app.submit(&format!("{METHODS}/{id}{suffix}"), form).await;
                said(&reply.expect_error(404, "resource_missing"), id)
            };
            assert_eq!(of(id).await, of(&unknown).await);
        }
        let read = async |id: &str| said(&app.get(&format!("{METHODS}/{id}")).send().await.expect(404), id);
        assert_eq!(read(id).await, read(&unknown).await);
        let named = [
            ("/v1/payment_intents", format!("{PRICE}&payment_method="), "payment_method"),
            ("/v1/payment_intents", format!("{PRICE}&confirm=true&payment_method="), "payment_method"),
            ("/v1/customers", "payment_method=".to_owned(), "payment_method"),
            (
                &*format!("/v1/customers/{customer}"),
                "invoice_settings[default_payment_method]=".to_owned(),
                "invoice_settings[default_payment_method]",
            ),
        ];
        for (path, form, param) in named {
            let of = async |id: &str| {
                let reply =
                    app.submit(path, &format!("{form}{id}")).await.expect_error(400, "resource_missing");
                assert_eq!(reply.param(), param);
                said(&reply, id)
            };
            assert_eq!(of(id).await, of(&unknown).await, "{path} {form}");
        }
    }
    // And the reverse: a payment method is no source.
    for source in [kept.as_str(), "pm_card_visa"] {
        let reply = app.submit("/v1/charges", &format!("{PRICE}&source={source}")).await;
        assert_eq!(reply.expect_error(400, "resource_missing").param(), "source");
        let reply = app.submit(METHODS, &format!("card[token]={source}")).await;
        assert_eq!(reply.expect_error(400, "resource_missing").param(), "card[token]");
    }
    // What is another account's shows nothing there and can be used here no more than anything unknown.
    let reply = app.call_as(&key, reqwest::Method::POST, &format!("{METHODS}/{foreign}/attach"));
    let reply = reply.key("k2").form(&format!("customer={customer}")).send().await;
    assert_eq!(reply.expect_error(400, "resource_missing").param(), "customer");
    assert_eq!(app.database.dump(), before);
}

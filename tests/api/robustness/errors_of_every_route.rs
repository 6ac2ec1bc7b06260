//! Errors that every route shares: unknown routes and methods, credentials, names of parameters.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{CHARGE, HOLD, TestApp, fresh_key, http};

/// A client without the headers that the tests' own client always sends.
async fn bare(app: &TestApp, authorization: Option<&str>) -> (u16, Option<String>, Value) {
    let request = http().build().unwrap().get(format!("http://{}/v1/balance", app.address));
    let request = match authorization {
        Some(value) => request.header("Authorization", value),
        None => request,
    };
    let response = request.send().await.unwrap();
    let challenge =
        response.headers().get("WWW-Authenticate").map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), challenge, response.json().await.unwrap())
}

#[tokio::test]
async fn a_caller_without_a_valid_api_key_learns_how_to_send_one() {
    let app = TestApp::spawn();
    let key = &app.database.api_key;
    for authorization in [None, Some(""), Some("Bearer"), Some("Digest x"), Some("Basic !!"), Some(&**key)] {
        let (status, challenge, body) = bare(&app, authorization).await;
        assert_eq!(status, 401, "{authorization:?}");
        assert!(challenge.is_some());
        assert_eq!(body["error"]["type"], "invalid_request_error");
        assert!(body["error"]["message"].as_str().unwrap().contains("Authorization: Bearer"));
    }
    for wrong in ["Bearer sk_test_wrong", "Basic c2tfdGVzdF93cm9uZzo="] {
        let (status, challenge, body) = bare(&app, Some(wrong)).await;
        assert_eq!(status, 401);
        assert!(challenge.is_some());
        assert!(body["error"]["message"].as_str().unwrap().starts_with("Invalid API Key provided"));
    }
    assert_eq!(bare(&app, Some(&format!("Bearer {key}"))).await.0, 200);
}

#[tokio::test]
async fn a_publishable_key_is_called_what_it_is_and_never_shown_whole() {
    let app = TestApp::spawn();
    let basic = "Basic cGtfdGVzdF81MWFiY2RlZmdoaWprbG1ub3A6";
    for publishable in ["Bearer pk_test_51abcdefghijklmnop", "Bearer pk_live_51abcdefghijklmnop", basic] {
        let (status, challenge, body) = bare(&app, Some(publishable)).await;
        assert_eq!(status, 401, "{publishable}");
        assert!(challenge.is_some());
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("pk_") && message.contains("is a publishable API key"), "{message}");
        assert!(
            message.contains("collect a payer's card in a browser") && message.contains("sk_"),
            "{message}"
        );
        assert!(!message.contains("51abcdef"), "{message}");
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn only_card_numbers_are_hidden_in_messages() {
    let app = TestApp::spawn();
    for (amount, shown) in [
        ("1998.9999999999998", "1998.9999999999998"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("92233720368547758080", "92233720368547758080"),
        ("4242424242424241", "[none]"),
        ("4242424242424242", "[none]"),
        ("4242 4242 4242 4242", "[redacted]"),
        ("4242-4242-4242-4242", "[redacted]"),
        ("x4242424242424242", "x[redacted]"),
        ("4242424242424242.5", "[redacted].5"),
    ] {
        let form = format!("amount={amount}&currency=usd&source=tok_visa");
        let error = app.submit("/v1/charges", &form).await.expect_any_error(400);
        let message = error.body["error"]["message"].as_str().unwrap();
        if shown == "[none]" {
            // It is an integer, only too large for an amount, and no message repeats it.
            assert!(!message.contains("4242"), "{message}");
        } else {
            assert_eq!(message, format!("Invalid integer: {shown}"));
        }
    }
    // The same in JSON, in paths and in names of parameters.
    let body = json!({ "amount": 1998.9999999999998, "currency": "usd", "source": "tok_visa" });
    let error = app.submit_json("/v1/charges", &body).await.expect_error(400, "parameter_invalid_integer");
    assert_eq!(error.body["error"]["message"], "Invalid integer: 1998.9999999999998");
    for (path, form) in [
        ("/v1/charges/4242424242424242", ""),
        ("/v1/4242%204242%204242%204242", ""),
        ("/v1/charges", "4242424242424242=x&amount=1000&currency=usd&source=tok_visa"),
        ("/v1/charges", "amount=1000&currency=usd&source=4242-4242-4242-4242"),
    ] {
        let error = app.submit(path, form).await;
        assert!(matches!(error.status, 400 | 404), "{error:?}");
        let text = error.body.to_string();
        assert!(text.contains("[redacted]") && !text.contains("4242"), "{text}");
    }
}

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_named() {
    let app = TestApp::spawn();
    for (method, path) in [
        (Method::GET, "/v1/nope"),
        (Method::POST, "/v1/nope"),
        (Method::GET, "/v1"),
        (Method::GET, "/v1/customers/cus_x/nope"),
        (Method::GET, "/v2/customers"),
        (Method::DELETE, "/v1/charges/ch_x/capture/again"),
    ] {
        let error = app.call(method.clone(), path).send().await.expect_error(404, "");
        let message = format!("Unrecognized request URL ({method}: {path}).");
        assert_eq!(error.body["error"]["message"], message);
    }
    // A route of Stripe that this service lacks is not called misspelt.
    for (method, path) in [
        (Method::POST, "/v1/setup_intents"),
        (Method::POST, "/v1/checkout/sessions"),
        (Method::GET, "/v1/products/prod_x"),
        (Method::GET, "/v1/customers/search?query=x"),
        (Method::GET, "/v1/charges/search"),
    ] {
        let error = app.call(method, path).send().await.expect_error(404, "");
        let message = error.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("is part of Stripe's API, but this service does not"), "{path}: {message}");
    }
    for (method, path, allowed) in [
        (Method::DELETE, "/v1/customers", vec!["GET", "HEAD", "POST"]),
        (Method::PUT, "/v1/charges/ch_x", vec!["GET", "HEAD", "POST"]),
        (Method::PATCH, "/v1/customers/cus_x", vec!["DELETE", "GET", "HEAD", "POST"]),
        (Method::GET, "/v1/charges/ch_x/capture", vec!["POST"]),
        (Method::POST, "/v1/balance", vec!["GET", "HEAD"]),
        (Method::DELETE, "/v1/events/evt_x", vec!["GET", "HEAD"]),
    ] {
        let error = app.call(method, path).send().await.expect_error(405, "");
        let mut allow: Vec<&str> = error.header("Allow").unwrap().split(", ").collect();
        allow.sort_unstable();
        assert_eq!(allow, allowed, "{path}");
    }
}

#[tokio::test]
async fn json_sent_as_a_form_is_refused_with_a_message_that_says_so() {
    let app = TestApp::spawn();
    let json = r#" {"amount": 2000, "currency": "usd", "source": "tok_visa"}"#;
    let reply = app.post("/v1/charges").key(&fresh_key()).form(json).send().await.expect_error(400, "");
    assert!(reply.body["error"]["message"].as_str().unwrap().contains("Content-Type: application/json"));
    assert_eq!(app.database.count("charges"), 0);
}

#[tokio::test]
async fn an_unknown_id_is_404_in_the_path_and_400_in_a_parameter() {
    let app = TestApp::spawn();
    let absent = "0199aabbccdd7eef8011223344556677";
    for (noun, prefix, path) in [
        ("customer", "cus", "customers"),
        ("token", "tok", "tokens"),
        ("charge", "ch", "charges"),
        ("refund", "re", "refunds"),
        ("balance transaction", "txn", "balance_transactions"),
        ("event", "evt", "events"),
    ] {
        // An id that nobody has, an id with another prefix, and two texts that are no ids.
        for id in [format!("{prefix}_{absent}"), format!("x_{absent}"), "x".to_owned(), "%00".to_owned()] {
            let error = app.get(&format!("/v1/{path}/{id}")).send().await;
            let error = error.expect_error(404, "resource_missing");
            assert_eq!(error.param(), "id");
            let message = error.body["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("No such {noun}: '")), "{message}");
        }
        if path == "tokens" {
            // They have no list.
            continue;
        }
        for cursor in ["starting_after", "ending_before"] {
            for id in [format!("{prefix}_{absent}"), "x".to_owned()] {
                let error = app.get(&format!("/v1/{path}?{cursor}={id}")).send().await;
                assert_eq!(error.expect_error(400, "resource_missing").param(), cursor);
            }
        }
    }
}

#[tokio::test]
async fn a_filter_by_an_unknown_id_is_refused_and_a_filter_without_matches_is_not() {
    let app = TestApp::spawn();
    let absent = "0199aabbccdd7eef8011223344556677";
    for (list, filter, prefix) in [
        ("charges", "customer", "cus"),
        ("refunds", "charge", "ch"),
        ("balance_transactions", "source", "ch"),
        ("balance_transactions", "source", "re"),
    ] {
        let error = app.get(&format!("/v1/{list}?{filter}={prefix}_{absent}")).send().await;
        assert_eq!(error.expect_error(400, "resource_missing").param(), filter, "{list} {prefix}");
    }
    let customer = app.submit("/v1/customers", "").await.expect(201).id().to_owned();
    let hold = app.submit("/v1/charges", HOLD).await;
    let charge = hold.expect(201).id().to_owned();
    let by_customer = format!("/v1/charges?customer={customer}");
    let empty = [
        by_customer.clone(),
        format!("/v1/refunds?charge={charge}"),
        format!("/v1/balance_transactions?source={charge}"),
    ];
    for path in &empty {
        assert_eq!(app.read(path).await["data"], json!([]), "{path}");
    }
    // The charges of a customer can be seen after it was deleted.
    app.delete(&format!("/v1/customers/{customer}")).send().await.expect(200);
    assert_eq!(app.read(&by_customer).await["data"], json!([]));
}

#[tokio::test]
async fn an_unknown_parameter_is_refused_by_its_full_name_on_every_route() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "").await.expect(201).id().to_owned();
    let charge = app.charge().await;
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    let posts = [
        "/v1/customers".to_owned(),
        format!("/v1/customers/{customer}"),
        format!("/v1/charges/{charge}"),
        format!("/v1/charges/{charge}/capture"),
        format!("/v1/refunds/{}", refund.id()),
    ];
    for path in &posts {
        for (form, param) in
            [("zzz=1", "zzz"), ("zzz[a][b]=1", "zzz"), ("on_behalf_of=acct_1", "on_behalf_of")]
        {
            let error = app.submit(path, form).await.expect_error(400, "parameter_unknown");
            assert_eq!(error.param(), param, "{path}");
        }
        let error = app.submit_json(path, &json!({ "zzz": null })).await;
        assert_eq!(error.expect_error(400, "parameter_unknown").param(), "zzz");
    }
    for path in ["customers", "charges", "refunds", "balance", "balance_transactions", "events"] {
        let error = app.get(&format!("/v1/{path}?zzz=1")).send().await;
        assert_eq!(error.expect_error(400, "parameter_unknown").param(), "zzz", "{path}");
    }
    let error = app.delete(&format!("/v1/customers/{customer}?zzz=1")).send().await;
    error.expect_error(400, "parameter_unknown");
    // This includes members of a list's filter, and parameters in the query of a POST.
    let error = app.get("/v1/charges?created[after]=1").send().await;
    assert_eq!(error.expect_error(400, "parameter_unknown").param(), "created[after]");
    let stray = app.submit("/v1/customers?name=Ada", "").await.expect_error(400, "parameter_unknown");
    assert_eq!(stray.param(), "name");
}

#[tokio::test]
async fn parameters_of_connect_are_refused_with_a_message_that_says_so() {
    let app = TestApp::spawn();
    for parameter in [
        "application_fee_amount=1",
        "application_fee=1",
        "destination=acct_1",
        "on_behalf_of=acct_1",
        "transfer_data[destination]=acct_1",
        "transfer_group=g",
    ] {
        let form = format!("{CHARGE}&{parameter}");
        let error = app.submit("/v1/charges", &form).await.expect_error(400, "parameter_unknown");
        let message = error.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("does not support"), "{message}");
        assert!(parameter.starts_with(error.param()));
    }
    let call = app.get("/v1/balance").header("Stripe-Account", "acct_1");
    call.send().await.expect_error(400, "");
    assert_eq!(app.database.count("charges"), 0);
}

#[tokio::test]
async fn a_parameter_of_the_wrong_type_is_400_wherever_it_stands() {
    let app = TestApp::spawn();
    let wrong = [json!([]), json!({}), json!([{}]), json!({ "a": [1] }), json!(1.5), json!(true), json!(7)];
    let mut refused = 0;
    for name in [
        "amount",
        "currency",
        "source",
        "card",
        "customer",
        "capture",
        "description",
        "metadata",
        "receipt_email",
        "shipping",
        "statement_descriptor",
        "statement_descriptor_suffix",
        "expand",
    ] {
        for value in &wrong {
            let mut body = json!({ "amount": 1000, "currency": "usd", "source": "tok_visa" });
            if name == "card" {
                body.as_object_mut().unwrap().remove("source");
            }
            body[name] = value.clone();
            let reply = app.submit_json("/v1/charges", &body).await;
            assert!(matches!(reply.status, 201 | 400), "{name}={value}: {reply:?}");
            refused += usize::from(reply.status == 400);
        }
    }
    // What is right is `true` for capture, an empty or an only list for expand, the like for metadata, and 7 for none.
    assert!(refused >= 13 * 7 - 6, "{refused}");
    for query in
        ["limit[a]=1", "starting_after[]=x", "customer[a]=1", "created[gt][a]=1", "created=x", "expand=x"]
    {
        app.get(&format!("/v1/charges?{query}")).send().await.expect(400);
    }
}

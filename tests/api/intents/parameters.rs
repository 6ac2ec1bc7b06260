//! The parameters of an intent: each refusal names its parameter and writes nothing.

use serde_json::json;

use crate::support::TestApp;
use crate::support::intents::{PRICE, path_of, unknown_id, without_id};

const INTENTS: &str = "/v1/payment_intents";

#[tokio::test]
async fn invalid_parameters_are_refused_by_name_when_an_intent_is_made() {
    let app = TestApp::spawn();
    let visa = "payment_method=pm_card_visa";
    let before = app.database.dump();
    for (form, code, param) in [
        ("currency=usd", "parameter_missing", "amount"),
        ("amount=1000", "parameter_missing", "currency"),
        ("amount=&currency=usd", "parameter_invalid_integer", "amount"),
        ("amount=10.5&currency=usd", "parameter_invalid_integer", "amount"),
        ("amount=9223372036854775808&currency=usd", "parameter_invalid_integer", "amount"),
        ("amount=9223372036854775807&currency=usd", "amount_too_large", "amount"),
        ("amount=100000000&currency=usd", "amount_too_large", "amount"),
        ("amount=49&currency=usd", "amount_too_small", "amount"),
        ("amount=0&currency=usd", "amount_too_small", "amount"),
        ("amount=-1&currency=usd", "amount_too_small", "amount"),
        ("amount=49&currency=jpy", "amount_too_small", "amount"),
        ("amount=1001&currency=kwd", "", "amount"),
        ("amount=1000&currency=xyz", "", "currency"),
        ("amount=1000&currency=", "", "currency"),
    ] {
        let refused = app.submit(INTENTS, form).await.expect(400);
        assert_eq!(refused.param(), param, "{form}: {}", refused.body);
        if !code.is_empty() {
            assert_eq!(refused.code(), code, "{form}");
        }
    }
    for (form, code, param) in [
        // Contradictions.
        ("off_session=true", "", "off_session"),
        ("error_on_requires_action=true", "", "error_on_requires_action"),
        ("return_url=https://a.b", "", "return_url"),
        ("confirm=false&off_session=true", "", "off_session"),
        ("automatic_payment_methods[enabled]=true&payment_method_types[]=card", "", "payment_method_types"),
        (&*format!("{visa}&payment_method_data[card][token]=tok_visa"), "", "payment_method_data"),
        ("confirm=true", "payment_intent_unexpected_state", ""),
        // Features that this service does not have.
        ("payment_method_types[]=klarna", "", "payment_method_types"),
        ("payment_method_types[]=card&payment_method_types[]=klarna", "", "payment_method_types"),
        ("allowed_payment_method_types[]=paypal", "", "allowed_payment_method_types"),
        (
            "payment_method_data[type]=klarna&payment_method_data[card][token]=tok_visa",
            "",
            "payment_method_data[type]",
        ),
        ("payment_method_options[nothing][a]=1", "parameter_unknown", "payment_method_options[nothing]"),
        ("payment_method_options[card][a]=1", "parameter_unknown", "payment_method_options[card][a]"),
        (
            "payment_method_data[x]=1&payment_method_data[card][token]=tok_visa",
            "parameter_unknown",
            "payment_method_data[x]",
        ),
        (
            "payment_method_data[card][token]=tok_nobody",
            "resource_missing",
            "payment_method_data[card][token]",
        ),
        ("payment_method_data[type]=card", "parameter_missing", "payment_method_data[card]"),
        (
            "payment_method_data[card][number]=4242424242424242",
            "parameter_missing",
            "payment_method_data[card][exp_month]",
        ),
        ("application_fee_amount=10", "parameter_unknown", "application_fee_amount"),
        ("transfer_data[destination]=x", "parameter_unknown", "transfer_data"),
        ("on_behalf_of=acct_1", "parameter_unknown", "on_behalf_of"),
        ("nope=1", "parameter_unknown", "nope"),
        ("amount_to_confirm=1000", "parameter_unknown", "amount_to_confirm"),
        ("expand[]=nope", "", "expand[0]"),
        // Invalid values.
        ("confirm=yes", "", "confirm"),
        ("confirm=true&off_session=maybe", "", "off_session"),
        ("capture_method=later", "", "capture_method"),
        ("confirmation_method=x", "", "confirmation_method"),
        ("setup_future_usage=x", "", "setup_future_usage"),
        (
            "automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=x",
            "",
            "automatic_payment_methods[allow_redirects]",
        ),
        (
            "automatic_payment_methods[allow_redirects]=never",
            "parameter_missing",
            "automatic_payment_methods[enabled]",
        ),
        ("statement_descriptor=12345678901234567890123", "", "statement_descriptor"),
        ("statement_descriptor=a%3Cb", "", "statement_descriptor"),
        ("statement_descriptor_suffix=12345678901234567890123", "", "statement_descriptor_suffix"),
        ("receipt_email=x", "email_invalid", "receipt_email"),
        ("shipping[name]=A", "parameter_missing", "shipping[address]"),
        ("shipping[address][city]=A", "parameter_missing", "shipping[name]"),
        ("metadata[a[b]]=1", "", ""),
        (
            "payment_method_options[card][request_three_d_secure]=x",
            "",
            "payment_method_options[card][request_three_d_secure]",
        ),
    ] {
        let refused = app.submit(INTENTS, &format!("{PRICE}&{form}")).await.expect(400);
        if !param.is_empty() {
            assert_eq!(refused.param(), param, "{form}: {}", refused.body);
        }
        if !code.is_empty() {
            assert_eq!(refused.code(), code, "{form}");
        }
        assert!(
            refused.body["error"]["message"].as_str().is_some_and(|message| message.len() > 10),
            "{form}"
        );
    }
    let unsupported = app.submit(INTENTS, &format!("{PRICE}&transfer_group=x")).await.expect(400);
    assert!(unsupported.body["error"]["message"].as_str().unwrap().contains("does not support"));
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn parameters_within_their_bounds_are_taken() {
    let app = TestApp::spawn();
    for form in [
        "amount=50&currency=usd",
        "amount=99999999&currency=usd",
        "amount=50&currency=JPY",
        "amount=1010&currency=kwd",
        "amount=1000&currency=usd&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never",
        "amount=1000&currency=usd&automatic_payment_methods[enabled]=False",
        "amount=1000&currency=usd&confirm=true&off_session=recurring&payment_method=pm_card_visa",
        "amount=1000&currency=usd&confirm=True&off_session=one_off&payment_method=pm_card_visa",
        "amount=1000&currency=usd&confirm=true&error_on_requires_action=true&payment_method=pm_card_visa",
        "amount=1000&currency=usd&payment_method_types[0]=card",
    ] {
        app.submit(INTENTS, form).await.expect(201);
    }
    let automatic = app.intent("").await["automatic_payment_methods"].clone();
    assert_eq!(automatic, json!({ "allow_redirects": "always", "enabled": true }));
    app.database.assert_clean();
}

#[tokio::test]
async fn an_update_a_confirmation_a_capture_and_a_cancellation_take_their_own_parameters_only() {
    let app = TestApp::spawn();
    let (intent, held) =
        (app.intent_in("requires_confirmation").await, app.intent_in("requires_capture").await);
    let before = app.database.dump();
    for (path, forms) in [
        (
            path_of(&intent),
            &[
                "confirm=true",
                "off_session=true",
                "return_url=x",
                "confirmation_method=manual",
                "cancellation_reason=duplicate",
                "automatic_payment_methods[enabled]=true",
            ][..],
        ),
        (
            format!("{}/confirm", path_of(&intent)),
            &[
                "amount=1000",
                "currency=usd",
                "customer=cus_x",
                "description=x",
                "metadata[a]=1",
                "statement_descriptor=X",
                "confirm=true",
                "confirmation_method=manual",
            ][..],
        ),
        (format!("{}/capture", path_of(&held)), &["amount=1", "description=x", "receipt_email=a%40b.c"][..]),
        (format!("{}/cancel", path_of(&held)), &["amount=1", "metadata[a]=1"][..]),
    ] {
        for form in forms {
            let refused = app.submit(&path, form).await.expect_error(400, "parameter_unknown");
            assert_eq!(refused.param(), form.split(['=', '[']).next().unwrap(), "{path}");
        }
    }
    for (form, code, param) in [
        ("amount=49", "amount_too_small", "amount"),
        ("amount=100000000", "amount_too_large", "amount"),
        ("currency=huf", "amount_too_small", "amount"),
        ("amount=", "parameter_invalid_integer", "amount"),
        ("payment_method_types[]=klarna", "", "payment_method_types"),
    ] {
        assert_eq!(
            app.submit(&path_of(&intent), form).await.expect_error(400, code).param(),
            param,
            "{form}"
        );
    }
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_confirmation_with_another_amount_or_client_secret_is_refused() {
    let app = TestApp::spawn();
    let intent = app.intent_in("requires_confirmation").await;
    let path = format!("{}/confirm", path_of(&intent));
    let other = app.intent("").await["client_secret"].as_str().unwrap().to_owned();
    let before = app.database.dump();
    for (form, param) in [
        ("amount_to_confirm=999".to_owned(), "amount_to_confirm"),
        (format!("client_secret={other}"), "client_secret"),
        ("client_secret=x".to_owned(), "client_secret"),
    ] {
        assert_eq!(app.submit(&path, &form).await.expect_error(400, "").param(), param);
    }
    assert_eq!(app.database.dump(), before);
    let form = format!("amount_to_confirm=1000&client_secret={}", intent["client_secret"].as_str().unwrap());
    assert_eq!(app.submit(&path, &form).await.expect(200).body["status"], "succeeded");
}

#[tokio::test]
async fn a_method_of_another_customer_is_refused_wherever_it_is_named() {
    let app = TestApp::spawn();
    let (ada, grace) = (app.customer().await, app.customer().await);
    let (of_ada, of_grace) =
        (app.attached_method("visa", &ada).await, app.attached_method("visa", &grace).await);
    let anonymous = app.intent("").await;
    let adas = app.intent(&format!("customer={ada}&payment_method={of_ada}")).await;
    let before = app.database.dump();
    for (path, form) in [
        (INTENTS.to_owned(), format!("{PRICE}&customer={grace}&payment_method={of_ada}")),
        (INTENTS.to_owned(), format!("{PRICE}&customer={grace}&payment_method={of_ada}&confirm=true")),
        (INTENTS.to_owned(), format!("{PRICE}&payment_method={of_ada}")),
        (path_of(&anonymous), format!("payment_method={of_ada}")),
        (path_of(&anonymous), format!("payment_method={of_ada}&customer={grace}")),
        (format!("{}/confirm", path_of(&anonymous)), format!("payment_method={of_ada}")),
        (path_of(&adas), format!("payment_method={of_grace}")),
        (format!("{}/confirm", path_of(&adas)), format!("payment_method={of_grace}")),
        // The method on the intent is attached to the old customer, so the intent cannot change to another one.
        (path_of(&adas), format!("customer={grace}")),
    ] {
        assert_eq!(
            app.submit(&path, &form).await.expect_error(400, "").param(),
            "payment_method",
            "{path} {form}"
        );
    }
    assert_eq!(app.database.dump(), before);
    let both = format!("customer={grace}&payment_method={of_grace}");
    assert_eq!(app.submit(&path_of(&adas), &both).await.expect(200).body["payment_method"], *of_grace);
    app.submit(&path_of(&anonymous), &format!("customer={ada}&payment_method={of_ada}")).await.expect(200);
    app.database.assert_clean();
}

#[tokio::test]
async fn an_intent_of_another_account_is_unknown() {
    let app = TestApp::spawn();
    let key = app.database.other_account();
    let foreign = app
        .call_as(&key, reqwest::Method::POST, INTENTS)
        .key("k")
        .form(&format!("{PRICE}&payment_method=pm_card_visa&confirm=true"));
    let foreign = foreign.send().await.expect(201).body;
    let (foreign_id, unknown) = (foreign["id"].as_str().unwrap(), unknown_id("pi"));
    let before = app.database.dump();
    for id in [foreign_id, foreign["latest_charge"].as_str().unwrap(), "pi_x"] {
        for (suffix, form) in [("", "description=x"), ("/confirm", ""), ("/capture", ""), ("/cancel", "")] {
            let of = async |id: &str| {
                let reply = app
                    .submit(&format!("{INTENTS}/{id}{suffix}"), form)
                    .await
                    .expect_error(404, "resource_missing");
                assert_eq!(reply.param(), "intent");
                without_id(&reply, id)
            };
            assert_eq!(of(id).await, of(&unknown).await);
        }
        let read =
            async |id: &str| without_id(&app.get(&format!("{INTENTS}/{id}")).send().await.expect(404), id);
        assert_eq!(read(id).await, read(&unknown).await);
        for path in ["/v1/charges", "/v1/refunds"] {
            let of = async |id: &str| {
                let reply = app.get(&format!("{path}?payment_intent={id}")).send().await;
                assert_eq!(reply.param(), "payment_intent");
                without_id(&reply.expect_error(400, "resource_missing"), id)
            };
            assert_eq!(of(id).await, of(&unknown).await);
        }
        let of = async |id: &str| {
            let reply = app.submit("/v1/refunds", &format!("payment_intent={id}")).await;
            assert_eq!(reply.param(), "payment_intent");
            without_id(&reply.expect_error(400, "resource_missing"), id)
        };
        assert_eq!(of(id).await, of(&unknown).await);
    }
    assert_eq!(app.read(INTENTS).await["data"], json!([]));
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_client_secret_may_come_with_the_retrieval_of_an_intent_and_is_checked() {
    let app = TestApp::spawn();
    let (intent, other) = (app.intent("").await, app.intent("").await);
    let path = path_of(&intent);
    let secret = intent["client_secret"].as_str().unwrap();
    assert_eq!(app.read(&format!("{path}?client_secret={secret}")).await, intent);
    assert_eq!(app.read(&format!("{path}?client_secret={secret}&expand[]=customer")).await, intent);
    for wrong in [other["client_secret"].as_str().unwrap(), &secret[..secret.len() - 1], "x"] {
        let error = app.get(&format!("{path}?client_secret={wrong}")).send().await.expect_error(400, "");
        assert_eq!(error.param(), "client_secret");
        assert!(!error.body.to_string().contains(secret));
    }
    let absent = format!("{INTENTS}/{}?client_secret={secret}", unknown_id("pi"));
    app.get(&absent).send().await.expect_error(404, "resource_missing");
    app.get(&format!("{INTENTS}?client_secret={secret}")).send().await.expect_error(400, "parameter_unknown");
}

#[tokio::test]
async fn parameters_that_would_change_the_money_or_its_receiver_are_refused_on_every_call() {
    let app = TestApp::spawn();
    let open = path_of(&app.intent("payment_method=pm_card_visa").await);
    let held = path_of(&app.intent("payment_method=pm_card_visa&confirm=true&capture_method=manual").await);
    let before = app.database.dump();
    let card = "payment_method_options[card]";
    for (path, form) in [
        (INTENTS.to_owned(), PRICE),
        (open.clone(), ""),
        (format!("{open}/confirm"), ""),
        (format!("{held}/capture"), ""),
    ] {
        for parameter in ["application_fee_amount=1", "transfer_data[amount]=1"] {
            let error = app.submit(&path, &format!("{form}&{parameter}")).await;
            let error = error.expect_error(400, "parameter_unknown");
            assert!(error.body["error"]["message"].as_str().unwrap().contains("does not support"), "{path}");
        }
        if path.ends_with("/capture") {
            continue;
        }
        for (parameter, param) in [
            ("on_behalf_of=acct_1".to_owned(), "on_behalf_of"),
            ("confirmation_token=ctoken_1".to_owned(), "confirmation_token"),
            ("mandate=mandate_1".to_owned(), "mandate"),
            ("hooks[inputs][tax][calculation]=x".to_owned(), "hooks"),
            (format!("{card}[capture_method]=manual"), "payment_method_options[card][capture_method]"),
            (format!("{card}[setup_future_usage]=x"), "payment_method_options[card][setup_future_usage]"),
            (format!("{card}[three_d_secure][version]=x"), "payment_method_options[card][three_d_secure]"),
            (format!("{card}[cvc_token]=cvctok_1"), "payment_method_options[card][cvc_token]"),
            (
                format!("{card}[installments][plan][count]=3"),
                "payment_method_options[card][installments][plan]",
            ),
        ] {
            let error = app.submit(&path, &format!("{form}&{parameter}")).await;
            let error = error.expect_error(400, "parameter_unknown");
            assert_eq!(error.param(), param, "{path}");
            assert!(error.body["error"]["message"].as_str().unwrap().contains("does not support"), "{path}");
        }
        let excluded = format!("{form}&excluded_payment_method_types[]=card");
        assert_eq!(
            app.submit(&path, &excluded).await.expect_error(400, "").param(),
            "excluded_payment_method_types"
        );
    }
    assert_eq!(app.database.dump(), before);
}

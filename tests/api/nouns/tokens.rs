//! Tokens and the cards in them: which are taken, which are refused, and that no number stays anywhere.

use serde_json::{Value, json};

use crate::support::shapes::{CARD, TOKEN, assert_shape, without_identity};
use crate::support::{Reply, TestApp, fresh_key};

const CARD_FORM: &str = "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040";

#[tokio::test]
async fn a_token_is_made_alike_by_form_and_by_json_and_is_used_once() {
    let app = TestApp::spawn();
    let form = "card[number]=5555555555554444&card[exp_month]=3&card[exp_year]=2040&card[cvc]=123&card[name]=Ada\
                &card[address_line1]=1+St.&card[address_line2]=Back&card[address_city]=Paris&card[address_state]=IdF\
                &card[address_zip]=75001&card[address_country]=FR&card[currency]=eur";
    let by_form = app.submit("/v1/tokens", form).await.expect(201);
    let by_json = app
        .submit_json(
            "/v1/tokens",
            &json!({ "card": {
                "number": "5555555555554444", "exp_month": 3, "exp_year": "2040", "cvc": "123", "name": "Ada",
                "address_line1": "1 St.", "address_line2": "Back", "address_city": "Paris",
                "address_state": "IdF", "address_zip": "75001", "address_country": "FR",
                "currency": "EUR",
            }}),
        )
        .await
        .expect(201);
    assert_eq!(without_identity(&by_form.body), without_identity(&by_json.body));
    assert_shape(&by_form.body, TOKEN);
    assert_shape(&by_form.body["card"], CARD);
    assert_eq!(by_form.body["type"], "card");
    assert_eq!(by_form.body["used"], false);
    let card = &by_form.body["card"];
    assert_eq!(
        [&card["brand"], &card["last4"], &card["exp_month"], &card["exp_year"], &card["funding"]],
        [&json!("MasterCard"), &json!("4444"), &json!(3), &json!(2040), &json!("credit")]
    );
    assert_eq!([&card["name"], &card["address_zip"], &card["cvc_check"]], ["Ada", "75001", "pass"]);
    let path = format!("/v1/tokens/{}", by_form.id());
    assert_eq!(by_form.header("Location"), Some(&*path));
    assert_eq!(app.read(&path).await, by_form.body);

    let charge = format!("amount=1000&currency=usd&source={}", by_form.id());
    let charge = app.submit("/v1/charges", &charge).await.expect(201);
    // The card's other name, as a payment method.
    let method = card["id"].as_str().unwrap().replace("card_", "pm_");
    assert_eq!(charge.body["payment_method"], *method);
    assert_eq!(charge.body["billing_details"]["name"], "Ada");
    assert_eq!(charge.body["billing_details"]["address"]["postal_code"], "75001");
    assert_eq!(app.read(&path).await["used"], true);
}

#[tokio::test]
async fn an_expiry_may_be_written_in_all_the_ways_people_write_it() {
    let app = TestApp::spawn();
    for form in ["card[exp_month]=04&card[exp_year]=40", "card[exp_month]=4&card[exp_year]=2040"] {
        let form = format!("card[number]=4242+4242+4242+4242&{form}");
        let token = app.submit("/v1/tokens", &form).await.expect(201).body;
        assert_eq!(token["card"]["exp_month"], 4);
        assert_eq!(token["card"]["exp_year"], 2040);
        assert_eq!(token["card"]["cvc_check"], Value::Null);
    }
}

#[tokio::test]
async fn a_card_that_is_none_is_refused_with_its_reason_and_nothing_is_stored() {
    let app = TestApp::spawn();
    let number = |number: &str| format!("card[number]={number}&card[exp_month]=12&card[exp_year]=2040");
    let rest = |rest: &str| format!("card[number]=4242424242424242&{rest}");
    let cases = [
        (number("4242424242424241"), 402, "incorrect_number", "number"),
        (number("4242"), 402, "incorrect_number", "number"),
        (number("abc"), 402, "incorrect_number", "number"),
        (number(""), 400, "parameter_missing", "card[number]"),
        (rest("card[exp_month]=0&card[exp_year]=2040"), 402, "invalid_expiry_month", "exp_month"),
        (rest("card[exp_month]=13&card[exp_year]=2040"), 402, "invalid_expiry_month", "exp_month"),
        (rest("card[exp_month]=1&card[exp_year]=2020"), 402, "invalid_expiry_year", "exp_year"),
        (rest("card[exp_month]=1&card[exp_year]=3000"), 402, "invalid_expiry_year", "exp_year"),
        (rest("card[exp_month]=12&card[exp_year]=2040&card[cvc]=12"), 402, "invalid_cvc", "cvc"),
        (rest("card[exp_month]=12&card[exp_year]=2040&card[cvc]=abc"), 402, "invalid_cvc", "cvc"),
        (rest("card[exp_year]=2040"), 400, "parameter_missing", "card[exp_month]"),
        (rest("card[exp_month]=12"), 400, "parameter_missing", "card[exp_year]"),
        (
            rest("card[exp_month]=May&card[exp_year]=2040"),
            400,
            "parameter_invalid_integer",
            "card[exp_month]",
        ),
        (format!("{CARD_FORM}&card[pin]=1234"), 400, "parameter_unknown", "card[pin]"),
        ("card=tok_nobody".to_owned(), 400, "", "card"),
        (String::new(), 400, "parameter_missing", "card"),
    ];
    for (form, status, code, param) in cases {
        let error = app.submit("/v1/tokens", &form).await.expect_error(status, code);
        assert_eq!(error.param(), param, "{form}");
        let expected = if status == 402 { "card_error" } else { "invalid_request_error" };
        assert_eq!(error.body["error"]["type"], expected, "{form}");
    }
    for table in ["payment_methods", "tokens", "idempotency_records"] {
        assert_eq!(app.database.count(table), 0, "{table}");
    }
    // A card is good until its month is over.
    let now = app.state.clock.now();
    let this_month = now.format("card[exp_month]=%m&card[exp_year]=%Y").to_string();
    app.submit("/v1/tokens", &rest(&this_month)).await.expect(201);
}

/// Every route that takes a card, and how it names it.
const CARD_TAKERS: [(&str, &str); 5] = [
    ("/v1/tokens", "card"),
    ("/v1/customers", "source"),
    ("/v1/customers/CUSTOMER", "card"),
    ("/v1/charges", "source"),
    ("/v1/charges", "card"),
];

#[tokio::test]
async fn a_number_is_never_stored_or_sent_back_whether_it_is_taken_or_refused() {
    let app = TestApp::spawn();
    let customer = app.submit("/v1/customers", "").await.expect(201);
    let mut answers: Vec<Reply> = Vec::new();
    for (path, name) in CARD_TAKERS {
        let path = path.replace("CUSTOMER", customer.id());
        let more = if path == "/v1/charges" { "&amount=1000&currency=usd" } else { "" };
        let card = |number: &str| {
            format!(
                "{name}[number]={number}&{name}[exp_month]=12&{name}[exp_year]=2040&{name}[cvc]=987{more}"
            )
        };
        for taken in ["4242424242424242", "4242-4242-4242-4242", "4000+0566+5566+5556"] {
            let reply = app.submit(&path, &card(taken)).await;
            assert!(matches!(reply.status, 200 | 201), "{:?}", reply.body);
            answers.push(reply);
        }
        // Two that could be somebody's.
        for refused in ["4111111111111111", "5105105105105100", "4111+1111+1111+1111"] {
            let reply = app.submit(&path, &card(refused)).await.expect_error(402, "card_declined");
            assert_eq!(reply.body["error"]["decline_code"], "test_mode_live_card");
            answers.push(reply);
        }
        let bad_luhn = app.submit(&path, &card("4111111111111112")).await;
        answers.push(bad_luhn.expect_error(402, "incorrect_number"));
        let of_wrong_type = json!({ name: { "number": 4_242_424_242_424_242_u64, "exp_month": 1, "exp_year": 2040 },
            "amount": 1000, "currency": "usd" });
        answers.push(app.submit_json(&path, &of_wrong_type).await.expect(400));
    }
    // Numbers where none belong.
    for form in [
        "amount=1000&currency=usd&source=4242424242424242",
        "amount=1000&currency=usd&source=tok_4242424242424242",
        "amount=1000&currency=4242424242424242&source=tok_visa",
        "amount=4242+4242+4242+4242&currency=usd&source=tok_visa",
        "4242424242424242=1",
    ] {
        answers.push(app.submit("/v1/charges", form).await.expect(400));
    }
    answers.push(app.submit("/v1/charges?4242424242424242=1", "").await.expect(400));
    answers.push(app.get("/v1/charges/4242424242424242").send().await.expect(404));
    for reply in &answers {
        assert_no_number(&String::from_utf8_lossy(&reply.bytes));
    }
    let dump = app.database.dump();
    assert!(dump.contains(customer.id().trim_start_matches("cus_").get(..8).unwrap()));
    assert_no_number(&dump);
}

/// Neither the numbers of the test above nor what is left of them without their groups.
#[track_caller]
fn assert_no_number(text: &str) {
    let joined: String = text.chars().filter(|character| !matches!(character, ' ' | '-' | '+')).collect();
    for number in
        ["4242424242424242", "4000056655665556", "4111111111111111", "5105105105105100", "4111111111111112"]
    {
        assert!(!text.contains(number) && !joined.contains(number), "{number} in {text}");
    }
}

#[tokio::test]
async fn tokens_of_another_account_do_not_exist() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let token = app.submit("/v1/tokens", CARD_FORM).await.expect(201);
    let path = format!("/v1/tokens/{}", token.id());
    let get = app.call_as(&other, reqwest::Method::GET, &path).send().await;
    get.expect_error(404, "resource_missing");
    let form = format!("amount=1000&currency=usd&source={}", token.id());
    let charge = app.call_as(&other, reqwest::Method::POST, "/v1/charges").key(&fresh_key()).form(&form);
    let error = charge.send().await.expect_error(400, "resource_missing");
    assert_eq!(error.body["error"]["message"], format!("No such token: '{}'", token.id()));
    assert_eq!(app.read(&path).await["used"], false);
    app.submit("/v1/charges", &form).await.expect(201);
}

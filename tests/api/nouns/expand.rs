//! `expand[]`: ids replaced by their objects, at a cost that does not grow with the rows.

use serde_json::{Value, json};

use crate::support::shapes::{BALANCE_TRANSACTION, CARD, CHARGE, CUSTOMER, REFUND, assert_shape};
use crate::support::{Proxy, TestApp, fresh_key};

/// A customer with a card, its charge, and a part of it refunded.
struct World {
    customer: String,
    charge: String,
    refund: String,
}

impl World {
    async fn make(app: &TestApp) -> Self {
        let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201).id().to_owned();
        let form = format!("amount=1000&currency=usd&customer={customer}");
        let charge = app.submit("/v1/charges", &form).await.expect(201).id().to_owned();
        let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=100")).await.expect(201);
        Self { customer, charge, refund: refund.id().to_owned() }
    }
}

#[tokio::test]
async fn every_expandable_property_is_replaced_by_what_stands_at_its_id() {
    let app = TestApp::spawn();
    let world = World::make(&app).await;
    let charge = app.read(&format!("/v1/charges/{}", world.charge)).await;
    let refund = app.read(&format!("/v1/refunds/{}", world.refund)).await;
    let ledger = |object: &Value| {
        format!("/v1/balance_transactions/{}", object["balance_transaction"].as_str().unwrap())
    };
    for (path, property, target, shape) in [
        (format!("/v1/charges/{}", world.charge), "customer", "/v1/customers/", CUSTOMER),
        (
            format!("/v1/charges/{}", world.charge),
            "balance_transaction",
            "/v1/balance_transactions/",
            BALANCE_TRANSACTION,
        ),
        (format!("/v1/refunds/{}", world.refund), "charge", "/v1/charges/", CHARGE),
        (format!("/v1/refunds/{}", world.refund), "customer", "/v1/customers/", CUSTOMER),
        (
            format!("/v1/refunds/{}", world.refund),
            "balance_transaction",
            "/v1/balance_transactions/",
            BALANCE_TRANSACTION,
        ),
        (ledger(&charge), "source", "/v1/charges/", CHARGE),
        (ledger(&refund), "source", "/v1/refunds/", REFUND),
    ] {
        let plain = app.read(&path).await;
        let mut expected = plain.clone();
        expected[property] = app.read(&format!("{target}{}", plain[property].as_str().unwrap())).await;
        assert_shape(&expected[property], shape);
        for query in ["expand[]=", "expand[0]=", "expand%5B%5D=", "expand%5B0%5D="] {
            assert_eq!(app.read(&format!("{path}?{query}{property}")).await, expected, "{path} {property}");
        }
    }
    let customer = app.read(&format!("/v1/customers/{}?expand[]=default_source", world.customer)).await;
    assert_shape(&customer["default_source"], CARD);
    // What is null has nothing to be replaced by.
    let path = format!("/v1/charges/{}?expand[]=failure_balance_transaction", world.charge);
    assert_eq!(app.read(&path).await, charge);
    let bare = app.charge().await;
    assert_eq!(app.read(&format!("/v1/charges/{bare}?expand[]=customer")).await["customer"], Value::Null);
}

#[tokio::test]
async fn paths_go_four_levels_deep_and_begin_with_data_in_lists() {
    let app = TestApp::spawn();
    let world = World::make(&app).await;
    let (charge, refund) = (format!("/v1/charges/{}", world.charge), format!("/v1/refunds/{}", world.refund));
    let deep =
        app.read(&format!("{charge}?expand[]=balance_transaction.source.customer.default_source")).await;
    let source = &deep["balance_transaction"]["source"];
    assert_eq!(source["id"], world.charge);
    assert_eq!(source["customer"]["default_source"]["last4"], "4242");
    // The charge inside is expanded as its own path says, and the one outside as its own.
    assert_eq!(deep["customer"], world.customer);
    let two =
        app.read(&format!("{refund}?expand[]=charge.customer&expand[]=balance_transaction.source")).await;
    assert_eq!(two["charge"]["customer"]["id"], world.customer);
    assert_eq!(two["balance_transaction"]["source"]["id"], world.refund);
    let list = app.read("/v1/refunds?expand[]=data.charge.customer.default_source").await;
    assert_eq!(list["data"][0]["charge"]["customer"]["default_source"]["brand"], "Visa");
    let mixed = app.read("/v1/balance_transactions?expand[]=data.source.charge").await;
    assert_eq!(mixed["data"][0]["source"]["charge"]["id"], world.charge, "of a refund");
    assert_eq!(mixed["data"][1]["source"]["id"], world.charge, "of a charge, which has no such property");
    for path in [
        format!("{charge}?expand[]=balance_transaction.source.balance_transaction.source.customer"),
        "/v1/refunds?expand[]=data.charge.balance_transaction.source.customer".to_owned(),
    ] {
        let error = app.get(&path).send().await.expect_error(400, "");
        assert!(error.body["error"]["message"].as_str().unwrap().contains("more than 4 levels"));
    }
}

#[tokio::test]
async fn what_cannot_be_expanded_is_refused_by_name_and_a_mutation_leaves_nothing() {
    let app = TestApp::spawn();
    let world = World::make(&app).await;
    let before = app.database.dump();
    let gets = [
        (
            format!("/v1/charges/{}", world.charge),
            vec!["amount", "nope", "customer.nope", "data.customer", ""],
        ),
        (format!("/v1/customers/{}", world.customer), vec!["email", "charges"]),
        (format!("/v1/refunds/{}", world.refund), vec!["reason", "charge.charge"]),
        ("/v1/charges".to_owned(), vec!["customer", "data", "data.nope", "data.data.customer"]),
        ("/v1/balance".to_owned(), vec!["available"]),
        ("/v1/events".to_owned(), vec!["data.data.object"]),
    ];
    for (path, properties) in &gets {
        for property in properties {
            let error = app.get(&format!("{path}?expand[]={property}")).send().await.expect_error(400, "");
            let message = format!("This property cannot be expanded ({property}).");
            assert_eq!(error.body["error"]["message"], message, "{path}");
            assert_eq!(error.param(), "expand[0]");
        }
    }
    let charge = "amount=1000&currency=usd";
    for (path, form) in [
        ("/v1/charges".to_owned(), format!("{charge}&source=tok_visa")),
        ("/v1/charges".to_owned(), format!("{charge}&source=tok_chargeDeclined")),
        ("/v1/customers".to_owned(), "source=tok_visa".to_owned()),
        ("/v1/refunds".to_owned(), format!("charge={}", world.charge)),
        (format!("/v1/charges/{}", world.charge), "description=x".to_owned()),
        (
            "/v1/tokens".to_owned(),
            "card[number]=4242424242424242&card[exp_month]=1&card[exp_year]=40".to_owned(),
        ),
    ] {
        let error = app.submit(&path, &format!("{form}&expand[0]=nope")).await.expect_error(400, "");
        assert_eq!(error.body["error"]["message"], "This property cannot be expanded (nope).", "{path}");
    }
    assert_eq!(app.database.dump(), before);
}

#[tokio::test]
async fn a_mutation_expands_its_answer_and_a_replay_gives_the_same_bytes() {
    let app = TestApp::spawn();
    let world = World::make(&app).await;
    let (key, form) = (fresh_key(), format!("amount=500&currency=usd&customer={}", world.customer));
    let form = format!("{form}&expand[]=customer.default_source&expand[]=balance_transaction");
    let first = app.post("/v1/charges").key(&key).form(&form).send().await.expect(201);
    assert_eq!(first.body["customer"]["default_source"]["last4"], "4242");
    assert_eq!(first.body["balance_transaction"]["amount"], 500);
    let by_json =
        json!({ "amount": 500, "currency": "usd", "customer": world.customer, "expand": ["customer"] });
    assert_eq!(
        app.submit_json("/v1/charges", &by_json).await.expect(201).body["customer"]["name"],
        Value::Null
    );
    app.submit(&format!("/v1/customers/{}", world.customer), "name=Other&source=tok_amex").await.expect(200);
    let replay = app.post("/v1/charges").key(&key).form(&form).send().await.expect(201);
    assert!(replay.is_replay());
    assert_eq!(replay.bytes, first.bytes);
    for (path, form, property) in [
        (format!("/v1/charges/{}", world.charge), "description=x&expand[]=customer", "customer"),
        (format!("/v1/customers/{}", world.customer), "name=x&expand[]=default_source", "default_source"),
        (format!("/v1/refunds/{}", world.refund), "metadata[a]=1&expand[]=charge", "charge"),
    ] {
        assert!(app.submit(&path, form).await.expect(200).body[property].is_object(), "{path}");
    }
    // Events keep ids, whatever the answer was expanded to.
    let events = app.read("/v1/events?type=charge.updated").await;
    assert_eq!(events["data"][0]["data"]["object"]["customer"], world.customer);
}

#[tokio::test]
async fn the_number_of_statements_does_not_grow_with_the_number_of_rows() {
    let plain = TestApp::spawn();
    for _ in 0..12 {
        World::make(&plain).await;
    }
    let proxy = Proxy::new(&plain.database);
    let app = TestApp::with(|builder| {
        builder.database = Some(plain.database.clone());
        builder.url = Some(proxy.url().to_owned());
        builder.pool_size = 1;
    });
    for (query, levels) in [
        ("/v1/charges?", 0),
        ("/v1/charges?expand[]=data.customer", 1),
        ("/v1/charges?expand[]=data.customer.default_source&expand[]=data.balance_transaction.source", 4),
        ("/v1/refunds?expand[]=data.charge.customer.default_source", 3),
        // Half of the sources are charges and half are refunds.
        ("/v1/balance_transactions?expand[]=data.source.charge.customer", 4),
    ] {
        let cost = async |limit: usize| {
            proxy.take();
            let list = app.read(&format!("{query}&limit={limit}")).await;
            assert_eq!(list["data"].as_array().map(Vec::len), Some(limit));
            proxy.take().statements.len()
        };
        // The first request on a connection looks up types.
        cost(2).await;
        let (few, many) = (cost(2).await, cost(12).await);
        assert_eq!(few, many, "{query}");
        // The account, BEGIN, the list and ROLLBACK come to it.
        assert!(many <= levels + 6, "{query} took {many}");
        assert!(many > levels, "{query} took {many}");
    }
}

//! The cost of intents: round trips, and the statements of a list.

use crate::support::Proxy;
use crate::support::intents::PRICE;

#[tokio::test]
async fn a_confirmed_intent_takes_at_most_ten_round_trips() {
    let (app, proxy) = Proxy::with_app(|_| ());
    let customer = app.customer().await;
    let method = app.attached_method("visa", &customer).await;
    let mut costs = Vec::new();
    for form in [
        "payment_method=pm_card_visa".to_owned(),
        "payment_method_data[card][token]=tok_visa".to_owned(),
        "payment_method=pm_card_visa&capture_method=manual".to_owned(),
        format!("customer={customer}&payment_method={method}"),
        format!("customer={customer}&payment_method=pm_card_visa&setup_future_usage=off_session"),
    ] {
        let form = format!("{PRICE}&confirm=true&{form}");
        // The first request on a connection looks up types.
        app.submit("/v1/payment_intents", &form).await.expect(201);
        proxy.take();
        app.submit("/v1/payment_intents", &form).await.expect(201);
        costs.push(proxy.take().round_trips());
    }
    let declined = format!("{PRICE}&confirm=true&payment_method=pm_card_chargeDeclined");
    app.submit("/v1/payment_intents", &declined).await.expect(402);
    proxy.take();
    app.submit("/v1/payment_intents", &declined).await.expect(402);
    costs.push(proxy.take().round_trips());
    let confirm = async |form: &str| {
        let intent = app.intent(form).await;
        let path = format!("/v1/payment_intents/{}/confirm", intent["id"].as_str().unwrap());
        proxy.take();
        app.submit(&path, "").await.expect(200);
        proxy.take().round_trips()
    };
    confirm("payment_method=pm_card_visa").await;
    costs.push(confirm("payment_method=pm_card_visa").await);
    println!("round trips: {costs:?}");
    // A payment method that was made before and is nobody's is locked, and asked whether it has paid.
    let loose = costs.pop().unwrap();
    assert!(loose <= 11, "{loose}");
    assert!(costs.iter().all(|cost| (5..=10).contains(cost)), "{costs:?}");
}

#[tokio::test]
async fn a_list_of_a_hundred_with_two_expansions_takes_four_statements_at_most() {
    let (app, proxy) = Proxy::with_app(|_| ());
    for _ in 0..100 {
        let customer = app.customer().await;
        let form = format!("{PRICE}&customer={customer}&confirm=true&payment_method=pm_card_visa");
        let intent = app.submit("/v1/payment_intents", &form).await.expect(201);
        app.submit("/v1/refunds", &format!("payment_intent={}&amount=1", intent.id())).await.expect(201);
    }
    for (query, objects) in [
        ("payment_intents?expand[]=data.customer&expand[]=data.latest_charge", ["customer", "latest_charge"]),
        (
            "payment_intents?expand[]=data.payment_method&expand[]=data.latest_charge",
            ["payment_method", "latest_charge"],
        ),
        ("charges?expand[]=data.payment_intent&expand[]=data.customer", ["payment_intent", "customer"]),
        (
            "refunds?expand[]=data.payment_intent&expand[]=data.payment_method",
            ["payment_intent", "payment_method"],
        ),
    ] {
        let path = format!("/v1/{query}&limit=100");
        app.read(&path).await;
        proxy.take();
        let list = app.read(&path).await;
        // The statements for the account, BEGIN and ROLLBACK are added to these.
        let statements = proxy.take().statements.len() - 3;
        let rows = list["data"].as_array().unwrap();
        assert_eq!(rows.len(), 100);
        assert!(
            rows.iter().all(|row| objects.iter().all(|object| row[*object]["id"].is_string())),
            "{query}"
        );
        assert!((3..=4).contains(&statements), "{query} took {statements}");
    }
}

//! Requests that race each other for one row: the money stays right, and each loser gets a reason.

use futures_util::future::join_all;
use serde_json::Value;

use crate::support::{HOLD, Reply, TestApp, fresh_key};

/// Sends a request, and retries it with the same key after 409 and 503, as SDKs do.
async fn persist(app: &TestApp, path: &str, form: &str) -> Reply {
    let key = fresh_key();
    for _ in 0..200 {
        let reply = app.post(path).key(&key).form(form).send().await;
        if !matches!(reply.status, 409 | 503) {
            return reply;
        }
        assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"), "{reply:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{path} {form} never got through");
}

/// Checks that the answer is a success or an error with a reason, and no fault of the server.
#[track_caller]
fn assert_clear(reply: &Reply) {
    match reply.status {
        200 | 201 => {}
        400 => assert_eq!(reply.body["error"]["type"], "invalid_request_error"),
        _ => assert_eq!((reply.status, reply.code()), (409, "lock_timeout"), "{reply:?}"),
    }
}

#[tokio::test]
async fn refunds_at_once_never_exceed_the_charge() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    let charge = app.charge().await;
    let form = format!("charge={charge}&amount=300");
    let replies = join_all((0..16).map(|_| app.submit("/v1/refunds", &form))).await;
    replies.iter().for_each(assert_clear);
    let won = replies.iter().filter(|reply| reply.status == 201).count();
    assert!((1..=3).contains(&won), "{won} of 300 out of 1000");
    // A request that only timed out may try again. Then exactly three have won.
    let more = join_all((0..4).map(|_| persist(&app, "/v1/refunds", &form))).await;
    let won = won + more.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(won, 3);
    assert_eq!(app.read(&format!("/v1/charges/{charge}")).await["amount_refunded"], 900);
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 100);
    app.database.assert_clean();
}

#[tokio::test]
async fn one_of_several_captures_at_once_wins() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    for _ in 0..3 {
        let hold = app.submit("/v1/charges", HOLD).await;
        let path = format!("/v1/charges/{}/capture", hold.expect(201).id());
        let amounts = [100, 200, 300, 400, 500, 600, 700, 800];
        let replies = join_all(amounts.map(|amount| {
            let (app, path) = (&app, &path);
            async move { app.submit(path, &format!("amount={amount}")).await }
        }))
        .await;
        replies.iter().for_each(assert_clear);
        let winners: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(winners.len(), 1);
        let captured = app.read(path.trim_end_matches("/capture")).await;
        assert_eq!(captured["amount_captured"], winners[0].body["amount_captured"]);
    }
    assert_eq!(app.database.count("balance_transactions"), 3);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refund_that_races_the_capture_comes_before_or_after_it() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    for _ in 0..6 {
        let hold = app.submit("/v1/charges", HOLD).await;
        let id = hold.expect(201).id().to_owned();
        let (capture, refund) = (format!("/v1/charges/{id}/capture"), format!("charge={id}"));
        let (captured, refunded) =
            tokio::join!(persist(&app, &capture, "amount=400"), app.submit("/v1/refunds", &refund));
        assert_clear(&refunded);
        // Whoever is first decides: the refund releases the hold, or takes what was captured.
        if captured.status != 200 {
            captured.expect_error(400, "charge_expired_for_capture");
            assert_eq!((refunded.status, &refunded.body["balance_transaction"]), (201, &Value::Null));
        }
        let charge = app.read(&format!("/v1/charges/{id}")).await;
        let expected = if refunded.status == 201 { 1000 } else { 600 };
        assert_eq!(charge["amount_refunded"], expected);
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn updates_at_once_lose_no_metadata() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    let customer = app.submit("/v1/customers", "").await.expect(201).id().to_owned();
    let charge = app.charge().await;
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    for path in [
        format!("/v1/customers/{customer}"),
        format!("/v1/charges/{charge}"),
        format!("/v1/refunds/{}", refund.id()),
    ] {
        let updates = (0..20).map(|number| {
            let (app, path) = (&app, &path);
            async move { persist(app, path, &format!("metadata[k{number}]={number}")).await.expect(200) }
        });
        join_all(updates).await;
        let metadata = app.read(&path).await["metadata"].clone();
        assert_eq!(metadata.as_object().unwrap().len(), 20, "{path}: {metadata}");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn a_token_that_two_use_at_once_is_charged_once() {
    let app = TestApp::spawn();
    for _ in 0..5 {
        let token = app
            .submit("/v1/tokens", "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040")
            .await
            .expect(201);
        let form = format!("amount=1000&currency=usd&source={}", token.id());
        let both = join_all((0..2).map(|_| persist(&app, "/v1/charges", &form))).await;
        let mut codes: Vec<(u16, &str)> = both.iter().map(|reply| (reply.status, reply.code())).collect();
        codes.sort_unstable();
        assert_eq!(codes, [(201, ""), (400, "token_already_used")]);
    }
    assert_eq!(app.database.count("charges"), 5);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_hundred_charges_of_one_customer_at_once_all_succeed() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let form = format!("amount=1000&currency=usd&customer={}", customer.id());
    let replies = join_all((0..100).map(async |_| {
        let key = fresh_key();
        loop {
            let reply = app.post("/v1/charges").key(&key).form(&form).send().await;
            // A machine that is too slow for a hundred at once may answer 503. No charge waits for another.
            if reply.status != 503 {
                return reply;
            }
        }
    }))
    .await;
    for reply in replies {
        reply.expect(201);
    }
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 100_000);
    let by_customer = format!("/v1/charges?customer={}&limit=100", customer.id());
    assert_eq!(app.read(&by_customer).await["data"].as_array().map(Vec::len), Some(100));
    app.database.assert_clean();
}

#[tokio::test]
async fn a_customer_that_is_deleted_while_it_is_charged_has_every_charge_that_succeeded() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    let customer = app.submit("/v1/customers", "source=tok_visa").await.expect(201);
    let path = format!("/v1/customers/{}", customer.id());
    let form = format!("amount=1000&currency=usd&customer={}", customer.id());
    let charges = join_all((0..12).map(|_| app.submit("/v1/charges", &form)));
    let deletes = join_all((0..4).map(|_| app.delete(&path).send()));
    let (charges, deletes) = tokio::join!(charges, deletes);
    charges.iter().for_each(assert_clear);
    let deleted = deletes.iter().filter(|reply| reply.status == 200).count();
    assert!(deletes.iter().all(|reply| matches!(reply.status, 200 | 404 | 409)), "{deletes:?}");
    assert!(deleted <= 1);
    let made = charges.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(app.database.count("charges"), i64::try_from(made).unwrap());
    let events = app.read("/v1/events?type=customer.deleted").await;
    assert_eq!(events["data"].as_array().map(Vec::len), Some(deleted));
    let listed: Value = app.read("/v1/customers").await["data"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1 - deleted));
    app.database.assert_clean();
}

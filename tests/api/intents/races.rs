//! Calls that race each other for one intent or one payment method: the result has one legal history, and each loser
//! gets a reason.

use std::sync::Arc;

use futures_util::future::join_all;
use oncepay::idempotency::faults::Point;
use serde_json::Value;

use crate::support::intents::{PRICE, path_of};
use crate::support::{Gate, Random, Reply, TestApp, eventually, fresh_key};

/// Checks that the answer is a success or an error with a reason, and no fault of the server.
#[track_caller]
fn assert_clear(reply: &Reply) {
    match reply.status {
        200 | 201 => {}
        400 => assert_eq!(reply.body["error"]["type"], "invalid_request_error", "{reply:?}"),
        402 => assert_eq!(reply.body["error"]["type"], "card_error", "{reply:?}"),
        _ => assert_eq!((reply.status, reply.code()), (409, "lock_timeout"), "{reply:?}"),
    }
}

#[tokio::test]
async fn calls_on_one_intent_in_any_mix_leave_one_legal_history() {
    let first = TestApp::spawn();
    let second = first.second_instance();
    let mut random = Random::new(Random::seed());
    for round in 0..16 {
        let status = random.pick(&[
            "requires_payment_method",
            "requires_confirmation",
            "requires_action",
            "requires_capture",
            "succeeded",
        ]);
        let intent = first.intent_in(status).await;
        let path = path_of(&intent);
        let refund = format!("payment_intent={}&amount=400", intent["id"].as_str().unwrap());
        let calls = [
            (format!("{path}/confirm"), "payment_method=pm_card_visa"),
            (format!("{path}/confirm"), "payment_method=pm_card_visa&capture_method=manual"),
            (format!("{path}/confirm"), "payment_method=pm_card_chargeDeclined"),
            (format!("{path}/confirm"), ""),
            (format!("{path}/capture"), ""),
            (format!("{path}/capture"), "amount_to_capture=700"),
            (format!("{path}/cancel"), ""),
            (path.clone(), "amount=1500"),
            (path.clone(), "description=x"),
            (path.clone(), "payment_method=pm_card_mastercard"),
            ("/v1/refunds".to_owned(), &*refund),
        ];
        let chosen: Vec<usize> = (0..8).map(|_| random.below(calls.len())).collect();
        let replies = join_all(chosen.iter().enumerate().map(|(number, call)| {
            let app = if number % 2 == 0 { &first } else { &second };
            let (path, form) = &calls[*call];
            app.submit(path, form)
        }))
        .await;
        replies.iter().for_each(assert_clear);
        let of = |wanted: &[usize], status: u16| {
            let pairs = chosen.iter().zip(&replies);
            pairs.filter(|(call, reply)| wanted.contains(call) && reply.status == status).count()
        };
        let now = first.intent_now(&intent).await;
        // At most one capture and one cancellation won, and never both.
        let (captures, cancellations) = (of(&[4, 5], 200), of(&[6], 200));
        assert!(captures + cancellations <= 1, "round {round}: {captures} and {cancellations}");
        assert_eq!(cancellations == 1, now["status"] == "canceled", "round {round}");
        assert!(captures == 0 || now["status"] == "succeeded", "round {round}");
        let charges =
            first.read(&format!("/v1/charges?payment_intent={}", intent["id"].as_str().unwrap())).await;
        let refunded = charges["data"].as_array().unwrap().iter().map(|charge| {
            let released = if charge["captured"] == true {
                charge["amount"].as_i64().unwrap() - charge["amount_captured"].as_i64().unwrap()
            } else {
                charge["amount_refunded"].as_i64().unwrap()
            };
            charge["amount_refunded"].as_i64().unwrap() - released
        });
        assert_eq!(refunded.sum::<i64>(), 400 * i64::try_from(of(&[10], 201)).unwrap(), "round {round}");
        first.database.assert_clean();
    }
}

#[tokio::test]
async fn a_hundred_payments_of_one_customer_at_once_all_succeed() {
    for pool_size in [4, 8] {
        let app = TestApp::with(|builder| builder.pool_size = pool_size);
        let customer = app.customer().await;
        let method = app.attached_method("visa", &customer).await;
        let form = format!(
            "{PRICE}&customer={customer}&payment_method={method}&confirm=true&setup_future_usage=off_session"
        );
        let replies = join_all((0..100).map(async |_| {
            let key = fresh_key();
            for _ in 0..100 {
                let reply = app.post("/v1/payment_intents").key(&key).form(&form).send().await;
                // A machine that is too slow for a hundred at once may answer 503. No payment waits for another.
                if reply.status != 503 {
                    return reply;
                }
            }
            panic!("it never got through");
        }))
        .await;
        for reply in replies {
            assert_eq!(reply.expect(201).body["status"], "succeeded");
        }
        assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 100_000);
        app.database.assert_clean();
    }
}

#[tokio::test]
async fn a_method_that_is_detached_while_it_pays_pays_before_or_is_refused() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    let customer = app.customer().await;
    for _ in 0..8 {
        let method = app.attached_method("visa", &customer).await;
        let form = format!("customer={customer}&payment_method={method}");
        let intents = [app.intent(&form).await, app.intent(&form).await, app.intent(&form).await];
        let confirms = join_all(
            intents.iter().map(async |intent| app.submit(&format!("{}/confirm", path_of(intent)), "").await),
        );
        let detach = format!("/v1/payment_methods/{method}/detach");
        let (confirmed, detached) = tokio::join!(confirms, join_all((0..2).map(|_| app.submit(&detach, ""))));
        for (intent, reply) in intents.iter().zip(confirmed) {
            assert_clear(&reply);
            let expected = if reply.status == 200 { "succeeded" } else { "requires_confirmation" };
            assert_eq!(app.intent_now(intent).await["status"], expected);
            if reply.status == 400 {
                reply.expect_error(400, "payment_method_unexpected_state");
            }
        }
        detached.iter().for_each(assert_clear);
        assert_eq!(detached.iter().filter(|reply| reply.status == 200).count(), 1);
        assert_eq!(app.read(&format!("/v1/payment_methods/{method}")).await["customer"], Value::Null);
    }
    app.database.assert_clean();
}

/// The requests that attach a payment method to a customer.
fn ways(method: &str, customer: &str) -> [(String, String); 3] {
    [
        (format!("/v1/payment_methods/{method}/attach"), format!("customer={customer}")),
        ("/v1/customers".to_owned(), format!("payment_method={method}")),
        (
            "/v1/payment_intents".to_owned(),
            format!(
                "{PRICE}&confirm=true&setup_future_usage=off_session&customer={customer}&payment_method={method}"
            ),
        ),
    ]
}

#[tokio::test]
async fn one_of_several_customers_who_attach_one_method_at_once_gets_it() {
    let app = TestApp::with(|builder| builder.pool_size = 8);
    let (ada, grace) = (app.customer().await, app.customer().await);
    for _ in 0..8 {
        let method = app.method("visa").await;
        let all: Vec<_> = ways(&method, &ada).into_iter().chain(ways(&method, &grace)).collect();
        let before = (app.database.count("customers"), app.database.count("payment_intents"));
        let replies = join_all(all.iter().map(|(path, form)| app.submit(path, form))).await;
        replies.iter().for_each(assert_clear);
        // Two requests may attach it to the same customer; nobody else gets it.
        let attached_to = app.read(&format!("/v1/payment_methods/{method}")).await["customer"].clone();
        for reply in replies.iter().filter(|reply| reply.status < 300) {
            let owner =
                if reply.body["object"] == "customer" { &reply.body["id"] } else { &reply.body["customer"] };
            assert_eq!(*owner, attached_to, "{}", reply.body);
        }
        let attached = app.database.number(&format!(
            "SELECT count(*) AS number FROM events WHERE type = 'payment_method.attached' AND payload -> 'data' -> 'object' ->> 'id' = '{method}'"
        ));
        assert_eq!(attached, 1);
        let made = |noun: &str| {
            replies.iter().filter(|reply| reply.status == 201 && reply.body["object"] == noun).count()
        };
        let after = (app.database.count("customers"), app.database.count("payment_intents"));
        assert_eq!(after.0 - before.0, i64::try_from(made("customer")).unwrap());
        assert_eq!(after.1 - before.1, i64::try_from(made("payment_intent")).unwrap());
    }
    app.database.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_read_a_method_before_another_got_it_does_not_take_it_away() {
    // An attachment stands before its commit while each way is tried: what was read then is out of date.
    let app = TestApp::spawn();
    let (ada, grace) = (app.customer().await, app.customer().await);
    for way in 0..3 {
        let method = app.method("visa").await;
        let key = fresh_key();
        let (gate, faults) = Gate::at(Point::AfterEffect, &key);
        let database = Arc::clone(&app.database);
        let slow = TestApp::with(|builder| {
            builder.database = Some(database);
            builder.faults = faults;
        });
        let attach = format!("/v1/payment_methods/{method}/attach");
        let winner = tokio::spawn(slow.post(&attach).key(&key).form(&format!("customer={ada}")).send());
        eventually("the attachment before its commit", || gate.is_waited_for());
        let (path, form) = ways(&method, &grace)[way].clone();
        let loser = tokio::spawn(app.post(&path).key(&fresh_key()).form(&form).send());
        eventually("the wait for the row", || {
            app.database.number(
                "SELECT count(*) AS number FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock'",
            ) > 0
                || loser.is_finished()
        });
        gate.open();
        winner.await.unwrap().expect(200);
        let loser = loser.await.unwrap();
        assert_clear(&loser);
        assert!(loser.status >= 400, "{path}: {}", loser.body);
        assert_eq!(app.read(&format!("/v1/payment_methods/{method}")).await["customer"], *ada, "{path}");
    }
    assert_eq!(app.database.count("payment_intents"), 0);
    app.database.assert_clean();
}

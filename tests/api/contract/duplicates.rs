//! Duplicates at the same moment: one of them runs, and none waits for another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use oncepay::idempotency::faults::{Faults, Point};
use serde_json::json;

use crate::support::{CHARGE, Gate, TestApp, TestDatabase, eventually, fresh_key, probe_routes, probed};

#[tokio::test]
async fn with_a_pool_of_one_fifty_duplicates_do_not_keep_twenty_others_waiting() {
    let app = TestApp::with(|builder| {
        builder.routes = probe_routes;
        builder.pool_size = 1;
    });
    let (key, name) = (fresh_key(), fresh_key());
    let body = format!("name={name}&milliseconds=150");
    let duplicates = join_all((0..50).map(|_| app.post("/v1/probe").key(&key).form(&body).send()));
    // The wait for the one connection is bounded. On a busy machine some get 503 and try again, as SDKs do.
    let others = join_all((0..20).map(async |_| {
        let key = fresh_key();
        loop {
            let reply = app.post("/v1/charges").key(&key).form(CHARGE).send().await;
            if reply.status != 503 {
                return reply;
            }
        }
    }));
    let begun = Instant::now();
    let (duplicates, others) = tokio::join!(duplicates, others);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for reply in others {
        reply.expect(201);
    }
    // On one connection they come one after the other, so each duplicate finds the answer of the first.
    let refused = duplicates.iter().filter(|reply| reply.status == 503).count();
    assert_eq!(duplicates.iter().filter(|reply| reply.status == 200 && !reply.is_replay()).count(), 1);
    assert_eq!(duplicates.iter().filter(|reply| reply.is_replay()).count(), 49 - refused);
    assert_eq!(probed(&name), 1);
}

#[tokio::test]
async fn fifty_duplicates_on_two_instances_are_one_charge_and_none_of_them_waits() {
    let first = TestApp::with(|builder| builder.routes = probe_routes);
    let database = Arc::clone(&first.database);
    let second = TestApp::with(|builder| {
        builder.routes = probe_routes;
        builder.database = Some(database);
    });
    let (key, name) = (fresh_key(), fresh_key());
    let body = format!("name={name}&milliseconds=3000");
    let replies = join_all((0..50).map(async |number| {
        let app = if number % 2 == 0 { &first } else { &second };
        let begun = Instant::now();
        let reply = app.post("/v1/probe").key(&key).form(&body).send().await;
        (reply, begun.elapsed())
    }))
    .await;
    let (mut ran, mut conflicts) = (0, 0);
    for (reply, elapsed) in replies {
        match reply.status {
            409 => {
                conflicts += 1;
                let reply = reply.expect_error(409, "idempotency_key_in_use");
                assert_eq!(reply.header("Retry-After"), Some("1"));
                assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"));
                assert!(elapsed < Duration::from_millis(2500), "a duplicate waited for {elapsed:?}");
            }
            _ => ran += usize::from(!reply.expect(200).is_replay()),
        }
    }
    assert_eq!((ran, probed(&name)), (1, 1));
    assert!(conflicts > 0);
    let retry = second.post("/v1/probe").key(&key).form(&body).send().await.expect(200);
    assert!(retry.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_paused_between_look_up_and_claim_replays_what_its_twin_committed() {
    let plain = TestApp::spawn();
    let charge = plain.charge().await;
    let (key, body) = (fresh_key(), format!("charge={charge}"));
    let (gate, faults) = Gate::at(Point::AfterLookUp, &key);
    let database = Arc::clone(&plain.database);
    let paused = TestApp::with(|builder| {
        builder.database = Some(database);
        builder.faults = faults;
    });
    let late = tokio::spawn(paused.post("/v1/refunds").key(&key).form(&body).send());
    eventually("the late one", || gate.is_waited_for());
    let twin = plain.post("/v1/refunds").key(&key).form(&body).send().await.expect(201);
    gate.open();
    let late = late.await.unwrap().expect(201);
    assert!(late.is_replay());
    assert_eq!(late.bytes, twin.bytes);
    assert_eq!(plain.database.count("refunds"), 1);
    plain.database.assert_clean();
}

#[tokio::test]
async fn an_expired_record_that_is_claimed_twice_at_once_runs_once_more() {
    let first = TestApp::spawn();
    let second = first.second_instance();
    for _ in 0..10 {
        let key = fresh_key();
        let before = first.database.count("charges");
        first.post("/v1/charges").key(&key).form(CHARGE).send().await.expect(201);
        first.state.clock.advance(Duration::from_secs(24 * 3600 + 1));
        second.state.clock.advance(Duration::from_secs(24 * 3600 + 1));
        let replies = join_all((0..8).map(|number| {
            let app = if number % 2 == 0 { &first } else { &second };
            app.post("/v1/charges").key(&key).form(CHARGE).send()
        }))
        .await;
        let ran = replies.iter().filter(|reply| reply.status == 201 && !reply.is_replay()).count();
        assert_eq!(ran, 1);
        for reply in replies {
            assert!(reply.is_replay() || reply.status == 201 || reply.code() == "idempotency_key_in_use");
        }
        assert_eq!(first.database.count("charges"), before + 2);
    }
}

#[tokio::test]
async fn a_record_that_appears_in_spite_of_the_lock_wins_and_is_replayed() {
    let database = Arc::new(TestDatabase::new());
    let faults = {
        let database = Arc::clone(&database);
        Faults::new(move |point, call| {
            let Some(claim) = call.claim.as_ref().filter(|_| point == Point::AfterEffect) else { return };
            let fingerprint: String =
                claim.fingerprint.current().iter().map(|byte| format!("{byte:02x}")).collect();
            database.execute(&format!(
                "INSERT INTO idempotency_records SELECT id, 'api', '{}', 1, '\\x{fingerprint}', \
                 '{}', 200, 'application/json', '', false, '{{\"won\":true}}', now(), now() + interval '1 day' \
                 FROM accounts",
                claim.key,
                uuid::Uuid::now_v7()
            ));
        })
    };
    let app = TestApp::with({
        let database = Arc::clone(&database);
        |builder| {
            builder.database = Some(database);
            builder.faults = faults;
        }
    });
    let reply = app.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(200);
    assert!(reply.is_replay());
    assert_eq!(reply.body, json!({ "won": true }));
    assert_eq!(database.count("charges"), 0);
    assert_eq!(database.count("events"), 0);
}

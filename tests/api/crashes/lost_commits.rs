//! Connections that break at COMMIT: the outcome is unknown to the first answer, and known to the retry.

use std::sync::{Arc, Mutex};

use oncepay::idempotency::faults::{Faults, Point};

use crate::support::{CHARGE, Cut, Proxy, TestApp, TestDatabase, fresh_key};

#[tokio::test]
async fn a_commit_whose_connection_is_cut_answers_503_and_the_retry_finds_the_outcome() {
    // The server process of the connection is terminated right before its COMMIT is sent.
    let database = Arc::new(TestDatabase::new());
    let cut_next = Arc::new(Mutex::new(false));
    let faults = {
        let (database, cut_next) = (Arc::clone(&database), Arc::clone(&cut_next));
        Faults::new(move |point, _| {
            if point == Point::BeforeCommit && std::mem::take(&mut *cut_next.lock().unwrap()) {
                let killed = database.number(
                    "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 5000)) AS number FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'",
                );
                assert_eq!(killed, 1);
            }
        })
    };
    let app = TestApp::with({
        let database = Arc::clone(&database);
        |builder| {
            builder.database = Some(database);
            builder.faults = faults;
            builder.key_is_required = false;
        }
    });
    let key = fresh_key();
    *cut_next.lock().unwrap() = true;
    let keyed = app.post("/v1/charges").key(&key).form(CHARGE).send().await.expect_error(503, "");
    assert_eq!(keyed.header("Stripe-Should-Retry"), Some("true"));
    let retry = app.post("/v1/charges").key(&key).form(CHARGE).send().await.expect(201);
    assert!(!retry.is_replay());
    *cut_next.lock().unwrap() = true;
    let unkeyed = app.post("/v1/charges").form(CHARGE).send().await.expect_error(503, "");
    assert_eq!(unkeyed.header("Stripe-Should-Retry"), Some("false"));
    assert_eq!(app.database.count("charges"), 1);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_lost_commit_did_nothing_and_a_commit_with_a_lost_answer_is_replayed() {
    let (app, proxy) = Proxy::with_app(|_| ());
    for (cut, is_done) in [(Cut::Before, false), (Cut::After, true)] {
        let key = fresh_key();
        let charge = || app.post("/v1/charges").key(&key).form(CHARGE).send();
        proxy.cut_next("COMMIT", cut);
        let reply = charge().await.expect_error(503, "");
        assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"), "{cut:?}");
        let retry = charge().await.expect(201);
        assert_eq!(retry.is_replay(), is_done, "{cut:?}");
    }
    assert_eq!(app.database.count("charges"), 2);
    app.database.assert_clean();
}

//! What the whole design stands or falls with: crashes, duplicates and vanished clients around one charge.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use oncepay::faults::{Faults, KILL_AT, Point};
use serde_json::json;

use crate::support::bytes::{Bytes, FORM};
use crate::support::{
    CHARGE, Gate, Program, Raw, TestApp, TestDatabase, eventually, fresh_key, probe_routes, probed,
};

#[tokio::test]
async fn a_client_that_resets_the_connection_changes_nothing_and_its_retry_replays() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let (key, name) = (fresh_key(), fresh_key());
    let body = format!("name={name}&milliseconds=300");
    let mut connection = Raw::connect(app.address);
    connection.send(&Bytes::post(&app, FORM, &body).target(b"/v1/probe").key(&key).write());
    eventually("the job", || probed(&name) == 1);
    reset(connection);
    eventually("the commit", || app.database.count("idempotency_records") == 1);
    // Nobody was there to be answered, and it is counted all the same.
    let figures = String::from_utf8(app.get("/metrics").send().await.bytes).unwrap();
    assert!(figures.contains("oncepay_idempotency_total{outcome=\"executed\"} 1"), "{figures}");
    let retry = app.post("/v1/probe").key(&key).form(&body).send().await.expect(200);
    assert!(retry.is_replay());
    assert_eq!(probed(&name), 1);
}

/// Closes with RST: what was sent and not yet read is thrown away.
fn reset(connection: Raw) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap();
    // SAFETY: the descriptor is open, and the value is of the type and size that SO_LINGER takes.
    let result = unsafe {
        libc::setsockopt(
            connection.sender().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        )
    };
    assert_eq!(result, 0);
    drop(connection);
}

#[tokio::test]
async fn a_panic_rolls_back_and_the_key_is_as_good_as_new() {
    let app = TestApp::with(|builder| {
        builder.routes = probe_routes;
        builder.pool_size = 1;
    });
    let (key, name) = (fresh_key(), fresh_key());
    for attempt in 1..=3 {
        let call = app.post("/v1/probe").key(&key).form(&format!("name={name}&fail=panic"));
        let reply = call.send().await.expect_error(500, "");
        assert!(!reply.is_replay());
        assert!(!String::from_utf8_lossy(&reply.bytes).contains("told to"));
        assert_eq!(probed(&name), attempt);
    }
    assert_eq!(app.database.count("accounts"), 1);
    app.post("/v1/probe").key(&key).form(&format!("name={name}")).send().await.expect(200);
    assert_eq!(app.database.count("accounts"), 2);
}

#[tokio::test]
async fn killed_between_any_two_steps_a_charge_is_whole_or_not_there() {
    let database = Arc::new(TestDatabase::new());
    for (number, point) in Point::ALL.into_iter().enumerate() {
        let key = fresh_key();
        let program = Program::start(&database, &[(KILL_AT, point.as_str())]);
        let dying = program.post("/v1/charges").key(&key).form(CHARGE).try_send().await;
        assert!(dying.is_err(), "{point:?}: it answered {dying:?}");
        drop(program);

        let committed = point == Point::AfterCommit;
        let before = i64::try_from(number).unwrap();
        eventually("the end of the dead connection", || {
            database.number("SELECT count(*) AS number FROM pg_locks WHERE locktype = 'advisory'") == 0
        });
        assert_eq!(database.count("charges"), before + i64::from(committed), "{point:?}");
        assert_eq!(database.count("idempotency_records"), database.count("charges"), "{point:?}");
        database.assert_clean();

        let program = Program::start(&database, &[]);
        let retry = program.post("/v1/charges").key(&key).form(CHARGE).send().await.expect(201);
        assert_eq!(retry.is_replay(), committed, "{point:?}");
        assert_eq!(database.count("charges"), before + 1, "{point:?}");
        database.assert_clean();
    }
}

#[tokio::test]
async fn with_a_pool_of_one_fifty_duplicates_do_not_keep_twenty_others_waiting() {
    let app = TestApp::with(|builder| {
        builder.routes = probe_routes;
        builder.pool_size = 1;
    });
    let (key, name) = (fresh_key(), fresh_key());
    let body = format!("name={name}&milliseconds=150");
    let duplicates = join_all((0..50).map(|_| app.post("/v1/probe").key(&key).form(&body).send()));
    // The wait for the one connection is bounded: on a busy machine some are told to come again, as SDKs do.
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
async fn when_the_connection_of_a_commit_is_cut_the_outcome_is_unknown_and_the_retry_knows_it() {
    // The server process of the connection is ended right before its COMMIT is sent.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_table_holds_nobody_for_long() {
    use diesel::connection::{Connection, SimpleConnection};
    let app = TestApp::spawn();
    let mut other = app.database.connect();
    other
        .transaction(|other| {
            other.batch_execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")?;
            let begun = Instant::now();
            let replies = tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(join_all(
                    (0..8).map(|_| app.post("/v1/charges").key(&fresh_key()).form(CHARGE).send()),
                ))
            });
            for reply in replies {
                assert!(reply.status == 409 || reply.status == 503, "{reply:?}");
                assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"));
            }
            assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
            diesel::QueryResult::Ok(())
        })
        .unwrap();
    app.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
}

//! Crashes around one request: a vanished client, a panic and kill -9 between any two of its steps.

use std::sync::Arc;

use oncepay::idempotency::faults::{KILL_AT, Point};

use crate::support::bytes::{Bytes, FORM};
use crate::support::{
    CHARGE, Program, Raw, TestApp, TestDatabase, eventually, fresh_key, probe_routes, probed,
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
    // No client was left to answer, and the request is counted all the same.
    let figures = String::from_utf8(app.get("/metrics").send().await.bytes).unwrap();
    assert!(figures.contains("oncepay_idempotency_total{outcome=\"executed\"} 1"), "{figures}");
    let retry = app.post("/v1/probe").key(&key).form(&body).send().await.expect(200);
    assert!(retry.is_replay());
    assert_eq!(probed(&name), 1);
}

/// Closes with RST, which discards the bytes that were sent and not yet read.
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
async fn a_panic_rolls_back_and_the_key_can_be_used_again() {
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

//! The sweeper deletes expired records, and never blocks a request.

use std::time::Duration;

use chrono::Utc;
use diesel::connection::SimpleConnection;
use oncepay::app::sweeper::sweep;
use oncepay::idempotency::sweep::batch;

use crate::support::{CHARGE, TestApp, fresh_key};

#[tokio::test]
async fn only_what_has_expired_is_swept_in_batches_and_around_what_is_locked() {
    let app = TestApp::spawn();
    let connection = &mut app.database.connect();
    let charge = |key: &str| app.post("/v1/charges").key(key).form(CHARGE).send();
    let keys: Vec<String> = (0..5).map(|_| fresh_key()).collect();
    for key in &keys {
        charge(key).await.expect(201);
    }
    assert_eq!(batch(connection, Utc::now(), 100), Ok(0));
    app.state.clock.advance(Duration::from_secs(12 * 3600));
    let young = fresh_key();
    let of_the_young = charge(&young).await.expect(201);
    app.state.clock.advance(Duration::from_secs(12 * 3600 + 60));
    let now = app.state.clock.now();
    let effects = || app.database.contents().into_iter().filter(|(table, _)| table != "idempotency_records");
    let before: Vec<_> = effects().collect();

    // The sweeper skips a row that a request holds, and does not wait for it.
    let mut holder = app.database.connect();
    let held = format!("BEGIN; SELECT FROM idempotency_records WHERE key = '{}' FOR UPDATE", keys[0]);
    holder.batch_execute(&held).unwrap();
    connection.batch_execute("SET lock_timeout = '100ms'").unwrap();
    assert_eq!(batch(connection, now, 3), Ok(3));
    assert_eq!(app.database.count("idempotency_records"), 3);
    assert_eq!(batch(connection, now, 3), Ok(1));
    assert_eq!(batch(connection, now, 3), Ok(0));
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(batch(connection, now, 3), Ok(1));
    assert_eq!(batch(connection, now, 3), Ok(0));

    // Only the live record is left, and it replays. The effects of all requests are untouched.
    let replay = charge(&young).await.expect(201);
    assert!(replay.is_replay() && replay.bytes == of_the_young.bytes);
    assert_eq!(effects().collect::<Vec<_>>(), before);
    assert_eq!(app.database.count("idempotency_records"), 1);
    app.database.assert_clean();
    // A swept key runs again, like a key that has expired and was not swept.
    for key in &keys {
        assert!(!charge(key).await.expect(201).is_replay());
        assert!(charge(key).await.expect(201).is_replay());
    }
    assert_eq!(app.database.count("charges"), 11);
    app.database.assert_clean();
}

#[tokio::test]
async fn two_sweepers_at_once_share_the_work_and_requests_go_on() {
    let app = TestApp::spawn();
    let first = app.post("/v1/charges").key("first").form(CHARGE).send().await.expect(201);
    app.database.execute(
        "INSERT INTO idempotency_records SELECT account_id, source, 'expired ' || number, fingerprint_version, fingerprint, \
         request_id, status, content_type, location, sealed, body, created_at - interval '2 days', created_at - interval '1 day' \
         FROM idempotency_records, generate_series(1, 1000) AS number",
    );
    let now = app.state.clock.now();
    let sweepers: Vec<_> = (0..2)
        .map(|_| {
            let mut connection = app.database.connect();
            std::thread::spawn(move || {
                let mut swept = 0;
                while let Ok(number @ 1..) = batch(&mut connection, now, 50) {
                    swept += number;
                }
                swept
            })
        })
        .collect();
    for _ in 0..20 {
        let replay = app.post("/v1/charges").key("first").form(CHARGE).send().await.expect(201);
        assert!(replay.is_replay() && replay.bytes == first.bytes);
        app.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
    }
    let swept: usize = sweepers.into_iter().map(|sweeper| sweeper.join().unwrap()).sum();
    assert_eq!(swept, 1000);
    assert_eq!(app.database.count("idempotency_records"), 21);
    app.database.assert_clean();
}

#[tokio::test]
async fn the_sweeper_runs_by_itself() {
    use crate::support::eventually;
    let app = TestApp::spawn();
    app.post("/v1/charges").key("old").form(CHARGE).send().await.expect(201);
    app.state.clock.advance(Duration::from_secs(24 * 3600 + 1));
    app.post("/v1/charges").key("new").form(CHARGE).send().await.expect(201);
    let sweeper = tokio::spawn(oncepay::app::sweeper::run(app.state.clone()));
    let left = "SELECT count(*) AS number FROM idempotency_records WHERE key = 'old'";
    let database = app.database.clone();
    tokio::task::spawn_blocking(move || eventually("the sweep", || database.number(left) == 0))
        .await
        .unwrap();
    sweeper.abort();
    assert_eq!(app.database.count("idempotency_records"), 1);
    app.database.assert_clean();
}

#[tokio::test]
async fn the_sweeper_cancels_deliveries_to_deleted_and_disabled_endpoints_and_no_others() {
    let app = TestApp::spawn();
    let endpoint = async || {
        let form = "url=http://127.0.0.1:9/hook&enabled_events[]=customer.created";
        app.submit("/v1/webhook_endpoints", form).await.expect(201).id().replacen("we_", "", 1)
    };
    let (deleted, disabled, alive) = (endpoint().await, endpoint().await, endpoint().await);
    app.submit("/v1/customers", "").await.expect(201);
    let of = |endpoint: &str| {
        let status = "SELECT status AS text FROM webhook_deliveries WHERE endpoint_id = ";
        app.database.text(&format!("{status}'{endpoint}'"))
    };
    assert_eq!(of(&deleted), "pending");
    // This is what remains if both changes commit just after the event read the endpoints. A change by the API alone
    // would have canceled the pending deliveries itself.
    app.database.execute(&format!("UPDATE webhook_endpoints SET deleted_at = now() WHERE id = '{deleted}'"));
    app.database.execute(&format!("UPDATE webhook_endpoints SET disabled = true WHERE id = '{disabled}'"));
    sweep(&app.state).await.expect("the sweeper works");
    assert_eq!([of(&deleted), of(&disabled), of(&alive)], ["canceled", "canceled", "pending"]);
    app.database.assert_clean();
}

//! A lock that somebody holds by hand: requests wait for it within their bounds, and then say so.

use std::time::{Duration, Instant};

use diesel::connection::{Connection, SimpleConnection};
use futures_util::future::join_all;

use crate::support::{CHARGE, TestApp, fresh_key};

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_table_holds_nobody_for_long() {
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

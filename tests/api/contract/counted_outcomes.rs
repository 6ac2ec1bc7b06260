//! The counters of requests that write: one counter for each outcome.

use std::collections::BTreeMap;
use std::time::Duration;

use oncepay::idempotency::Outcome;
use oncepay::idempotency::faults::Point;

use crate::support::{CHARGE, Gate, Reply, TestApp, eventually, fresh_key};

/// The counters, by outcome.
async fn counters(app: &TestApp) -> BTreeMap<String, u64> {
    let text = String::from_utf8(app.get("/metrics").send().await.expect(200).bytes).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("oncepay_idempotency_total{outcome=\""));
    let counters = lines.map(|line| {
        let (outcome, number) = line.split_once("\"} ").unwrap();
        (outcome.to_owned(), number.parse().unwrap())
    });
    counters.collect()
}

/// Runs a request, and checks that it was counted once as `outcome`, or not at all for `None`.
async fn counted(app: &TestApp, outcome: Option<Outcome>, request: impl Future<Output = Reply>) -> Reply {
    let mut expected = counters(app).await;
    let reply = request.await;
    if let Some(outcome) = outcome {
        *expected.get_mut(outcome.as_str()).unwrap() += 1;
    }
    assert_eq!(counters(app).await, expected, "{outcome:?}: {reply:?}");
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn each_outcome_is_counted_apart_and_each_request_once() {
    use Outcome::{Conflict, Executed, Expired, Invalid, Mismatch, Missing, Replayed, RolledBack};
    let (key, running) = (fresh_key(), fresh_key());
    let (gate, faults) = Gate::at(Point::AfterClaim, &running);
    let app = TestApp::with(|builder| builder.faults = faults);
    let zero: BTreeMap<String, u64> = Outcome::ALL.map(|outcome| (outcome.as_str().to_owned(), 0)).into();
    assert_eq!((counters(&app).await, zero.len()), (zero.clone(), 8));
    let call = |key: &str, body: &str| app.post("/v1/charges").key(key).form(body).send();

    counted(&app, Some(Executed), call(&key, CHARGE)).await.expect(201);
    counted(&app, Some(Replayed), call(&key, CHARGE)).await.expect(201);
    counted(&app, Some(Mismatch), call(&key, "amount=1")).await.expect_error(422, "idempotency_key_reused");
    counted(&app, Some(Missing), app.post("/v1/charges").form(CHARGE).send()).await.expect(400);
    counted(&app, Some(Invalid), call("a b", CHARGE)).await.expect(400);
    counted(&app, Some(RolledBack), call(&fresh_key(), "amount=1")).await.expect(400);
    app.state.clock.advance(Duration::from_secs(24 * 3600 + 1));
    counted(&app, Some(Expired), call(&key, CHARGE)).await.expect(201);
    counted(&app, Some(Replayed), call(&key, CHARGE)).await.expect(201);

    let first = tokio::spawn(call(&running, CHARGE));
    eventually("the running request", || gate.is_waited_for());
    counted(&app, Some(Conflict), call(&running, CHARGE)).await.expect(409);
    counted(&app, Some(Executed), async {
        gate.open();
        first.await.unwrap()
    })
    .await
    .expect(201);

    // A decline is an answer like any other.
    let declined = "amount=1000&currency=usd&source=tok_visa_chargeDeclined";
    let key = fresh_key();
    counted(&app, Some(Executed), call(&key, declined)).await.expect(402);
    counted(&app, Some(Replayed), call(&key, declined)).await.expect(402);
    // A request that only reads is not counted, and neither is one without a route.
    counted(&app, None, app.get("/v1/charges").key("a b").send()).await.expect(200);
    counted(&app, None, app.post("/v1/nope").send()).await.expect(404);

    let total: u64 = counters(&app).await.values().sum();
    assert_eq!(total, 12);
    let text = String::from_utf8(app.get("/metrics").send().await.expect(200).bytes).unwrap();
    for line in [
        r#"oncepay_requests_total{method="POST",route="/v1/charges",status="201"} 5"#,
        r#"oncepay_requests_total{method="POST",route="/v1/charges",status="409"} 1"#,
        r#"oncepay_requests_total{method="POST",route="unknown",status="404"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
}

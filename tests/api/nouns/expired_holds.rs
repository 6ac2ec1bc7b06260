//! Holds that nobody captures: the sweeper releases them after seven days, and not before.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use oncepay::app::sweeper::sweep;
use serde_json::{Value, json};

use crate::support::TestApp;
use crate::support::intents::{PRICE, path_of};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Sweeps until nothing is left.
async fn sweep_all(app: &TestApp) {
    for _ in 0..200 {
        if !sweep(&app.state).await.expect("the sweeper works") {
            return;
        }
    }
    panic!("the sweeper finds no end");
}

/// Makes a hold of 10.00 usd, without an intent.
async fn direct_hold(app: &TestApp) -> String {
    let form = format!("{PRICE}&source=tok_visa&capture=false");
    app.submit("/v1/charges", &form).await.expect(201).id().to_owned()
}

/// The types of all events about expiry, with what they are about.
async fn expiries(app: &TestApp) -> Vec<(String, Value)> {
    let events =
        app.read("/v1/events?limit=100&types[]=charge.expired&types[]=payment_intent.canceled").await;
    let events = events["data"].as_array().unwrap().iter().rev();
    events
        .map(|event| (event["type"].as_str().unwrap().to_owned(), event["data"]["object"].clone()))
        .collect()
}

#[tokio::test]
async fn a_hold_is_released_after_seven_days_and_a_captured_charge_stays() {
    let app = TestApp::spawn();
    let held = app.intent_in("requires_capture").await;
    let direct = direct_hold(&app).await;
    let captured = app.intent_in("requires_capture").await;
    app.submit(&format!("{}/capture", path_of(&captured)), "amount_to_capture=600").await.expect(200);
    let captured_directly = direct_hold(&app).await;
    app.submit(&format!("/v1/charges/{captured_directly}/capture"), "").await.expect(200);
    let mut others = vec![app.intent_now(&captured).await];
    for status in
        ["requires_payment_method", "requires_confirmation", "requires_action", "succeeded", "canceled"]
    {
        others.push(app.intent_in(status).await);
    }

    app.state.clock.advance(7 * DAY - Duration::from_secs(60));
    sweep_all(&app).await;
    assert_eq!(app.intent_now(&held).await, held);
    assert_eq!(app.read(&format!("/v1/charges/{direct}")).await["refunded"], false);

    app.state.clock.advance(Duration::from_secs(61));
    // The hold is over, swept or not.
    let late = app.submit(&format!("{}/capture", path_of(&held)), "").await;
    late.expect_error(400, "charge_expired_for_capture");
    let late = format!("/v1/charges/{direct}/capture");
    app.submit(&late, "").await.expect_error(400, "charge_expired_for_capture");
    sweep_all(&app).await;
    let now = app.intent_now(&held).await;
    assert_eq!((&now["status"], &now["cancellation_reason"]), (&json!("canceled"), &json!("automatic")));
    assert_eq!((&now["amount_capturable"], &now["amount_received"]), (&json!(0), &json!(0)));
    assert!(now["canceled_at"].as_i64() > held["created"].as_i64().map(|time| time + 7 * 24 * 3600 - 1));
    for charge in [held["latest_charge"].as_str().unwrap(), &direct] {
        let charge = app.read(&format!("/v1/charges/{charge}")).await;
        assert_eq!((&charge["amount_refunded"], &charge["refunded"]), (&json!(1000), &json!(true)));
        assert_eq!((&charge["captured"], &charge["amount_captured"]), (&json!(false), &json!(0)));
    }
    let expired = expiries(&app).await;
    let mut types: Vec<(&str, &str)> =
        expired.iter().map(|(event, object)| (event.as_str(), object["id"].as_str().unwrap())).collect();
    let canceled = types
        .iter()
        .position(|(event, id)| *event == "payment_intent.canceled" && *id == held["id"])
        .unwrap();
    assert_eq!(types[canceled - 1], ("charge.expired", held["latest_charge"].as_str().unwrap()));
    assert_eq!(expired[canceled].1, now);
    types.retain(|(event, _)| *event == "charge.expired");
    assert_eq!(types.len(), 2, "{types:?}");
    for other in others {
        assert_eq!(app.intent_now(&other).await, other);
    }
    assert_eq!(app.read(&format!("/v1/charges/{captured_directly}")).await["amount_refunded"], 0);
    // Another sweep finds nothing.
    let before = app.database.dump();
    sweep_all(&app).await;
    assert_eq!(app.database.dump(), before);
    app.submit(&format!("{}/capture", path_of(&held)), "")
        .await
        .expect_error(400, "payment_intent_unexpected_state");
    app.submit(&late, "").await.expect_error(400, "charge_expired_for_capture");
    assert_eq!(app.read("/v1/balance").await["available"][0]["amount"], 600 + 1000 + 1000);
    app.database.assert_clean();
}

#[tokio::test]
async fn two_sweepers_at_once_release_each_hold_once() {
    let first = TestApp::spawn();
    let second = first.second_instance();
    for _ in 0..6 {
        first.intent_in("requires_capture").await;
        direct_hold(&first).await;
    }
    for app in [&first, &second] {
        app.state.clock.advance(8 * DAY);
    }
    join_all([&first, &second, &first, &second].map(sweep_all)).await;
    let mut times = BTreeMap::new();
    for (event, object) in expiries(&first).await {
        *times.entry((event, object["id"].to_string())).or_insert(0) += 1;
    }
    assert_eq!(times.len(), 6 + 6 + 6, "{times:?}");
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    let left = "SELECT count(*) AS number FROM charges WHERE status = 'authorised'";
    assert_eq!(first.database.number(left), 0);
    first.database.assert_clean();
}

#[tokio::test]
async fn a_capture_that_races_the_sweeper_wins_or_finds_the_hold_released() {
    // The clocks of two machines differ: one still takes captures while the other already releases.
    let app = TestApp::spawn();
    let sweeping = app.second_instance();
    sweeping.state.clock.advance(7 * DAY + Duration::from_secs(3600));
    let mut won = 0;
    for round in 0..12 {
        let intent = app.intent_in("requires_capture").await;
        let charge = direct_hold(&app).await;
        let captures = async {
            // The start varies, so that each of the two is first sometimes.
            tokio::time::sleep(Duration::from_millis(round * 2)).await;
            let (of_intent, of_charge) =
                (format!("{}/capture", path_of(&intent)), format!("/v1/charges/{charge}/capture"));
            tokio::join!(app.submit(&of_intent, ""), app.submit(&of_charge, ""))
        };
        let ((by_intent, directly), ()) = tokio::join!(captures, sweep_all(&sweeping));
        sweep_all(&sweeping).await;
        let intent = app.intent_now(&intent).await;
        match by_intent.status {
            200 => assert_eq!(intent["status"], "succeeded"),
            409 => assert_eq!(by_intent.code(), "lock_timeout"),
            _ => {
                by_intent.expect_error(400, "payment_intent_unexpected_state");
                assert_eq!(intent["cancellation_reason"], "automatic");
            }
        }
        won += i64::from(intent["status"] == "succeeded");
        let charge = app.read(&format!("/v1/charges/{charge}")).await;
        match directly.status {
            200 => assert_eq!(charge["amount_captured"], 1000),
            409 => assert_eq!(directly.code(), "lock_timeout"),
            _ => {
                directly.expect_error(400, "charge_expired_for_capture");
                assert_eq!(charge["refunded"], true);
            }
        }
        won += i64::from(charge["captured"] == true);
    }
    let expired = expiries(&app).await.iter().filter(|(event, _)| event == "charge.expired").count();
    assert_eq!(i64::try_from(expired).unwrap(), 24 - won);
    app.database.assert_clean();
}

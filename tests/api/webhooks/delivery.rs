//! Deliveries: what a receiver gets, when a delivery is repeated, and what the API shows of it afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oncepay::app::sweeper::seal_anew;
use serde_json::{Value, json};

use crate::support::{
    Behaviour, Process, Received, Receiver, SECRET_KEY, TestApp, Worker, eventually, fresh_key, sdk,
};

/// The id of the newest event of a type.
async fn event(app: &TestApp, event_type: &str) -> String {
    let list = app.read(&format!("/v1/events?limit=1&type={event_type}")).await;
    list["data"][0]["id"].as_str().expect("there is one").to_owned()
}

/// The deliveries of an event, by endpoint.
async fn deliveries(app: &TestApp, event: &str) -> Vec<Value> {
    app.read(&format!("/v1/events/{event}/deliveries")).await["data"].as_array().unwrap().clone()
}

/// Waits until no delivery of the event is pending, and returns the one there is.
async fn settled(app: &TestApp, event: &str) -> Value {
    let begun = Instant::now();
    loop {
        let all = deliveries(app, event).await;
        if all.iter().all(|delivery| delivery["status"] != "pending") {
            assert_eq!(all.len(), 1, "{all:?}");
            return all[0].clone();
        }
        assert!(begun.elapsed() < Duration::from_secs(25), "not settled: {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The statuses of the attempts of a delivery.
fn met(delivery: &Value) -> Vec<Value> {
    delivery["attempts"].as_array().unwrap().iter().map(|attempt| attempt["status_code"].clone()).collect()
}

/// Checks that the official Python SDK takes the event with this secret, and with no other secret and no other body.
async fn assert_the_sdk_takes(received: &Received, secret: &str) {
    let mut python = sdk::python();
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/construct_event.py"));
    python.env("SECRET", secret).env("SIGNATURE", received.signature());
    python.env("BODY", String::from_utf8(received.body.clone()).unwrap());
    assert_eq!(sdk::finish(python).await.trim(), received.event_id());
}

#[tokio::test]
async fn an_event_arrives_signed_and_as_it_is_stored_and_its_deliveries_can_be_seen() {
    let app = TestApp::spawn();
    let receiver = Receiver::good();
    let (endpoint, secret) = receiver.subscribe(&app, "charge.succeeded").await;
    let (_, others) = Receiver::good().subscribe(&app, "customer.created").await;
    let _worker = Worker::start(&app);
    app.charge().await;
    let id = event(&app, "charge.succeeded").await;
    let delivery = settled(&app, &id).await;
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    let sent = &received[0];
    let stored = app.database.text("SELECT payload::text AS text FROM events");
    assert_eq!(String::from_utf8_lossy(&sent.body), stored);
    assert_eq!((sent.event_id(), &sent.json()["pending_webhooks"]), (id.clone(), &json!(1)));
    assert!(sent.header("Content-Type").starts_with("application/json"));
    assert_eq!(sent.header("User-Agent"), "oncepay");
    sent.assert_signed(&[&secret]);
    assert_ne!(sent.signatures()[0], sent.signature_of(&others));
    assert!(app.state.clock.now().timestamp().abs_diff(sent.signed_at()) < 30);
    assert_the_sdk_takes(sent, &secret).await;

    assert_eq!((&delivery["object"], &delivery["event"]), (&json!("webhook_delivery"), &json!(id)));
    assert_eq!((&delivery["webhook_endpoint"], &delivery["livemode"]), (&json!(endpoint), &json!(false)));
    assert_eq!((&delivery["status"], &delivery["next_attempt"]), (&json!("delivered"), &Value::Null));
    let attempt = &delivery["attempts"][0];
    assert_eq!((&attempt["status_code"], &attempt["error"]), (&json!(200), &Value::Null));
    assert_eq!(attempt["answer"], "answer");
    assert!(attempt["latency_ms"].as_i64().unwrap() < 10_000);
    assert!(app.state.clock.now().timestamp() - attempt["created"].as_i64().unwrap() < 30);
    let shown = app.read(&format!("/v1/events/{id}")).await;
    assert_eq!(shown["pending_webhooks"], 0);
    // Apart from that, the API shows the event as it was sent.
    let mut expected = sent.json();
    expected["pending_webhooks"] = json!(0);
    assert_eq!(shown, expected);
    // A replay writes no event, so the next delivery is that of the next event.
    app.charge().await;
    eventually("the next event", || receiver.count() == 2);
    let other = app.database.other_account();
    let path = format!("/v1/events/{id}/deliveries");
    app.call_as(&other, reqwest::Method::GET, &path).send().await.expect_error(404, "resource_missing");
    app.database.assert_clean();
}

#[tokio::test]
async fn an_event_without_a_2xx_answer_is_sent_again_soon_with_the_same_bytes_and_a_fresh_signature() {
    let app = TestApp::spawn();
    let elsewhere = Receiver::good();
    let slow = Behaviour::Slow(Duration::from_secs(2));
    let cases: Vec<(Behaviour, Value, &str)> = vec![
        (Behaviour::Answer(500), json!(500), ""),
        (Behaviour::Answer(404), json!(404), ""),
        (Behaviour::Answer(302), json!(302), ""),
        (Behaviour::Redirect(elsewhere.url()), json!(301), ""),
        (Behaviour::Close, Value::Null, "connection closed"),
        (Behaviour::Never, Value::Null, "no answer within 10 seconds"),
        (slow, json!(200), ""),
        (Behaviour::Answer(204), json!(204), ""),
    ];
    let mut endpoints = Vec::new();
    for (behaviour, ..) in &cases {
        let behaviour = behaviour.clone();
        let receiver =
            Receiver::start(move |times| if times == 1 { behaviour.clone() } else { Behaviour::Answer(200) });
        let (id, secret) = receiver.subscribe(&app, "charge.succeeded").await;
        endpoints.push((receiver, id, secret));
    }
    let _worker = Worker::start(&app);
    app.charge().await;
    let id = event(&app, "charge.succeeded").await;
    let done = "SELECT count(*) AS number FROM webhook_deliveries WHERE status = 'delivered'";
    eventually("all deliveries", || app.database.number(done) == 8);
    let all = deliveries(&app, &id).await;
    for ((behaviour, status, error), (receiver, endpoint, secret)) in cases.iter().zip(&endpoints) {
        let delivery = all.iter().find(|delivery| delivery["webhook_endpoint"] == **endpoint).unwrap();
        let received = receiver.received();
        let at_once = [200, 204].iter().any(|good| status == good);
        assert_eq!(met(delivery)[0], *status, "{behaviour:?}");
        let message = delivery["attempts"][0]["error"].as_str().unwrap_or("");
        assert!(
            message.contains(error) && message.is_empty() == error.is_empty(),
            "{behaviour:?}: {message}"
        );
        assert_eq!(received.len(), if at_once { 1 } else { 2 }, "{behaviour:?}");
        received.iter().for_each(|received| received.assert_signed(&[secret]));
        if let Behaviour::Slow(time) = behaviour {
            let latency = delivery["attempts"][0]["latency_ms"].as_u64().unwrap();
            assert!(u128::from(latency) >= time.as_millis(), "{latency}");
        }
        if let [first, second] = &received[..] {
            assert_eq!(met(delivery)[1], 200);
            assert!(first.event_id() == id && first.body == second.body, "{behaviour:?}");
            assert!(second.signed_at() > first.signed_at() && second.signature() != first.signature());
            let pause = second.at
                - first.at
                - if message.starts_with("no answer") { Duration::from_secs(10) } else { Duration::ZERO };
            // The retry comes within two seconds, and one more for a busy machine.
            assert!(
                pause > Duration::from_millis(900) && pause < Duration::from_secs(3),
                "{behaviour:?}: {pause:?}"
            );
        }
    }
    assert_eq!(elsewhere.count(), 0, "a redirect is not followed");
    app.database.assert_clean();
}

#[tokio::test]
async fn after_the_last_attempt_a_delivery_has_failed_stays_visible_and_can_be_sent_again() {
    let app = TestApp::spawn();
    let receiver = Receiver::start(|_| Behaviour::Answer(503));
    let (endpoint, secret) = receiver.subscribe(&app, "charge.succeeded").await;
    let worker = Worker::start(&app);
    app.charge().await;
    let id = event(&app, "charge.succeeded").await;
    let attempts = app.service.webhooks.schedule.pauses().len() + 1;
    let kept = || app.database.count("webhook_attempts");
    for number in 1..=attempts {
        eventually("another attempt", || kept() == i64::try_from(number).unwrap());
        let filtered = async |value: bool| app.read(&format!("/v1/events?delivery_success={value}")).await;
        // Stripe counts a pending delivery as one that was not delivered.
        assert_eq!(filtered(false).await["data"][0]["id"], *id);
        assert_eq!(filtered(true).await["data"], json!([]));
        let pause = app.service.webhooks.schedule.pauses().get(number - 1);
        if let Some(pause) = pause {
            let delivery = &deliveries(&app, &id).await[0];
            let last = &delivery["attempts"][number - 1]["created"];
            let next = delivery["next_attempt"].as_u64().unwrap();
            assert!(next.abs_diff(last.as_u64().unwrap() + pause) <= 1, "attempt {number}: {delivery}");
            app.state.clock.advance(Duration::from_secs(*pause));
            app.state.committed.notify_one();
        }
    }
    let failed = settled(&app, &id).await;
    assert_eq!((&failed["status"], &failed["next_attempt"]), (&json!("failed"), &Value::Null));
    assert_eq!(met(&failed), vec![json!(503); attempts]);
    assert_eq!(app.read(&format!("/v1/events/{id}")).await["pending_webhooks"], 0);
    // A week later there was no further attempt: the next delivery is that of the next event.
    receiver.behave(|_| Behaviour::Answer(200));
    app.state.clock.advance(Duration::from_secs(7 * 24 * 3600));
    app.charge().await;
    eventually("the next event", || receiver.count() == attempts + 1);
    assert_ne!(receiver.received().last().unwrap().event_id(), id);

    // A resent event begins at the start of the schedule.
    let resend = async |form: &str| app.submit(&format!("/v1/events/{id}/resend"), form).await;
    let reply = resend("").await.expect(200);
    assert_eq!((reply.id(), &reply.body["object"]), (&*id, &json!("event")));
    assert_eq!(reply.body["pending_webhooks"], 1);
    assert_eq!(settled(&app, &id).await["status"], "delivered");
    assert_eq!(met(&settled(&app, &id).await).len(), attempts + 1);
    let again = receiver.received().pop().unwrap();
    assert_eq!((again.event_id(), &again.body), (id.clone(), &receiver.received()[0].body));
    again.assert_signed(&[&secret]);
    assert_eq!(app.read("/v1/events?delivery_success=true").await["data"].as_array().unwrap().len(), 2);
    assert_eq!(app.read("/v1/events?delivery_success=false").await["data"], json!([]));
    // A delivered event can be resent too, to this endpoint alone or to one that is newer than the event.
    drop(worker);
    let newer = Receiver::good();
    let (new_endpoint, _) = newer.subscribe(&app, "customer.created").await;
    resend(&format!("webhook_endpoint={endpoint}")).await.expect(200);
    resend(&format!("webhook_endpoint={new_endpoint}")).await.expect(200);
    let _worker = Worker::start(&app);
    eventually("both", || newer.count() == 1 && receiver.count() == attempts + 3);
    assert_eq!(newer.received()[0].body, again.body);

    // It cannot be sent to an unknown endpoint, nor by another account.
    app.submit(&format!("/v1/webhook_endpoints/{new_endpoint}"), "disabled=true").await.expect(200);
    for wrong in [&*new_endpoint, "we_x", &format!("we_{}", uuid::Uuid::now_v7().simple())] {
        let error = resend(&format!("webhook_endpoint={wrong}")).await.expect_error(400, "resource_missing");
        assert_eq!(error.param(), "webhook_endpoint");
    }
    let other = app.database.other_account();
    let call = app.call_as(&other, reqwest::Method::POST, &format!("/v1/events/{id}/resend"));
    call.key(&fresh_key()).send().await.expect_error(404, "resource_missing");
    app.database.assert_clean();
}

#[tokio::test]
async fn an_endless_answer_is_read_to_64_kib_and_stored_to_500_characters() {
    let app = TestApp::spawn();
    let receiver = Receiver::start(|_| Behaviour::Endless);
    receiver.subscribe(&app, "charge.succeeded").await;
    let _worker = Worker::start(&app);
    app.charge().await;
    let delivery = settled(&app, &event(&app, "charge.succeeded").await).await;
    assert_eq!(delivery["status"], "delivered");
    // NUL, which PostgreSQL cannot store, is left out.
    assert_eq!(delivery["attempts"][0]["answer"], "é".repeat(500));
    assert!(delivery["attempts"][0]["latency_ms"].as_u64().unwrap() < 9000, "it stops before the time limit");
    // The bytes that were written and not read are in the buffers of the connection.
    assert!(receiver.written() < 16 * 1024 * 1024, "{}", receiver.written());
}

#[tokio::test]
async fn both_secrets_sign_until_the_grace_period_of_a_roll_ends() {
    let app = TestApp::spawn();
    let receiver = Receiver::good();
    let (endpoint, first) = receiver.subscribe(&app, "charge.succeeded").await;
    let _worker = Worker::start(&app);
    let next = async || {
        let before = receiver.count();
        app.charge().await;
        eventually("the event", || receiver.count() == before + 1);
        receiver.received().pop().unwrap()
    };
    let roll = async |form: &str| {
        let path = format!("/v1/webhook_endpoints/{endpoint}/roll_secret");
        app.submit(&path, form).await.expect(200).body["secret"].as_str().unwrap().to_owned()
    };
    next().await.assert_signed(&[&first]);
    let second = roll("").await;
    let both = next().await;
    both.assert_signed(&[&second, &first]);
    for secret in [&second, &first] {
        assert_the_sdk_takes(&both, secret).await;
    }
    app.state.clock.advance(Duration::from_secs(24 * 3600 - 60));
    next().await.assert_signed(&[&second, &first]);
    app.state.clock.advance(Duration::from_secs(61));
    next().await.assert_signed(&[&second]);
    let third = roll("grace_period_seconds=100").await;
    next().await.assert_signed(&[&third, &second]);
    app.state.clock.advance(Duration::from_secs(101));
    next().await.assert_signed(&[&third]);
    // A leaked secret stops signing at once, even during the grace period of another one.
    let fourth = roll("").await;
    let fifth = roll("grace_period_seconds=0").await;
    next().await.assert_signed(&[&fifth]);
    assert_ne!(fourth, fifth);
}

#[tokio::test]
async fn a_worker_that_dies_between_the_post_and_its_record_has_lost_nothing() {
    let app = TestApp::spawn();
    let receiver =
        Receiver::start(|times| if times == 1 { Behaviour::Never } else { Behaviour::Answer(200) });
    let (_, secret) = receiver.subscribe(&app, "charge.succeeded").await;
    let environment = [("WEBHOOK_ALLOW_PRIVATE", "true"), ("WEBHOOK_SCHEDULE", "fast")];
    let mut doomed = Process::worker(&app.database, &environment);
    app.charge().await;
    eventually("the first delivery", || receiver.count() == 1);
    doomed.kill();
    let id = event(&app, "charge.succeeded").await;
    assert_eq!(deliveries(&app, &id).await[0]["status"], "pending");
    assert_eq!(app.database.count("webhook_attempts"), 0);

    // Nobody sends the delivery while the dead worker holds its lease, and later deliveries do not wait for it.
    let _worker = Worker::start(&app);
    app.charge().await;
    eventually("the later event", || receiver.count() >= 2);
    let later = receiver.received()[1].event_id();
    assert_ne!(later, id);
    receiver.behave(|_| Behaviour::Answer(200));
    app.state.clock.advance(Duration::from_secs(21));
    app.state.committed.notify_one();
    assert_eq!(settled(&app, &id).await["status"], "delivered");
    let received = receiver.received();
    let ours: Vec<&Received> = received.iter().filter(|received| received.event_id() == id).collect();
    assert_eq!(ours.len(), 2);
    assert_eq!(ours[0].body, ours[1].body);
    ours[1].assert_signed(&[&secret]);
    app.database.assert_clean();
}

#[tokio::test]
async fn deleting_and_disabling_stop_deliveries_at_once_and_leave_the_others_alone() {
    let app = TestApp::spawn();
    let [disabled, deleted, kept] = [(); 3].map(|()| Receiver::start(|_| Behaviour::Answer(500)));
    let (to_disable, _) = disabled.subscribe(&app, "*").await;
    let (to_delete, _) = deleted.subscribe(&app, "*").await;
    kept.subscribe(&app, "*").await;
    let _worker = Worker::start(&app);
    app.charge().await;
    eventually("the first attempts", || app.database.count("webhook_attempts") == 3);
    app.submit(&format!("/v1/webhook_endpoints/{to_disable}"), "disabled=true").await.expect(200);
    app.delete(&format!("/v1/webhook_endpoints/{to_delete}")).send().await.expect(200);
    let counts = (disabled.count(), deleted.count());
    kept.behave(|_| Behaviour::Answer(200));
    app.state.clock.advance(Duration::from_secs(3600));
    app.charge().await;
    // The retry, and the next event.
    let id = event(&app, "charge.succeeded").await;
    settled(&app, &id).await;
    let delivered = "SELECT count(*) AS number FROM webhook_deliveries WHERE status = 'delivered'";
    eventually("what is kept", || app.database.number(delivered) == 2);
    assert_eq!((disabled.count(), deleted.count()), counts);
    let canceled = "SELECT count(*) AS number FROM webhook_deliveries WHERE status = 'canceled'";
    assert_eq!(app.database.number(canceled), 2);
    // After it is enabled again, it receives the events from then on.
    app.submit(&format!("/v1/webhook_endpoints/{to_disable}"), "disabled=false").await.expect(200);
    disabled.behave(|_| Behaviour::Answer(200));
    app.charge().await;
    eventually("the new event", || disabled.count() == counts.0 + 1);
    assert_eq!(disabled.received().pop().unwrap().event_id(), event(&app, "charge.succeeded").await);
    assert_eq!(deleted.count(), counts.1);
    app.database.assert_clean();
}

#[tokio::test]
async fn an_endpoint_receives_events_in_the_version_that_it_was_made_with() {
    let app = TestApp::spawn();
    let receiver = Receiver::good();
    let form = format!("url={}&enabled_events[]=*&api_version=2031-01-01.basil", receiver.url());
    app.submit("/v1/webhook_endpoints", &form).await.expect(201);
    let _worker = Worker::start(&app);
    // A text of the object that looks like the version stays as it is.
    let own = "\"api_version\":\"2026-08-26.dahlia\"";
    let made = app.submit_json("/v1/customers", &json!({ "description": own })).await.expect(201);
    eventually("the event", || receiver.count() == 1);
    let sent = receiver.received().remove(0).json();
    assert_eq!(sent["api_version"], "2031-01-01.basil");
    assert_eq!(sent["data"]["object"], made.body);
    assert_eq!(app.read("/v1/events").await["data"][0]["api_version"], "2026-08-26.dahlia");
}

#[tokio::test]
async fn an_endpoint_keeps_its_secret_when_the_secret_key_of_the_server_is_replaced() {
    let (older, newer) = (SECRET_KEY.to_owned(), "its successor is long enough too".to_owned());
    let first = TestApp::spawn();
    let receiver = Receiver::good();
    let (endpoint, secret) = receiver.subscribe(&first, "customer.created").await;
    let roll = format!("/v1/webhook_endpoints/{endpoint}/roll_secret");
    let rolled = first.submit(&roll, "grace_period_seconds=3600").await.expect(200);
    let with = |secrets: &[&String]| {
        let database = Arc::clone(&first.database);
        let secrets = secrets.iter().map(|secret| (*secret).clone()).collect();
        TestApp::with(|builder| {
            builder.database = Some(database);
            builder.secrets = secrets;
        })
    };
    // Each instance knows both secrets, and then begins with the newer one.
    for secrets in [[&older, &newer], [&newer, &older]] {
        seal_anew(&with(&secrets).state).await;
    }
    let last = with(&[&newer]);
    let _worker = Worker::start(&last);
    last.submit("/v1/customers", "").await.expect(201);
    eventually("the event", || receiver.count() == 1);
    receiver.received()[0].assert_signed(&[rolled.body["secret"].as_str().unwrap(), &secret]);
}

#[tokio::test]
async fn what_was_put_off_by_a_clock_that_is_set_back_is_delivered_within_seconds() {
    let app = TestApp::spawn();
    let receiver = Receiver::start(|_| Behaviour::Answer(503));
    receiver.subscribe(&app, "charge.succeeded").await;
    let ten_hours = Duration::from_secs(36_000);
    app.state.clock.advance(ten_hours);
    let _worker = Worker::start(&app);
    app.charge().await;
    eventually("an attempt that fails", || app.database.count("webhook_attempts") == 1);
    app.state.clock.turn_back(ten_hours);
    receiver.behave(|_| Behaviour::Answer(200));
    let id = event(&app, "charge.succeeded").await;
    assert_eq!(settled(&app, &id).await["status"], "delivered");
    // So is what a jump forward makes due.
    app.state.clock.advance(ten_hours);
    app.charge().await;
    let id = event(&app, "charge.succeeded").await;
    assert_eq!(settled(&app, &id).await["status"], "delivered");
}

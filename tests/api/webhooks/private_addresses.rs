//! Private addresses, to which webhooks do not go, and the settings that allow them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oncepay::webhooks::{WebhookSettings, schedule::Schedule};
use serde_json::Value;

use crate::support::{
    Behaviour, CHARGE, Process, Program, Receiver, TestApp, TestDatabase, Worker, eventually, fresh_key,
};

const PATH: &str = "/v1/webhook_endpoints";

/// A server on the same database whose webhooks go nowhere private.
fn strict(app: &TestApp) -> TestApp {
    let database = Arc::clone(&app.database);
    TestApp::with(|builder| {
        builder.webhooks = WebhookSettings { schedule: Schedule::Fast, allow_private: false };
        builder.database = Some(database);
    })
}

/// The form of an endpoint for charges.
fn form(url: &str) -> String {
    format!("url={}&enabled_events[]=charge.succeeded", url.replace('%', "%25").replace('#', "%23"))
}

/// The deliveries of the newest charge's event, once each has an attempt.
async fn attempted(app: &TestApp, number: usize) -> Vec<Value> {
    let list = app.read("/v1/events?limit=1&type=charge.succeeded").await;
    let path = format!("/v1/events/{}/deliveries", list["data"][0]["id"].as_str().unwrap());
    let begun = Instant::now();
    loop {
        let all = app.read(&path).await["data"].as_array().unwrap().clone();
        if all.len() == number && all.iter().all(|delivery| delivery["attempts"][0].is_object()) {
            return all;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "not attempted: {all:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_private_address_is_refused_in_any_notation_when_an_endpoint_is_made_or_moved() {
    let app = TestApp::spawn();
    let strict = strict(&app);
    let made = strict.submit(PATH, &form("https://example.com/")).await.expect(201).id().to_owned();
    let before = app.database.contents();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "127.0.0.1.",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "10.1.2.3",
        "172.31.255.255",
        "192.168.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::1]",
        "[fe80::1]",
        "[fd00:ec2::254]",
    ] {
        for url in [format!("http://{host}/"), format!("https://{host}:8443/x"), format!("HTTP:{host}\\")] {
            for path in [PATH.to_owned(), format!("{PATH}/{made}")] {
                let error = strict.submit(&path, &form(&url)).await.expect(400);
                assert_eq!(error.param(), "url", "{url}");
                let message = error.body["error"]["message"].as_str().unwrap();
                assert!(message.contains("private address"), "{url}: {message}");
            }
        }
    }
    assert_eq!(app.database.contents(), before);
    // Public addresses are taken, and private ones where the settings allow them.
    for url in ["http://8.8.8.8/", "https://[2606:4700::1111]/", "http://172.32.0.1/", "http://localhost/"] {
        strict.submit(PATH, &form(url)).await.expect(201);
    }
    for url in ["http://127.0.0.1/", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/"] {
        app.submit(PATH, &form(url)).await.expect(201);
    }
}

#[tokio::test]
async fn a_delivery_does_not_connect_to_a_url_that_leads_to_a_private_address() {
    let app = TestApp::spawn();
    let strict = strict(&app);
    let receiver = Receiver::good();
    let port = receiver.address.port();
    // Names are resolved at delivery, and some endpoints were made while private addresses were allowed.
    for host in ["localhost", "LocalHost"] {
        strict.submit(PATH, &form(&format!("http://{host}:{port}/"))).await.expect(201);
    }
    let literals = ["127.0.0.1", "[::ffff:127.0.0.1]", "0x7f.1"];
    for host in literals {
        app.submit(PATH, &form(&format!("http://{host}:{port}/"))).await.expect(201);
    }
    strict.submit(PATH, &form("http://no-such-name.invalid/")).await.expect(201);
    app.charge().await;
    let worker = Worker::start(&strict);
    let all = attempted(&app, 6).await;
    drop(worker);
    let error = |delivery: &Value| delivery["attempts"][0]["error"].as_str().unwrap_or("").to_owned();
    let private = all.iter().filter(|delivery| error(delivery).contains("private address")).count();
    assert_eq!(private, 5, "{all:#?}");
    assert!(all.iter().all(|delivery| delivery["attempts"][0]["status_code"].is_null()));
    assert!(all.iter().all(|delivery| !error(delivery).is_empty() && delivery["status"] == "pending"));
    assert_eq!(receiver.count(), 0);

    // Where private addresses are allowed, the same URLs do reach the receiver.
    app.state.clock.advance(Duration::from_secs(60));
    let _worker = Worker::start(&app);
    eventually("the same deliveries", || receiver.count() == 5);
    app.database.assert_clean();
}

#[tokio::test]
async fn by_default_a_server_with_a_database_url_sends_nothing_to_private_addresses() {
    let database = Arc::new(TestDatabase::new());
    let create =
        |program: &Program| program.post(PATH).key(&fresh_key()).form(&form("http://127.0.0.1:9/")).send();
    let (closed, open) =
        (Program::start(&database, &[]), Program::start(&database, &[("WEBHOOK_ALLOW_PRIVATE", "true")]));
    let error = create(&closed).await.expect(400);
    assert!(error.body["error"]["message"].as_str().unwrap().contains("webhook-allow-private"), "{error:?}");
    create(&open).await.expect(201);
}

#[tokio::test]
async fn a_server_delivers_by_itself_unless_its_settings_leave_that_to_a_worker() {
    let private = ("WEBHOOK_ALLOW_PRIVATE", "true");
    for (schedule, pause) in [("live", 5), ("fast", 1)] {
        let app = TestApp::spawn();
        let receiver = Receiver::start(|_| Behaviour::Answer(500));
        receiver.subscribe(&app, "charge.succeeded").await;
        let environment = [private, ("WEBHOOK_SCHEDULE", schedule), ("WEBHOOK_WORKER", "false")];
        let program = Program::start(&app.database, &environment);
        program.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
        // Longer than the pause of a worker; only this can show that there is none.
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(receiver.count(), 0);
        let mut worker = Process::worker(&app.database, &environment);
        attempted(&app, 1).await;
        // The first look may have met the delivery as it was before the attempt, and the attempt; this one does not.
        let delivery = attempted(&app, 1).await.remove(0);
        if delivery["attempts"].as_array().unwrap().len() == 1 {
            let next = delivery["next_attempt"].as_i64().unwrap();
            let last = delivery["attempts"][0]["created"].as_i64().unwrap();
            assert!((next - last - pause).abs() <= 1, "{schedule}: {delivery}");
        }
        worker.kill();
        drop(program);
        // The server delivers by itself, and at once.
        receiver.behave(|_| Behaviour::Answer(200));
        let program = Program::start(&app.database, &[private]);
        let before = receiver.count();
        program.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
        eventually("the delivery", || receiver.count() > before);
    }
}

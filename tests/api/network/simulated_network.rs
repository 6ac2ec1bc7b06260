//! The simulated network: it waits a moment, and then sends the notifications that a real one would, also twice or in
//! the wrong order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oncepay::card_network::simulation::{DeliveryMode, run};
use serde_json::Value;

use crate::support::network::NOTIFICATIONS;
use crate::support::{
    Call, Fate, Journal, LossyProxy, Program, Random, TestApp, TestDatabase, eventually, fresh_key, http,
};

/// A simulated network that runs until it is dropped.
struct Network {
    app: TestApp,
    task: tokio::task::JoinHandle<()>,
}

impl Network {
    /// Sends the notifications in the database of `app` to `url`.
    fn start(app: &TestApp, url: String, delivery: DeliveryMode) -> Self {
        let app = app.network(url, delivery);
        let network = app.service.network();
        // All notifications that are there are due.
        network.clock.advance(Duration::from_secs(2));
        let task = tokio::spawn(async move { run(network).await.expect("the network runs") });
        Self { app, task }
    }

    /// Waits until every notification is sent. The clock runs fast meanwhile, so that the test waits for no pause.
    async fn has_sent_all(&self) {
        let left = "SELECT count(*) AS number FROM network_notifications WHERE delivered_at IS NULL";
        let (database, state) = (Arc::clone(&self.app.database), Arc::clone(&self.app.state));
        let sent_all = move || {
            state.clock.advance(Duration::from_millis(100));
            database.number(left) == 0
        };
        tokio::task::spawn_blocking(|| eventually("the last notification", sent_all)).await.unwrap();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The ways to make a charge.
const WAYS: [&str; 3] = ["at once", "by capture", "by intent"];

/// Makes a charge of 10.00 with this card, and returns its id.
async fn charged(app: &TestApp, way: &str, card: &str) -> String {
    let money = "amount=1000&currency=usd";
    match way {
        "at once" => {
            app.submit("/v1/charges", &format!("{money}&source=tok_{card}")).await.expect(201).id().to_owned()
        }
        "by capture" => {
            let hold = app.submit("/v1/charges", &format!("{money}&source=tok_{card}&capture=false")).await;
            let hold = hold.expect(201).id().to_owned();
            // A hold has moved no money, so it has no notification.
            app.submit(&format!("/v1/charges/{hold}/capture"), "").await.expect(200);
            hold
        }
        _ => {
            let manual = format!("{money}&confirm=true&capture_method=manual&payment_method=pm_card_{card}");
            let intent = app.submit("/v1/payment_intents", &manual).await.expect(201);
            app.submit(&format!("/v1/payment_intents/{}/capture", intent.id()), "").await.expect(200);
            intent.body["latest_charge"].as_str().unwrap().to_owned()
        }
    }
}

#[tokio::test]
async fn each_card_gets_its_notifications_however_it_was_charged_and_in_every_delivery_mode() {
    for delivery in [DeliveryMode::InOrder, DeliveryMode::Twice, DeliveryMode::Disorder] {
        let app = TestApp::spawn();
        let (mut refunds, mut disputes) = (Vec::new(), Vec::new());
        for way in WAYS {
            for (card, status) in
                [("pendingRefund", "succeeded"), ("refundFail", "failed"), ("visa", "succeeded")]
            {
                let charge = charged(&app, way, card).await;
                let refund = app.submit("/v1/refunds", &format!("charge={charge}")).await.expect(201);
                refunds.push((refund.id().to_owned(), status));
            }
            for (card, reason, status) in [
                ("createDispute", "fraudulent", "needs_response"),
                ("createDisputeInquiry", "fraudulent", "warning_needs_response"),
                ("createDisputeProductNotReceived", "product_not_received", "needs_response"),
            ] {
                disputes.push((charged(&app, way, card).await, reason, status));
            }
        }
        // An intent that is not captured later is charged at once.
        let form = "amount=1000&currency=usd&confirm=true&payment_method=pm_card_createDispute";
        let intent = app.submit("/v1/payment_intents", form).await.expect(201);
        disputes.push((
            intent.body["latest_charge"].as_str().unwrap().to_owned(),
            "fraudulent",
            "needs_response",
        ));
        assert_eq!(app.database.count("network_notifications"), 2 * 3 + 3 * 3 + 1);
        assert_eq!(app.database.count("disputes"), 0, "the network thinks before it speaks");

        let network = Network::start(&app, app.notifications_url(), delivery);
        network.has_sent_all().await;
        for (refund, status) in refunds {
            assert_eq!(app.read(&format!("/v1/refunds/{refund}")).await["status"], status, "{delivery:?}");
        }
        for (charge, reason, status) in &disputes {
            let list = app.read(&format!("/v1/disputes?charge={charge}")).await;
            let shown = (&list["data"][0]["reason"], &list["data"][0]["status"]);
            assert_eq!(shown, (&Value::from(*reason), &Value::from(*status)), "{delivery:?}");
        }
        assert_eq!(app.database.count("disputes"), 10);
        assert_eq!(app.database.count("idempotency_records WHERE source = 'network'"), 16);
        // Three failed refunds and three inquiries have left their money here; the seven disputes took theirs.
        assert_eq!(app.usd().await, 6 * 1000, "{delivery:?}");
        let replays = if delivery == DeliveryMode::Twice { 16 } else { 0 };
        let metrics = app.get("/metrics").send().await.expect(200).bytes;
        let metrics = String::from_utf8(metrics).unwrap();
        assert!(
            metrics.contains(&format!("{{outcome=\"replayed\"}} {replays}\n")),
            "{delivery:?}: {metrics}"
        );

        // The decision about evidence arrives in the same way.
        for (number, text, status) in [
            (0, "winning_evidence", "won"),
            (2, "losing_evidence", "lost"),
            (1, "winning_evidence", "warning_closed"),
        ] {
            let list = app.read(&format!("/v1/disputes?charge={}", disputes[number].0)).await;
            let path = format!("/v1/disputes/{}", list["data"][0]["id"].as_str().unwrap());
            app.submit(&path, &format!("evidence[uncategorized_text]={text}")).await.expect(200);
            network.has_sent_all().await;
            assert_eq!(app.read(&path).await["status"], status);
        }
        assert_eq!(app.usd().await, 7 * 1000);
        app.database.assert_clean();
    }
}

#[tokio::test]
async fn the_delivery_mode_decides_how_often_and_in_which_order_notifications_are_sent() {
    for delivery in [DeliveryMode::InOrder, DeliveryMode::Twice, DeliveryMode::Disorder] {
        let app = TestApp::spawn();
        for _ in 0..5 {
            charged(&app, "at once", "createDispute").await;
        }
        let journal = Journal::default();
        let proxy = LossyProxy::start(app.address, &journal, |_| Fate::Delivered);
        let url = format!("http://{}{NOTIFICATIONS}", proxy.address);
        Network::start(&app, url, delivery).has_sent_all().await;
        let keys: Vec<String> = journal.lock().unwrap().iter().map(|passage| passage.key.clone()).collect();
        // Ids grow with time.
        let mut expected = keys.clone();
        expected.sort();
        if delivery == DeliveryMode::Disorder {
            expected.reverse();
        }
        assert_eq!(keys, expected, "{delivery:?}");
        let mut once = keys.clone();
        once.dedup();
        let times = if delivery == DeliveryMode::Twice { 2 } else { 1 };
        assert_eq!((once.len(), keys.len()), (5, 5 * times), "{delivery:?}");
        assert_eq!(app.database.count("disputes"), 5);
        app.database.assert_clean();
    }
}

#[tokio::test]
async fn a_lost_notification_is_sent_again() {
    let app = TestApp::spawn();
    let journal = Journal::default();
    // The request is lost twice, then the answer once, and then nothing.
    let proxy = LossyProxy::start(app.address, &journal, |time| match time {
        1 | 2 => Fate::RequestLost,
        3 => Fate::AnswerLost,
        _ => Fate::Delivered,
    });
    for card in ["createDispute", "createDisputeInquiry"] {
        charged(&app, "at once", card).await;
    }
    let network =
        Network::start(&app, format!("http://{}{NOTIFICATIONS}", proxy.address), DeliveryMode::InOrder);
    network.has_sent_all().await;
    let journal = journal.lock().unwrap().clone();
    assert_eq!(journal.len(), 8, "{journal:?}");
    let delivered: Vec<_> = journal.iter().filter(|passage| passage.fate == Fate::Delivered).collect();
    assert!(delivered.iter().all(|passage| passage.is_replay && passage.status == Some(200)), "{journal:?}");
    assert_eq!(app.database.count("disputes"), 2);
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refused_notification_is_sent_again_until_it_is_taken() {
    let app = TestApp::spawn();
    charged(&app, "at once", "createDispute").await;
    // A server whose secret is not yet the network's.
    let database = Arc::clone(&app.database);
    let server = TestApp::with(|builder| {
        builder.database = Some(database);
        builder.network.secret = "whsec_wrong".to_owned();
    });
    let attempts = "SELECT max(attempts)::bigint AS number FROM network_notifications";
    let network = Network::start(&app, server.notifications_url(), DeliveryMode::InOrder);
    let (database, state) = (Arc::clone(&app.database), Arc::clone(&network.app.state));
    let several = move || {
        state.clock.advance(Duration::from_secs(1));
        database.number(attempts) >= 3
    };
    tokio::task::spawn_blocking(|| eventually("three attempts", several)).await.unwrap();
    drop(network);
    assert_eq!(app.database.count("disputes"), 0);
    assert_eq!(app.database.count("network_notifications WHERE delivered_at IS NULL"), 1);
    let network = Network::start(&app, app.notifications_url(), DeliveryMode::InOrder);
    network.app.state.clock.advance(Duration::from_secs(3600));
    // The signature contains the time of the network, which this server has to share.
    app.state.clock.advance(Duration::from_secs(3600));
    network.has_sent_all().await;
    assert_eq!(app.database.count("disputes"), 1);
    app.database.assert_clean();
}

#[tokio::test]
async fn two_networks_on_one_database_send_each_notification_once() {
    let app = TestApp::spawn();
    for _ in 0..40 {
        charged(&app, "at once", "createDisputeInquiry").await;
    }
    let journal = Journal::default();
    let proxy = LossyProxy::start(app.address, &journal, |_| Fate::Delivered);
    let url = format!("http://{}{NOTIFICATIONS}", proxy.address);
    let _networks = [0, 1].map(|_| Network::start(&app, url.clone(), DeliveryMode::InOrder));
    let database = Arc::clone(&app.database);
    let all_sent = move || database.count("network_notifications WHERE delivered_at IS NULL") == 0;
    tokio::task::spawn_blocking(|| eventually("the last notification", all_sent)).await.unwrap();
    assert_eq!(app.database.count("disputes"), 40);
    // On a slow machine an answer may take longer than the first pause. The repetition is then a replay.
    let journal = journal.lock().unwrap();
    assert_eq!(journal.iter().filter(|passage| !passage.is_replay).count(), 40, "{journal:?}");
    app.database.assert_clean();
}

/// Makes charges and refunds that cause notifications, until `stop` is set.
async fn customers(address: Arc<Mutex<std::net::SocketAddr>>, api_key: String, stop: Arc<AtomicBool>) {
    let client = http().timeout(Duration::from_secs(30)).build().unwrap();
    let mut random = Random::new(1);
    let submit = async |path: &str, form: &str| -> Option<Value> {
        let key = fresh_key();
        for _ in 0..1000 {
            let url = format!("http://{}{path}", address.lock().unwrap());
            let call = Call::new(&client, reqwest::Method::POST, url, &api_key).key(&key).form(form);
            match call.try_send().await {
                Ok(reply) if reply.status == 409 || reply.status >= 500 => {}
                Ok(reply) => return (reply.status == 201).then_some(reply.body),
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{path} is never answered");
    };
    while !stop.load(Ordering::SeqCst) {
        let card = random.pick(&["createDispute", "createDisputeInquiry", "pendingRefund", "refundFail"]);
        let charge = submit("/v1/charges", &format!("amount=1000&currency=usd&source=tok_{card}")).await;
        let charge = charge.expect("it is charged");
        if card.contains("efund") {
            submit("/v1/refunds", &format!("charge={}", charge["id"].as_str().unwrap())).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_while_notifications_are_in_flight_loses_and_doubles_none() {
    let mut random = Random::new(Random::seed());
    let database = Arc::new(TestDatabase::new());
    let environment = [("NETWORK_MANNERS", "twice")];
    let mut program = Program::start(&database, &environment);
    let address = Arc::new(Mutex::new(program.address));
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn(customers(Arc::clone(&address), database.api_key.clone(), Arc::clone(&stop)));
    let wait = async |what: &'static str, statement: &'static str, least: i64| {
        let database = Arc::clone(&database);
        let holds = move || database.number(statement) >= least;
        tokio::task::spawn_blocking(move || eventually(what, holds)).await.unwrap();
    };
    let delivered = "SELECT count(*) AS number FROM network_notifications WHERE delivered_at IS NOT NULL";
    for _ in 0..4 {
        let so_far = database.number(delivered);
        wait("some more notifications", delivered, so_far + 1 + i64::try_from(random.below(15)).unwrap())
            .await;
        program.kill();
        program = Program::start(&database, &environment);
        *address.lock().unwrap() = program.address;
    }
    stop.store(true, Ordering::SeqCst);
    load.await.unwrap();
    let all = "SELECT (count(*) = count(delivered_at))::int::bigint AS number FROM network_notifications";
    wait("the last notification", all, 1).await;
    drop(program);
    database.assert_clean();
    let sent = database.count("network_notifications");
    assert!(sent > 10, "only {sent} notifications were sent");
    assert_eq!(database.count("idempotency_records WHERE source = 'network'"), sent);
    let of_card = |card: &str, status: &str| {
        let of = format!("JOIN charges c ON c.id = x.charge_id AND c.card ->> 'test_card' = '{card}'");
        let table = if card.contains("efund") { "refunds" } else { "disputes" };
        let (all, right) = (format!("{table} x {of}"), format!("{table} x {of} WHERE x.status = '{status}'"));
        assert_eq!(database.count(&all), database.count(&right), "{card}");
        database.count(&all)
    };
    let disputed = of_card("createDispute", "needs_response")
        + of_card("createDisputeInquiry", "warning_needs_response");
    let refunded = of_card("pendingRefund", "succeeded") + of_card("refundFail", "failed");
    assert_eq!(disputed + refunded, sent);
    let charges = database.count("charges WHERE card ->> 'test_card' LIKE 'createDispute%'");
    assert_eq!(disputed, charges, "each charge that is to be disputed is");
}

#[tokio::test]
async fn notifications_are_sent_within_seconds_whatever_the_clock_did() {
    let app = TestApp::spawn();
    let ten_hours = Duration::from_secs(36_000);
    app.state.clock.advance(ten_hours);
    charged(&app, "at once", "createDispute").await;
    app.state.clock.turn_back(ten_hours);
    let network = Network::start(&app, app.notifications_url(), DeliveryMode::InOrder);
    network.has_sent_all().await;
    assert_eq!(app.database.count("disputes"), 1);
    app.database.assert_clean();
}

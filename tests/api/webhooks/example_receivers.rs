//! The example receivers of webhooks, run as they are: each takes each event once, and nothing forged.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;

use actix_web::web::{Data, post};
use actix_web::{App, HttpServer};
use serde_json::Value;

use crate::support::{Process, TestApp, Worker, eventually, http, sdk};

#[path = "../../../examples/webhook_receiver.rs"]
mod webhook_receiver;

use webhook_receiver::{Receiver, receive};

/// Makes an endpoint at this address, and returns its secret.
async fn subscribe(app: &TestApp, address: SocketAddr) -> String {
    let form = format!("url=http://{address}/hook&enabled_events[]=charge.succeeded");
    let made = app.submit("/v1/webhook_endpoints", &form).await.expect(201);
    made.body["secret"].as_str().unwrap().to_owned()
}

/// Sends two events, one of them twice, and forgeries. `taken` returns the number of events that the receiver
/// processed.
async fn assert_takes_each_event_once(app: &TestApp, address: SocketAddr, taken: impl Fn() -> usize) {
    let _worker = Worker::start(app);
    for _ in 0..2 {
        app.charge().await;
    }
    let delivered = "SELECT count(*) AS number FROM webhook_attempts WHERE status_code = 200";
    eventually("both events", || app.database.number(delivered) == 2);
    let list = app.read("/v1/events?type=charge.succeeded").await;
    let event = list["data"][0]["id"].as_str().unwrap();
    app.submit(&format!("/v1/events/{event}/resend"), "").await.expect(200);
    eventually("one again", || app.database.number(delivered) == 3);
    assert_eq!(taken(), 2);
    let now = chrono::Utc::now().timestamp();
    for header in [None, Some(String::new()), Some(format!("t={now},v1={}", "0".repeat(64)))] {
        let mut forged = http().build().unwrap().post(format!("http://{address}/hook")).body("{}");
        if let Some(header) = &header {
            forged = forged.header("Stripe-Signature", header);
        }
        assert_eq!(forged.send().await.expect("it answers").status(), 400, "{header:?}");
    }
    assert_eq!(taken(), 2);
}

#[tokio::test]
async fn the_receiver_in_python_takes_each_event_once_and_nothing_forged() {
    let script = include_str!("../../../examples/webhook_receiver.py");
    let app = TestApp::spawn();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut python = sdk::python().into_std();
    python
        .args(["-c", script])
        .env("WEBHOOK_SECRET", subscribe(&app, address).await)
        .env("PORT", address.port().to_string());
    let mut child = Process::start(python);
    let printed = std::sync::Arc::new(Mutex::new(Vec::new()));
    let (out, lines) = (child.stdout(), printed.clone());
    std::thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).for_each(|line| lines.lock().unwrap().push(line));
    });
    eventually("the receiver", || std::net::TcpStream::connect(address).is_ok());
    assert_takes_each_event_once(&app, address, || printed.lock().unwrap().len()).await;
    let charge = app.read("/v1/charges").await["data"][0]["id"].as_str().unwrap().to_owned();
    assert!(printed.lock().unwrap().contains(&format!("charge.succeeded {charge}")), "{printed:?}");
}

#[tokio::test]
async fn the_receiver_in_rust_takes_each_event_once_and_nothing_forged() {
    let app = TestApp::spawn();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = Data::new(Receiver { secret: subscribe(&app, address).await, seen: Mutex::default() });
    let served = receiver.clone();
    let (handle, started) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            let app = move || App::new().app_data(served.clone()).route("/hook", post().to(receive));
            let server = HttpServer::new(app).workers(1).listen(listener).unwrap().run();
            handle.send(server.handle()).unwrap();
            server.await.unwrap();
        });
    });
    let server = started.recv().unwrap();
    assert_takes_each_event_once(&app, address, || receiver.seen.lock().unwrap().len()).await;
    server.stop(false).await;
    thread.join().unwrap();
    let event: Value = app.read("/v1/events?limit=1").await["data"][0]["id"].clone();
    assert!(receiver.seen.lock().unwrap().contains(&event.to_string()));
}

//! Bodies without end and clients without haste: they are answered, and then the connection is closed, whatever the
//! client goes on to do.

use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::bytes::{Bytes, FORM};
use crate::support::{CHARGE, Raw, TestApp};

/// The contract: so long after a 413 or 408 the socket is closed.
const CLOSED: Duration = Duration::from_secs(5);

const KIBIBYTE: usize = 1024;

fn head(app: &TestApp, length: &str) -> String {
    let request = Bytes::post(app, FORM, b"").without("Content-Length").header(length);
    String::from_utf8(request.write()).unwrap()
}

/// How a client goes on after its head.
#[derive(Debug, Clone, Copy)]
enum Then {
    /// Sends nothing more.
    Idles,
    /// Sends this many KiB as fast as it can, and then nothing more.
    Sends(usize),
    /// Sends as fast as it can for as long as it can.
    NeverEnds,
    /// Sends this much at once, and then a byte now and then.
    Trickles(usize),
}

#[test]
fn a_body_that_is_too_large_is_413_and_the_connection_is_closed_whatever_the_client_does() {
    let app = TestApp::spawn();
    let length = format!("Content-Length: {}", 300 * KIBIBYTE);
    let endless = format!("Content-Length: {}", u64::MAX);
    let asking = format!("{length}\r\nExpect: 100-continue");
    let chunked = "Transfer-Encoding: chunked";
    let cases = [
        (length.as_str(), Then::Idles),
        (&length, Then::Sends(300)),
        (&length, Then::Trickles(10)),
        (&asking, Then::Idles),
        (&endless, Then::Idles),
        (&endless, Then::NeverEnds),
        (chunked, Then::Sends(300)),
        (chunked, Then::NeverEnds),
        (chunked, Then::Trickles(300)),
    ];
    std::thread::scope(|scope| {
        for (length, then) in cases {
            let app = &app;
            scope.spawn(move || {
                let mut connection = Raw::connect(app.address);
                connection.send(head(app, length).as_bytes());
                let chunked = length.starts_with("Transfer");
                let mut sender = connection.sender();
                std::thread::scope(|scope| {
                    let sending = scope.spawn(move || go_on(&mut sender, chunked, then));
                    let mut reply = connection.answer();
                    if reply.as_ref().is_some_and(|reply| reply.status == 100) {
                        reply = connection.answer();
                    }
                    let reply = reply.unwrap_or_else(|| panic!("{length} {then:?}: no answer"));
                    reply.expect_any_error(413);
                    let elapsed = connection.closed_within(CLOSED);
                    assert!(elapsed.is_some(), "{length} {then:?}: the connection stays open");
                    sending.join().unwrap();
                });
            });
        }
    });
    assert_eq!(app.database.count("idempotency_records"), 0);
}

/// Sends until the server no longer takes it, and for half a minute at most.
fn go_on(sender: &mut std::net::TcpStream, chunked: bool, then: Then) {
    let mut kibibyte = vec![b'a'; KIBIBYTE];
    if chunked {
        kibibyte = [b"400\r\n".to_vec(), kibibyte, b"\r\n".to_vec()].concat();
    }
    let most = match then {
        Then::Idles => 0,
        Then::Sends(count) | Then::Trickles(count) => count,
        Then::NeverEnds => usize::MAX,
    };
    let begun = Instant::now();
    let patient = || begun.elapsed() < Duration::from_secs(30);
    let mut sent = 0;
    while sent < most && patient() && sender.write_all(&kibibyte).is_ok() {
        sent += 1;
    }
    let byte: &[u8] = if chunked { b"1\r\na\r\n" } else { b"a" };
    while matches!(then, Then::Trickles(_)) && patient() && sender.write_all(byte).is_ok() {
        sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_request_that_is_refused_before_its_body_ends_does_not_hold_a_connection() {
    let app = TestApp::spawn();
    let good = head(&app, "Transfer-Encoding: chunked");
    let cases = [
        (good.replace("/v1/charges", "/v1/nothing"), 404),
        (good.replace("POST /v1/charges", "PUT /v1/charges"), 405),
        (good.replace("/v1/charges", "/healthz"), 405),
        (good.replace("Authorization", "X-Authorization"), 401),
        (good.replace("Idempotency-Key", "X-Key"), 400),
        (good.replace("x-www-form-urlencoded", "pdf"), 415),
        (good.replace("POST /v1/charges", "GET /v1/charges"), 200),
    ];
    std::thread::scope(|scope| {
        for (head, status) in cases {
            let app = &app;
            scope.spawn(move || {
                let mut connection = Raw::connect(app.address);
                connection.send(head.as_bytes());
                let mut sender = connection.sender();
                std::thread::scope(|scope| {
                    let sending = scope.spawn(move || go_on(&mut sender, true, Then::Trickles(1)));
                    let reply = connection.answer().unwrap_or_else(|| panic!("{head}: no answer"));
                    assert_eq!(reply.status, status, "{head}");
                    assert!(connection.closed_within(CLOSED).is_some(), "{head}: the connection stays open");
                    sending.join().unwrap();
                });
            });
        }
    });
}

#[test]
fn a_body_of_exactly_the_limit_is_read() {
    let app = TestApp::spawn();
    let body = "a".repeat(256 * KIBIBYTE);
    for (length, body, status) in [
        (format!("Content-Length: {}", body.len()), body.clone(), 400),
        ("Transfer-Encoding: chunked".to_owned(), format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()), 400),
        (format!("Content-Length: {}", body.len() + 1), format!("{body}a"), 413),
        (
            "Transfer-Encoding: chunked".to_owned(),
            format!("{:x}\r\n{body}a\r\n0\r\n\r\n", body.len() + 1),
            413,
        ),
    ] {
        let mut connection = Raw::connect(app.address);
        let mut sender = connection.sender();
        let request = [head(&app, &length), body].concat();
        let sending = std::thread::spawn(move || drop(sender.write_all(request.as_bytes())));
        let reply = connection.answer().expect("an answer").expect_any_error(status);
        sending.join().unwrap();
        if status == 400 {
            assert_eq!(reply.body["error"]["code"], "parameter_missing");
        }
    }
}

#[test]
fn a_body_that_takes_too_long_is_408_and_a_trickle_does_not_extend_it() {
    let app = TestApp::spawn();
    std::thread::scope(|scope| {
        for (length, trickles) in [
            ("Content-Length: 100", false),
            ("Content-Length: 100", true),
            ("Transfer-Encoding: chunked", true),
        ] {
            let app = &app;
            scope.spawn(move || {
                let mut connection = Raw::connect(app.address);
                connection.send(head(app, length).as_bytes());
                let begun = Instant::now();
                let mut sender = connection.sender();
                let byte: &[u8] = if length.starts_with("Transfer") { b"1\r\na\r\n" } else { b"a" };
                std::thread::scope(|scope| {
                    let sending = scope.spawn(move || {
                        while trickles
                            && begun.elapsed() < Duration::from_secs(30)
                            && sender.write_all(byte).is_ok()
                        {
                            sleep(Duration::from_secs(1));
                        }
                    });
                    let reply = connection.answer().expect("an answer").expect_any_error(408);
                    let elapsed = begun.elapsed();
                    assert!((9_500..12_500).contains(&elapsed.as_millis()), "{elapsed:?}");
                    assert_eq!(reply.header("stripe-should-retry"), Some("false"));
                    assert!(connection.closed_within(CLOSED).is_some(), "{length} {trickles}");
                    sending.join().unwrap();
                });
            });
        }
    });
    assert_eq!(app.database.count("idempotency_records"), 0);
}

#[test]
fn a_head_that_takes_too_long_does_not_hold_a_connection() {
    let app = TestApp::spawn();
    std::thread::scope(|scope| {
        for trickles in [false, true] {
            let app = &app;
            scope.spawn(move || {
                let mut connection = Raw::connect(app.address);
                connection.send(b"GET /v1/charges HTTP/1.1\r\nX: ");
                let mut sender = connection.sender();
                let begun = Instant::now();
                std::thread::scope(|scope| {
                    let sending = scope.spawn(move || {
                        while trickles
                            && begun.elapsed() < Duration::from_secs(30)
                            && sender.write_all(b"a").is_ok()
                        {
                            sleep(Duration::from_millis(500));
                        }
                    });
                    assert!(
                        connection.closed_within(Duration::from_secs(10)).is_some(),
                        "trickles: {trickles}"
                    );
                    sending.join().unwrap();
                });
            });
        }
    });
}

#[test]
fn a_body_that_breaks_off_changes_nothing() {
    let app = TestApp::spawn();
    for (length, part) in [
        ("Content-Length: 100", CHARGE),
        ("Transfer-Encoding: chunked", "28\r\namount=1000&currency=usd&source=tok_visa\r\n"),
        ("Transfer-Encoding: chunked", "nonsense\r\n"),
        ("Transfer-Encoding: chunked", "fffffffffffffffff\r\n"),
    ] {
        let mut connection = Raw::connect(app.address);
        connection.send([head(&app, length), part.to_owned()].concat().as_bytes());
        connection.half_close();
        if let Some(reply) = connection.answer() {
            assert_eq!(reply.status, 400, "{reply:?}");
        }
        assert!(connection.closed_within(CLOSED).is_some(), "{length} {part}");
    }
    assert_eq!(app.database.count("charges"), 0);
}

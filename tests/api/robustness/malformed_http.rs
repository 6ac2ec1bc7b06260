//! Heads that make no sense, lengths that two readers read differently, and what is unusual but right.

use std::time::Duration;

use crate::support::bytes::{Bytes, FORM, Unchanged};
use crate::support::{CHARGE, Raw, TestApp, fresh_key};

#[test]
fn headers_that_make_no_sense_are_refused_and_the_server_goes_on() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    for value in
        [&b"\xff\xfe"[..], b"Bearer \xff", b"Basic \xff", b"Basic AA==", b"Basic ====", b"Bearer", b""]
    {
        let line = [b"Authorization: ", value].concat();
        Bytes::post(&app, FORM, CHARGE).without("Authorization").header(line).is_refused(&app, 401);
    }
    for key in [&b"\xff"[..], b"a b", b"a\tb", b"\"open", b"\"a\";b=1", b"", &b"k".repeat(256)] {
        let reply = Bytes::post(&app, FORM, CHARGE).key(key).is_refused(&app, 400);
        assert_eq!(reply.body["error"]["code"], "idempotency_key_invalid");
    }
    let twice = Bytes::post(&app, FORM, CHARGE).header("Idempotency-Key: another");
    twice.is_refused(&app, 400);
    Bytes::post(&app, FORM, CHARGE).header("Stripe-Account: acct_1").is_refused(&app, 400);
    // What is no HTTP never reaches the service.
    for line in
        [&b"No colon"[..], b"Nul: a\0b", b"Na me: x", b": x", b"\xff: x", b"Length: 1\r\nContent-Length: -1"]
    {
        Bytes::get(&app, b"/v1/charges").header(line.to_vec()).is_refused_by_http(&app);
    }
    let mut many = Bytes::get(&app, b"/v1/charges");
    for number in 0..500 {
        many = many.header(format!("X-{number}: y"));
    }
    many.is_refused_by_http(&app);
    let large = Bytes::get(&app, b"/v1/charges").header([b"X: ".to_vec(), b"y".repeat(300_000)].concat());
    large.is_refused_by_http(&app);
    Bytes::get(&app, [b"/v1/charges?a=".to_vec(), b"y".repeat(300_000)].concat()).is_refused_by_http(&app);
    for target in [&b"no-slash"[..], b"/v1/charges\xff", b"/v1/ch arges", b"/v1/charges\0", b""] {
        Bytes::get(&app, target).is_refused_by_http(&app);
    }
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/charges HTTP/9.9\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut connection = Raw::connect(app.address);
        connection.send(bytes);
        connection.half_close();
        if let Some(reply) = connection.answer() {
            assert!((400..500).contains(&reply.status) || reply.status == 505, "{reply:?}");
        }
    }
    unchanged.check();
}

#[test]
fn a_request_cannot_be_smuggled_behind_a_length_that_two_readers_read_differently() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    let hidden = Bytes::post(&app, FORM, CHARGE).write();
    let chunked = [b"0\r\n\r\n".to_vec(), hidden.clone()].concat();
    let post = || Bytes::post(&app, FORM, b"").without("Content-Length");
    for (lines, body) in [
        (vec!["Content-Length: 5", "Content-Length: 0"], &hidden),
        (vec!["Content-Length: 0", "Content-Length: 5"], &hidden),
        (vec!["Content-Length: 0, 5"], &hidden),
        (vec!["Content-Length: +5"], &hidden),
        (vec!["Content-Length: 0x5"], &hidden),
        (vec!["Content-Length: -5"], &hidden),
        (vec!["Content-Length: 99999999999999999999"], &hidden),
        (vec!["Content-Length: 5", "Transfer-Encoding: chunked"], &chunked),
        (vec!["Transfer-Encoding: chunked", "Content-Length: 5"], &chunked),
        (vec!["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], &chunked),
        (vec!["Transfer-Encoding: gzip, chunked"], &chunked),
        (vec!["Transfer-Encoding: xchunked"], &chunked),
        (vec!["Transfer-Encoding: chunked, identity"], &chunked),
    ] {
        let mut request = post();
        for line in &lines {
            request = request.header(*line);
        }
        request.body = body.clone();
        let mut connection = Raw::connect(app.address);
        let reply = connection.ask(&request.write()).unwrap_or_else(|| panic!("{lines:?}: no answer"));
        assert!((400..500).contains(&reply.status), "{lines:?}: {reply:?}");
        // And nothing of what follows is taken for a request.
        while let Some(next) = connection.answer() {
            assert!((400..500).contains(&next.status), "{lines:?}: {next:?}");
            if connection.closed_within(Duration::from_secs(1)).is_some() {
                break;
            }
        }
    }
    unchanged.check();
}

#[test]
fn unusual_but_valid_http_is_served() {
    let app = TestApp::spawn();
    // Pipelined: answers come in order.
    let mut connection = Raw::connect(app.address);
    let keys: Vec<String> = (0..3).map(|_| fresh_key()).collect();
    let pipelined = keys.iter().flat_map(|key| Bytes::post(&app, FORM, CHARGE).key(key).write());
    connection.send(&pipelined.collect::<Vec<u8>>());
    for key in &keys {
        let reply = connection.answer().expect("each is answered");
        assert_eq!((reply.status, reply.header("idempotency-key")), (201, Some(key.as_str())));
    }
    // HTTP/1.0, and its end of the connection.
    let mut connection = Raw::connect(app.address);
    assert_eq!(connection.ask(&Bytes::post(&app, FORM, CHARGE).write_as("HTTP/1.0")).unwrap().status, 201);
    assert!(connection.closed_within(Duration::from_secs(5)).is_some());
    // A target with scheme and host, as for a proxy.
    let absolute = Bytes::post(&app, FORM, CHARGE).target(b"http://elsewhere.example/v1/charges");
    assert_eq!(absolute.send(&app).unwrap().status, 201);
    // A client that sends nothing more, but listens.
    let mut connection = Raw::connect(app.address);
    connection.send(&Bytes::post(&app, FORM, CHARGE).write());
    connection.half_close();
    assert_eq!(connection.answer().expect("it is still listened to").status, 201);
    // A client that asks first whether its body is wanted.
    let mut connection = Raw::connect(app.address);
    let mut asking = Bytes::post(&app, FORM, CHARGE).header("Expect: 100-continue");
    let body = std::mem::take(&mut asking.body);
    assert_eq!(connection.ask(&asking.write()).unwrap().status, 100);
    assert_eq!(connection.ask(&body).unwrap().status, 201);
    // Chunks of one byte.
    let mut chunked =
        Bytes::post(&app, FORM, b"").without("Content-Length").header("Transfer-Encoding: chunked");
    chunked.body = CHARGE.bytes().flat_map(|byte| [b"1\r\n", &[byte][..], b"\r\n"].concat()).collect();
    chunked.body.extend(b"0\r\n\r\n");
    assert_eq!(chunked.send(&app).unwrap().status, 201);
    assert_eq!(app.database.count("charges"), 8);
    app.database.assert_clean();
}

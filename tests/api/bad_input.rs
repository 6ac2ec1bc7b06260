//! What clients send by mistake or by malice: each request gets an error that says why, nothing changes, and the server
//! goes on. Bodies that are too large or too slow are in [`super::bad_bodies`], chance is in [`super::fuzz`].

use std::time::Duration;

use crate::support::{Raw, RawReply, TestApp, TestDatabase, fresh_key};

const FORM: &str = "application/x-www-form-urlencoded";
const CHARGE: &[u8] = b"amount=1000&currency=usd&source=tok_visa";

/// A request as bytes, complete and in order but for what the test spoils.
struct Bytes {
    method: &'static str,
    target: Vec<u8>,
    headers: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Bytes {
    fn get(app: &TestApp, target: &[u8]) -> Self {
        let authorization = format!("Authorization: Bearer {}", app.database.api_key);
        Self {
            method: "GET",
            target: target.to_vec(),
            headers: vec![b"Host: x".to_vec(), authorization.into_bytes()],
            body: Vec::new(),
        }
    }

    fn post(app: &TestApp, media_type: &str, body: &[u8]) -> Self {
        let request = Self { method: "POST", body: body.to_vec(), ..Self::get(app, b"/v1/charges") };
        request
            .header(format!("Idempotency-Key: {}", fresh_key()))
            .header(format!("Content-Type: {media_type}"))
            .header(format!("Content-Length: {}", body.len()))
    }

    fn header(mut self, line: impl Into<Vec<u8>>) -> Self {
        self.headers.push(line.into());
        self
    }

    /// Without the header of this name.
    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|line| !line.starts_with(name.as_bytes()));
        self
    }

    fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    fn target(self, target: &[u8]) -> Self {
        Self { target: target.to_vec(), ..self }
    }

    fn write(&self) -> Vec<u8> {
        self.write_as("HTTP/1.1")
    }

    fn write_as(&self, version: &str) -> Vec<u8> {
        let first = [self.method.as_bytes(), b" ", &self.target, b" ", version.as_bytes(), b"\r\n"].concat();
        let headers = self.headers.iter().flat_map(|line| [line.as_slice(), b"\r\n"].concat());
        first.into_iter().chain(headers).chain(*b"\r\n").chain(self.body.iter().copied()).collect()
    }

    #[track_caller]
    fn send(&self, app: &TestApp) -> Option<RawReply> {
        let mut connection = Raw::connect(app.address);
        connection.send(&self.write());
        connection.answer_to(self.method)
    }

    /// Fails unless the answer is the JSON error with this status.
    #[track_caller]
    fn is_refused(&self, app: &TestApp, status: u16) -> RawReply {
        let shown: String = String::from_utf8_lossy(&self.write()).chars().take(600).collect();
        let reply = self.send(app).unwrap_or_else(|| panic!("no answer to {shown}"));
        assert_eq!(reply.status, status, "{shown}\n\n{} {}", reply.head, reply.body);
        reply.expect_error(status)
    }

    /// Fails unless HTTP itself refuses this: with an error of any form, or by closing.
    #[track_caller]
    fn is_refused_by_http(&self, app: &TestApp) {
        if let Some(reply) = self.send(app) {
            assert!(
                (400..500).contains(&reply.status) || reply.status == 505,
                "{} {}",
                reply.head,
                reply.body
            );
        }
    }
}

/// Fails when it is dropped if anything was written meanwhile, or the server serves no more.
struct Unchanged<'a> {
    app: &'a TestApp,
    before: Vec<i64>,
}

impl<'a> Unchanged<'a> {
    fn watch(app: &'a TestApp) -> Self {
        Self { app, before: rows(&app.database) }
    }

    #[track_caller]
    fn check(self) {
        assert_eq!(rows(&self.app.database), self.before, "something was written");
        let reply = Bytes::post(self.app, FORM, CHARGE).send(self.app).expect("the server goes on");
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
}

fn rows(database: &TestDatabase) -> Vec<i64> {
    let tables = [
        "charges",
        "refunds",
        "customers",
        "tokens",
        "payment_methods",
        "balance_transactions",
        "events",
        "idempotency_records",
    ];
    tables.iter().map(|table| database.count(table)).collect()
}

#[test]
fn json_that_is_broken_or_of_the_wrong_types_is_refused_and_changes_nothing() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    let deep = |open: &str, close: &str| {
        [br#"{"metadata":"#.to_vec(), open.repeat(10_000).into(), close.repeat(10_000).into(), b"}".to_vec()]
            .concat()
    };
    let mut bodies: Vec<Vec<u8>> = [
        "{",
        "[]",
        "null",
        "1",
        "\"text\"",
        "nonsense",
        "{} {}",
        "{'amount':1}",
        "{\"amount\":}",
        "{\"\\u0000\":1}",
        "{\"description\":\"\\ud800\"}",
        "{\"amount\":1000,\"amount\":1000}",
        "\u{feff}{}",
        "{\"amount\":1e999}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    bodies.extend([
        b"{\"description\":\"\xff\"}".to_vec(),
        b"{\"description\":\"\0\"}".to_vec(),
        b"\xc0\xaf".to_vec(),
    ]);
    bodies.extend([deep("[", "]"), deep("{\"a\":", "}"), b"[".repeat(200_000)]);
    // A charge that is right but for one member.
    for spoilt in [
        r#""amount":9223372036854775808"#,
        r#""amount":-9223372036854775809"#,
        r#""amount":1e30"#,
        r#""amount":10.5"#,
        r#""amount":100000000"#,
        r#""amount":0"#,
        r#""amount":-1"#,
        r#""amount":null"#,
        r#""amount":true"#,
        r#""amount":[1000]"#,
        r#""amount":{"a":1000}"#,
        r#""amount":"ten""#,
        r#""amount":"""#,
        r#""currency":1"#,
        r#""currency":"""#,
        r#""currency":"zzz""#,
        r#""currency":["usd"]"#,
        r#""currency":"usd\u0000""#,
        r#""source":[]"#,
        r#""source":{}"#,
        r#""source":1"#,
        r#""source":"tok_\u0000""#,
        r#""source":"""#,
        r#""source":{"number":"4242424242424242","exp_month":99999999999999999999,"exp_year":2099}"#,
        r#""source":{"number":{"a":1},"exp_month":1,"exp_year":2099}"#,
        r#""metadata":"text""#,
        r#""metadata":{"a":{"b":1}}"#,
        r#""metadata":[1]"#,
        r#""metadata":{"\u0000":"a"}"#,
        r#""description":{"a":1}"#,
        r#""description":"a\u0000b""#,
        r#""capture":"maybe""#,
        r#""capture":2"#,
        r#""shipping":"text""#,
        r#""shipping":{"address":1,"name":"x"}"#,
        r#""expand":"customer""#,
        r#""expand":[1]"#,
        r#""expand":["a.b.c.d.e.f"]"#,
        r#""customer":1"#,
        r#""customer":"cus_\u0000""#,
        r#""nonsense":1"#,
        r#""":1"#,
    ] {
        let own = spoilt.split(':').next().unwrap();
        let others = [r#""amount":1000"#, r#""currency":"usd""#, r#""source":"tok_visa""#];
        let kept: Vec<&str> = others.into_iter().filter(|member| !member.starts_with(own)).collect();
        bodies.push(format!("{{{spoilt},{}}}", kept.join(",")).into_bytes());
    }
    for body in &bodies {
        Bytes::post(&app, "application/json", body).is_refused(&app, 400);
    }
    unchanged.check();
}

#[test]
fn forms_that_are_broken_or_of_the_wrong_types_are_refused_and_change_nothing() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    let deep = format!("metadata{}=1", "[a]".repeat(10_000)).into_bytes();
    let mut bodies: Vec<Vec<u8>> = vec![deep, b"description=\xff".to_vec(), b"description=\0".to_vec()];
    for spoilt in [
        "description=%",
        "description=%4",
        "description=%zz",
        "description=%ff",
        "description=%00",
        "%00=1",
        "=1",
        "description=a&description=b",
        "description=a&description[b]=c",
        "metadata[=1",
        "metadata]=1",
        "metadata[a]b=1",
        "metadata[a[b]]=1",
        "metadata[a][b]=1",
        "metadata=text",
        "shipping=text",
        "shipping[address]=text",
        "expand=customer",
        "expand[a]=customer",
        "expand[]=nonsense",
        "expand[1000000000000000000000]=customer",
        "amount=1000",
        "amount[]=1",
        "capture=maybe",
        "customer=%F0%9F%92%A3",
        "nonsense=1",
        "card[number]=4242",
    ] {
        bodies.push([CHARGE, b"&", spoilt.as_bytes()].concat());
    }
    for amount in [
        "99999999999999999999",
        "-99999999999999999999",
        "1e3",
        "10.5",
        "0x10",
        "+",
        "-",
        "",
        "%20",
        "%D9%A1",
    ] {
        bodies.push(format!("amount={amount}&currency=usd&source=tok_visa").into_bytes());
    }
    for body in &bodies {
        Bytes::post(&app, FORM, body).is_refused(&app, 400);
    }
    unchanged.check();
}

#[test]
fn a_body_of_another_type_is_415_whatever_it_holds() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    for media_type in [
        "text/plain",
        "text/json",
        "application/xml",
        "application/octet-stream",
        "nonsense",
        "application/",
        "/",
        "application/json; charset=latin1",
        "application/x-www-form-urlencoded; charset=utf-16",
        "multipart/form-data; boundary=x",
        "application/json, text/plain",
    ] {
        Bytes::post(&app, media_type, CHARGE).is_refused(&app, 415);
    }
    for encoding in ["gzip", "br", "deflate", "zstd", "gzip, identity", "nonsense"] {
        let request = Bytes::post(&app, FORM, CHARGE).header(format!("Content-Encoding: {encoding}"));
        request.is_refused(&app, 415);
    }
    let raw = Bytes::post(&app, FORM, CHARGE).without("Content-Type").header(*b"Content-Type: \xff/\xfe");
    raw.is_refused(&app, 415);
    unchanged.check();
}

#[test]
fn what_is_not_in_the_table_of_routes_is_404_or_405_before_credentials_are_asked_for() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    for path in [
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/charges/",
        "//v1/charges",
        "/V1/charges",
        "/v1/charges/a/b/c",
        "/v1/../v1/charges",
        "/v1/charges/a/capture/",
        "/v1/%63harges%2F",
        "/favicon.ico",
        "/.git/config",
        "/v1/nothing?a=%00",
        "/v1/nothing/%00",
        "/v1/nothing/%ff",
        "/v1/nothing/%zz",
    ] {
        Bytes::get(&app, path.as_bytes()).without("Authorization").is_refused(&app, 404);
    }
    for (method, path, allow) in [
        ("PUT", "/v1/charges", "GET, POST"),
        ("DELETE", "/v1/charges", "GET, POST"),
        ("PATCH", "/v1/customers/cus_x", "GET, POST, DELETE"),
        ("GET", "/v1/charges/ch_x/capture", "POST"),
        ("POST", "/v1/balance", "GET"),
        ("OPTIONS", "/v1/charges", "GET, POST"),
        ("HEAD", "/v1/nothing/charges/../x", ""),
        ("HEAD", "/v1/charges", "GET, POST"),
        ("TRACE", "/v1/charges", "GET, POST"),
        ("FROBNICATE", "/v1/charges", "GET, POST"),
        ("POST", "/healthz", "GET"),
        ("DELETE", "/readyz", "GET"),
        ("PUT", "/metrics", "GET"),
    ] {
        let request = Bytes::get(&app, path.as_bytes()).method(method).without("Authorization");
        let request = if method == "POST" { request.header("Content-Length: 0") } else { request };
        let reply = request.send(&app).expect("an answer");
        assert_eq!(reply.status, if allow.is_empty() { 404 } else { 405 }, "{method} {path}: {}", reply.head);
        assert_eq!(reply.header("allow").unwrap_or(""), allow, "{method} {path}");
        if method == "HEAD" {
            assert!(reply.bytes.is_empty());
        } else {
            reply.expect_error(405);
        }
    }
    unchanged.check();
}

#[test]
fn paths_and_queries_that_make_no_sense_are_the_callers_fault() {
    let app = TestApp::spawn();
    let unchanged = Unchanged::watch(&app);
    let long = "a".repeat(20_000);
    for path in [
        "charges/%00",
        "charges/%ff",
        "charges/%zz",
        "charges/%",
        "charges/ch_%00",
        "customers/cus_'--",
        "refunds/re_0",
    ] {
        Bytes::get(&app, format!("/v1/{path}").as_bytes()).is_refused(&app, 404);
    }
    for noun in ["charges/", "charges/ch_", "customers/", "events/evt_", "idempotency_keys/"] {
        Bytes::get(&app, format!("/v1/{noun}{long}").as_bytes()).is_refused(&app, 404);
    }
    for key in ["%00", "a%00b", "%ff", "%zz", "%", "%F0%9F%92%A3", "a%20b", "%22open", "%0d%0a"] {
        Bytes::get(&app, format!("/v1/idempotency_keys/{key}").as_bytes()).is_refused(&app, 404);
    }
    for query in [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=ten",
        "limit=1.5",
        "limit=",
        "limit=9999999999999999999999",
        "limit[]=1",
        "limit=1&limit=2",
        "limit%00=1",
        "a[[",
        "%",
        "%zz",
        "%ff=1",
        "nonsense=1",
        "customer=%00",
        "customer=cus_%ff",
        "starting_after=ch_%00",
        "starting_after=x&ending_before=y",
        "created=x",
        "created[gt]=x",
        "created[]=1",
        "created[nonsense]=1",
        "created=99999999999999999999",
        "created[gt]=-99999999999999999999",
        "expand=a",
        "expand[]=data.a.b.c.d.e",
        "expand[]=nonsense",
    ] {
        Bytes::get(&app, format!("/v1/charges?{query}").as_bytes()).is_refused(&app, 400);
    }
    let deep = format!("/v1/charges?a{}=1", "[a]".repeat(10_000));
    Bytes::get(&app, deep.as_bytes()).is_refused(&app, 400);
    for query in [
        "customers?email=%00",
        "events?type=%00",
        "events?types[]=%00",
        "balance_transactions?currency=%00",
        "balance_transactions?source=%00",
    ] {
        Bytes::get(&app, format!("/v1/{query}").as_bytes()).is_refused(&app, 400);
    }
    // The ends of what a time or an e-mail may be are questions with an answer.
    for query in [
        "charges?created[gte]=0",
        "charges?created[lt]=9223372036854775807",
        "charges?created=253402300799",
        "customers?email=%27%3B--",
        "charges?&&",
        "charges?",
        "events?type=charge.*",
    ] {
        let reply = Bytes::get(&app, format!("/v1/{query}").as_bytes()).send(&app).unwrap();
        assert!(reply.status == 200 || reply.status == 400, "{query}: {} {}", reply.head, reply.body);
    }
    unchanged.check();
}

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
    for value in [&b"\xff"[..], b"a b", b"a\tb", b"\"open", b"\"a\";b=1", b"", &b"k".repeat(256)] {
        let line = [b"Idempotency-Key: ", value].concat();
        let reply =
            Bytes::post(&app, FORM, CHARGE).without("Idempotency-Key").header(line).is_refused(&app, 400);
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
    Bytes::get(&app, &[b"/v1/charges?a=".to_vec(), b"y".repeat(300_000)].concat()).is_refused_by_http(&app);
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
            assert!((400..500).contains(&reply.status) || reply.status == 505, "{}", reply.head);
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
        connection.send(&request.write());
        let reply = connection.answer().unwrap_or_else(|| panic!("{lines:?}: no answer"));
        assert!((400..500).contains(&reply.status), "{lines:?}: {}", reply.head);
        // And nothing of what follows is taken for a request.
        while let Some(next) = connection.answer() {
            assert!((400..500).contains(&next.status), "{lines:?}: {}", next.head);
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
    let pipelined = keys.iter().flat_map(|key| {
        Bytes::post(&app, FORM, CHARGE)
            .without("Idempotency-Key")
            .header(format!("Idempotency-Key: {key}"))
            .write()
    });
    connection.send(&pipelined.collect::<Vec<u8>>());
    for key in &keys {
        let reply = connection.answer().expect("each is answered");
        assert_eq!((reply.status, reply.header("idempotency-key")), (201, Some(key.as_str())));
    }
    // HTTP/1.0, and its end of the connection.
    let mut connection = Raw::connect(app.address);
    connection.send(&Bytes::post(&app, FORM, CHARGE).write_as("HTTP/1.0"));
    assert_eq!(connection.answer().unwrap().status, 201);
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
    connection.send(&asking.write());
    assert_eq!(connection.answer().unwrap().status, 100);
    connection.send(&body);
    assert_eq!(connection.answer().unwrap().status, 201);
    // Chunks of one byte.
    let mut chunked =
        Bytes::post(&app, FORM, b"").without("Content-Length").header("Transfer-Encoding: chunked");
    chunked.body = CHARGE.iter().flat_map(|byte| [b"1\r\n", &[*byte][..], b"\r\n"].concat()).collect();
    chunked.body.extend(b"0\r\n\r\n");
    assert_eq!(chunked.send(&app).unwrap().status, 201);
    assert_eq!(app.database.count("charges"), 8);
    app.database.assert_clean();
}

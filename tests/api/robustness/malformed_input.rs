//! Malformed requests, by mistake or by malice: each gets an error that says why, nothing changes, and the server goes
//! on. [`super::malformed_http`] has the cases below HTTP, [`super::slow_and_endless_bodies`] those of the transfer,
//! and [`super::random_requests`] tries chance.

use crate::support::bytes::{Bytes, FORM, Unchanged};
use crate::support::{CHARGE, TestApp};

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
    // A charge that is valid but for one member.
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
        bodies.push(format!("{CHARGE}&{spoilt}").into_bytes());
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
fn an_unknown_route_or_method_is_404_or_405_before_credentials_are_checked() {
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
        Bytes::get(&app, path).without("Authorization").is_refused(&app, 404);
    }
    for (method, path, allow) in [
        ("PUT", "/v1/charges", "GET, HEAD, POST"),
        ("DELETE", "/v1/charges", "GET, HEAD, POST"),
        ("PATCH", "/v1/customers/cus_x", "GET, HEAD, POST, DELETE"),
        ("GET", "/v1/charges/ch_x/capture", "POST"),
        ("POST", "/v1/balance", "GET, HEAD"),
        ("OPTIONS", "/v1/charges", "GET, HEAD, POST"),
        ("HEAD", "/v1/nothing/charges/../x", ""),
        ("HEAD", "/v1/charges/ch_x/capture", "POST"),
        ("TRACE", "/v1/charges", "GET, HEAD, POST"),
        ("FROBNICATE", "/v1/charges", "GET, HEAD, POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/readyz", "GET, HEAD"),
        ("PUT", "/metrics", "GET, HEAD"),
    ] {
        let request = Bytes::get(&app, path).method(method).without("Authorization");
        let request = if method == "POST" { request.header("Content-Length: 0") } else { request };
        let reply = request.send(&app).expect("an answer");
        assert_eq!(reply.status, if allow.is_empty() { 404 } else { 405 }, "{method} {path}: {reply:?}");
        assert_eq!(reply.header("allow").unwrap_or(""), allow, "{method} {path}");
        if method == "HEAD" {
            assert!(reply.bytes.is_empty());
        } else {
            reply.expect_any_error(405);
        }
    }
    unchanged.check();
}

#[test]
fn malformed_paths_and_queries_are_the_callers_fault() {
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
        Bytes::get(&app, format!("/v1/{path}")).is_refused(&app, 404);
    }
    for noun in ["charges/", "charges/ch_", "customers/", "events/evt_", "idempotency_keys/"] {
        Bytes::get(&app, format!("/v1/{noun}{long}")).is_refused(&app, 404);
    }
    for key in ["%00", "a%00b", "%ff", "%zz", "%", "%F0%9F%92%A3", "a%20b", "%22open", "%0d%0a"] {
        Bytes::get(&app, format!("/v1/idempotency_keys/{key}")).is_refused(&app, 404);
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
        Bytes::get(&app, format!("/v1/charges?{query}")).is_refused(&app, 400);
    }
    let deep = format!("/v1/charges?a{}=1", "[a]".repeat(10_000));
    Bytes::get(&app, deep).is_refused(&app, 400);
    for query in [
        "customers?email=%00",
        "events?type=%00",
        "events?types[]=%00",
        "balance_transactions?currency=%00",
        "balance_transactions?source=%00",
    ] {
        Bytes::get(&app, format!("/v1/{query}")).is_refused(&app, 400);
    }
    // The bounds themselves of a time and an e-mail are valid.
    for query in [
        "charges?created[gte]=0",
        "charges?created[lt]=9223372036854775807",
        "charges?created=253402300799",
        "customers?email=%27%3B--",
        "charges?&&",
        "charges?",
        "events?type=charge.*",
    ] {
        let reply = Bytes::get(&app, format!("/v1/{query}")).send(&app).unwrap();
        assert!(reply.status == 200 || reply.status == 400, "{query}: {reply:?}");
    }
    unchanged.check();
}

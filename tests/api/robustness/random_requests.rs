//! Chance at every route of the table: whatever comes, it is never our fault, and the caller is told what was theirs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use futures_util::future::join_all;
use oncepay::app;
use reqwest::Method;

use crate::support::{Call, Random, Reply, TestApp, fresh_key};

const REQUESTS: usize = 2_000;
const TASKS: usize = 8;

#[tokio::test]
async fn whatever_is_sent_to_any_route_is_answered_and_never_with_a_fault_of_ours() {
    let seed = Random::seed();
    let app = TestApp::spawn();
    let ids = vec![
        app.charge().await,
        customer(&app).await,
        "ch_0".to_owned(),
        "%00".to_owned(),
        "cus_%ff".to_owned(),
    ];
    let seen = RefCell::new(BTreeMap::<u16, usize>::new());
    let tasks = (0..TASKS).map(async |task| {
        let mut random = Random::new(seed.wrapping_add(task as u64));
        for _ in 0..REQUESTS / TASKS {
            let (what, call) = request(&app, &ids, &mut random);
            // A URL that is none, or a header that is none, never leaves the client.
            let reply = match call.try_send().await {
                Ok(reply) => reply,
                Err(error) if error.is_builder() => continue,
                Err(error) => panic!("{what}: {error:?}"),
            };
            check(&what, &reply);
            *seen.borrow_mut().entry(reply.status).or_default() += 1;
        }
    });
    join_all(tasks).await;
    // Chance got everywhere: what works and what is refused.
    println!("{seen:?}");
    for status in [200, 201, 400, 404, 405, 415] {
        assert!(seen.borrow().contains_key(&status), "{status} never came");
    }
    app.database.assert_clean();
    app.charge().await;
}

fn check(what: &str, reply: &Reply) {
    let text = String::from_utf8_lossy(&reply.bytes);
    assert!(reply.status < 500 && reply.status >= 200, "{what}: {} {text}", reply.status);
    if reply.status >= 400 {
        let error = &reply.body["error"];
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{what}: {text}");
        let kinds = ["api_error", "card_error", "idempotency_error", "invalid_request_error"];
        assert!(kinds.iter().any(|kind| error["type"] == *kind), "{what}: {text}");
        assert!(reply.header("Request-Id").is_some(), "{what}");
    } else {
        assert!(reply.body["object"].is_string(), "{what}: {text}");
    }
}

async fn customer(app: &TestApp) -> String {
    let call = app.post("/v1/customers").key(&fresh_key()).form("source=tok_visa");
    call.send().await.expect(201).id().to_owned()
}

/// A random request to a random route, and how to tell it.
fn request(app: &TestApp, ids: &[String], random: &mut Random) -> (String, Call) {
    let mut routes = app::routes();
    if random.once_in(2) {
        routes.retain(|route| route.policy.is_some());
    }
    let route = &routes[random.below(routes.len())];
    let method = match random.below(12) {
        0 => random.pick(&[Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH]),
        1 => random.pick(&[Method::GET, Method::POST]),
        _ => route.method.as_str().parse().unwrap(),
    };
    let mut path = String::new();
    for part in route.path.split('/').skip(1) {
        path.push('/');
        path.push_str(&if part.starts_with('{') { random.pick(ids) } else { part.to_owned() });
    }
    if random.once_in(if method == Method::GET { 2 } else { 8 }) {
        let pairs: Vec<String> = (0..=random.below(3)).map(|_| pair(ids, random)).collect();
        path = format!("{path}?{}", pairs.join("&"));
    }
    let body = match random.below(7) {
        // Right, or nearly so.
        0 | 1 => {
            let good = random.pick(&GOOD).to_owned() + &random.pick(&ids[..3]);
            let more = if random.once_in(2) { format!("&{}", pair(ids, random)) } else { String::new() };
            (good + &more).into_bytes()
        }
        2 => random_bytes(random, 300),
        3 | 4 => json(ids, random, 0).into_bytes(),
        _ => {
            let pairs: Vec<String> = (0..random.below(6)).map(|_| pair(ids, random)).collect();
            pairs.join("&").into_bytes()
        }
    };
    let types = ["application/json", "application/x-www-form-urlencoded", "application/json", "text/plain"];
    let media_type = if body.starts_with(b"amount=1") || body.starts_with(b"name=") {
        types[1]
    } else {
        random.pick(&types)
    };
    let what = format!("{method} {path} {media_type} {:?}", String::from_utf8_lossy(&body));
    let mut call = app.call(method, &path);
    if !random.once_in(10) {
        let keys = ["a", "b", "\"c\""];
        call = if random.once_in(5) { call.key(random.pick(&keys)) } else { call.key(&fresh_key()) };
    }
    if random.once_in(10) {
        let names =
            ["Stripe-Version", "Idempotency-Key", "Content-Encoding", "Accept", "X-Forwarded-For", "Range"];
        call = call.header(random.pick(&names), random.pick(&["1", "é", "", "gzip", "bytes=0-1"]));
    }
    (what, call.body(media_type, body))
}

/// What some route takes, when an id follows.
const GOOD: [&str; 4] = [
    "amount=1000&currency=usd&source=tok_visa&metadata[id]=",
    "amount=1000&currency=usd&source=tok_chargeDeclined&description=",
    "name=",
    "amount=100&charge=",
];

/// Names that mean something to some route, so that chance gets past the first check.
const NAMES: [&str; 24] = [
    "amount",
    "currency",
    "source",
    "customer",
    "capture",
    "metadata",
    "metadata[a]",
    "description",
    "card",
    "card[number]",
    "charge",
    "reason",
    "limit",
    "starting_after",
    "ending_before",
    "created",
    "created[gt]",
    "expand[]",
    "type",
    "types[]",
    "email",
    "shipping[address][line1]",
    "name",
    "default_source",
];

const VALUES: [&str; 22] = [
    "1000",
    "-1",
    "0",
    "9223372036854775807",
    "9223372036854775808",
    "10.5",
    "usd",
    "jpy",
    "tok_visa",
    "tok_chargeDeclined",
    "tok_visa_chargeDeclined",
    "true",
    "",
    "%00",
    "%ff",
    "%F0%9F%92%A9",
    "charge.*",
    "customer",
    "data.customer",
    "a@b.example",
    "4242424242424242",
    "fraudulent",
];

fn pair(ids: &[String], random: &mut Random) -> String {
    let name = random.pick(&NAMES);
    let value = if random.once_in(4) { random.pick(ids) } else { random.pick(&VALUES).to_owned() };
    format!("{name}={value}")
}

fn json(ids: &[String], random: &mut Random, depth: usize) -> String {
    match if depth == 0 { 7 } else { random.below(9) } {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => random.pick(&["0", "1000", "-1", "1.5", "1e400", "9223372036854775808"]).to_owned(),
        3 => format!("{:?}", random.pick(ids)),
        4 => r#""\u0000""#.to_owned(),
        5 if depth < 4 => {
            let items: Vec<String> = (0..random.below(3)).map(|_| json(ids, random, depth + 1)).collect();
            format!("[{}]", items.join(","))
        }
        6 | 7 if depth < 4 => {
            let members: Vec<String> = (0..random.below(5))
                .map(|_| {
                    let name = random.pick(&NAMES).split('[').next().unwrap();
                    format!("{name:?}:{}", json(ids, random, depth + 1))
                })
                .collect();
            format!("{{{}}}", members.join(","))
        }
        _ => format!("{:?}", random.pick(&VALUES)),
    }
}

fn random_bytes(random: &mut Random, most: usize) -> Vec<u8> {
    (0..random.below(most)).map(|_| random.next() as u8).collect()
}

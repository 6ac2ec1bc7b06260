//! The four cases of the contract for every keyed route, generated from the table of routes: the first call creates,
//! the second replays, another body is refused, and an expired key runs again.

use std::collections::BTreeMap;
use std::time::Duration;

use oncepay::app::routes;
use oncepay::http::Policy;
use oncepay::http::Route;
use reqwest::Method;

use crate::support::samples::samplers;
use crate::support::{Reply, TestApp, fresh_key};

/// Routes that write no event, and whose state is the same after a second run.
const SETS: &[&str] = &["/v1/webhook_endpoints/{endpoint}"];

/// Whether a route is for the card network alone. The id in the signed body is its key, which
/// [`crate::network::notifications`] tests.
fn is_signed(route: &Route) -> bool {
    matches!(route.policy, Some(Policy::Signed { .. }))
}

fn is_keyed(route: &Route) -> bool {
    matches!(route.policy, Some(Policy::Keyed { .. }))
}

/// The path of a route, with `x` wherever it names something.
fn filled(route: &Route) -> String {
    let parts = route.path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn every_keyed_route_has_a_sample_and_every_sample_a_route() {
    let keyed: Vec<&str> = routes().iter().filter(|route| is_keyed(route)).map(|route| route.path).collect();
    let sampled: Vec<&str> = samplers().map(|sampler| sampler.path).collect();
    for route in &keyed {
        let samples = sampled.iter().filter(|path| *path == route).count();
        assert_eq!(samples, 1, "POST {route} has {samples} samples in SAMPLERS, and needs one");
    }
    for path in &sampled {
        assert!(keyed.contains(path), "POST {path} has a sample in SAMPLERS, but is no keyed route");
    }
}

#[tokio::test]
async fn every_keyed_route_creates_then_replays_then_refuses_another_body_then_runs_again() {
    let app = TestApp::spawn();
    for sampler in samplers() {
        let sample = (sampler.make)(&app).await;
        let key = fresh_key();
        let call = |body: &str| app.post(&sample.path).key(&key).form(body);
        let name = sampler.path;

        // The first call creates.
        let before = app.database.contents();
        let first = call(sample.body).send().await;
        assert!(first.status == 200 || first.status == 201, "{name}: {first:?}");
        assert!(!first.is_replay() && first.header("Original-Request").is_none(), "{name}: {first:?}");
        let after = app.database.contents();
        assert_effect(&before, &after, name);
        if first.status == 201 {
            assert_eq!(first.header("Location"), Some(format!("{}/{}", sample.path, first.id()).as_str()));
        }

        // The second replays, byte for byte, and writes nothing, not even an event.
        for _ in 0..2 {
            assert_replays(&call(sample.body).send().await, &first, name);
            assert_eq!(app.database.contents(), after, "{name}: a replay has written");
        }

        // Another body is refused, and changes nothing.
        let other = call(sample.another_body).send().await.expect_error(422, "idempotency_key_reused");
        assert_eq!(other.body["error"]["type"], "idempotency_error", "{name}");
        assert_eq!(other.body["error"]["retry"], "new_key", "{name}");
        let to_an_sdk = call(sample.another_body).header("Stripe-Version", "2026-08-26");
        let other = to_an_sdk.send().await.expect_error(400, "idempotency_key_reused");
        assert_eq!(other.body["error"]["type"], "idempotency_error", "{name}");
        assert_eq!(app.database.contents(), after, "{name}: a refused body has written");
        assert_replays(&call(sample.body).send().await, &first, name);

        // An expired key runs again, although its row was not swept.
        app.state.clock.advance(Duration::from_secs(24 * 3600 + 1));
        let again = call(sample.body).send().await.expect(sample.again);
        assert!(!again.is_replay(), "{name}: {again:?}");
        if sample.again < 300 {
            if !SETS.contains(&name) {
                assert_effect(&after, &app.database.contents(), name);
            }
            assert_replays(&call(sample.body).send().await, &again, name);
        }
    }
    app.database.assert_clean();
}

/// Checks that a record was written together with some other row.
#[track_caller]
fn assert_effect(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>, name: &str) {
    let changed: Vec<&str> =
        after.iter().filter(|(table, rows)| before[*table] != **rows).map(|(table, _)| &**table).collect();
    assert!(
        changed.contains(&"idempotency_records") && changed.len() > 1,
        "{name}: only {changed:?} changed"
    );
}

#[track_caller]
fn assert_replays(replay: &Reply, first: &Reply, name: &str) {
    assert!(replay.is_replay(), "{name}: {replay:?}");
    assert_eq!(replay.header("Original-Request"), first.header("Request-Id"), "{name}");
    assert_ne!(replay.header("Request-Id"), first.header("Request-Id"), "{name}");
    assert_eq!((replay.status, &replay.bytes), (first.status, &first.bytes), "{name}");
    for header in ["Content-Type", "Location", "Content-Length"] {
        assert_eq!(replay.header(header), first.header(header), "{name}");
    }
    let date = replay.header("Date").expect("each answer has its date");
    let date = chrono::DateTime::parse_from_rfc2822(date).unwrap().to_utc();
    let age = chrono::Utc::now() - date;
    assert!(age < chrono::Duration::seconds(30), "{name}: the date is {age} old");
}

#[tokio::test]
async fn without_a_key_no_post_runs() {
    let app = TestApp::spawn();
    let before = app.database.contents();
    let posts = |route: &&Route| route.method == Method::POST.as_str() && !is_signed(route);
    for route in routes().iter().filter(posts) {
        // The check of the key comes before the check of the body.
        let reply = app.post(&filled(route)).body("text/plain", "?").send().await;
        let reply = reply.expect_error(400, "idempotency_key_required");
        let message = reply.body["error"]["message"].as_str().unwrap();
        assert!(message.contains("require-idempotency-key"), "{message}");
        assert_eq!(reply.body["error"]["type"], "invalid_request_error");
    }
    assert_eq!(app.database.contents(), before);
}

#[tokio::test]
async fn no_get_takes_a_parameter_that_it_does_not_know() {
    let app = TestApp::spawn();
    let gets = |route: &&Route| route.method == Method::GET.as_str() && route.path.starts_with("/v1");
    for route in routes().iter().filter(gets) {
        let reply = app.get(&format!("{}?nonsense=1", filled(route))).send().await;
        let reply = reply.expect_error(400, "parameter_unknown");
        assert_eq!(reply.param(), "nonsense", "{}", route.path);
    }
}

#[tokio::test]
async fn every_get_and_delete_ignores_the_header() {
    let app = TestApp::spawn();
    let before = app.database.contents();
    let key = fresh_key();
    for route in routes().iter().filter(|route| !is_keyed(route) && !is_signed(route)) {
        let method = Method::from_bytes(route.method.as_str().as_bytes()).unwrap();
        let call = || app.call(method.clone(), &filled(route));
        let without = call().send().await;
        assert!([200, 404].contains(&without.status), "{} {}: {without:?}", route.method, route.path);
        // Neither one key for all requests nor a malformed key makes a difference.
        for value in [key.as_str(), "not a key", ""] {
            let with = call().key(value).send().await;
            assert_eq!((with.status, &with.bytes), (without.status, &without.bytes), "{}", route.path);
            assert!(!with.is_replay());
        }
    }
    assert_eq!(app.database.contents(), before);
}

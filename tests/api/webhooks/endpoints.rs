//! Webhook endpoints: their properties, their limits, and the deliveries that are written for them.

use std::time::Duration;

use oncepay::idempotency::faults::{Faults, Point};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::shapes::{LIST, WEBHOOK_ENDPOINT, assert_shape};
use crate::support::{TestApp, fresh_key};

const PATH: &str = "/v1/webhook_endpoints";
const ENDPOINT: &str = "url=https://example.com/hook&enabled_events[]=charge.succeeded";

async fn endpoint(app: &TestApp, form: &str) -> String {
    app.submit(PATH, form).await.expect(201).id().to_owned()
}

/// All deliveries in order, each as the type of its event and its status.
fn deliveries(app: &TestApp, endpoint: &str) -> String {
    let uuid = uuid::Uuid::parse_str(endpoint.strip_prefix("we_").unwrap()).unwrap();
    app.database.text(&format!(
        "SELECT coalesce(string_agg(e.type || ' ' || d.status, ', ' ORDER BY e.id), '') AS text \
         FROM webhook_deliveries d JOIN events e ON (e.account_id, e.id) = (d.account_id, d.event_id) \
         WHERE d.endpoint_id = '{uuid}'"
    ))
}

#[tokio::test]
async fn the_version_of_an_endpoint_is_a_date_with_the_name_of_a_release_or_without() {
    let app = TestApp::spawn();
    for version in [
        "latest",
        "dahlia",
        "2026-8-26",
        "+2026-8-26",
        "2026-02-30",
        "2026-13-01",
        "20260826",
        "2026-08-26.",
        "2026-08-26.Dahlia",
        "2026-08-26.tulip",
        "2026-08-26.dahlia.x",
        "2026-08-26 ",
        "2026-08-26;beta=v1",
        ".dahlia",
    ] {
        let form = format!("{ENDPOINT}&api_version={}", version.replace('+', "%2B"));
        let error = app.submit(PATH, &form).await.expect_error(400, "");
        assert_eq!(error.param(), "api_version", "{version}");
        let message = error.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(version), "{message}");
    }
    app.submit_json(
        PATH,
        &json!({ "url": "https://example.com", "enabled_events": ["*"], "api_version": 20260826 }),
    )
    .await
    .expect_error(400, "");
    assert_eq!(app.database.count("webhook_endpoints"), 0);
    for version in ["2020-08-27", "2024-09-30.acacia", "2025-03-31.basil", "2026-08-26.dahlia", "2024-02-29"]
    {
        let made = app.submit(PATH, &format!("{ENDPOINT}&api_version={version}")).await.expect(201);
        assert_eq!(made.body["api_version"], version);
    }
    let none = app.submit(PATH, &format!("{ENDPOINT}&api_version=")).await.expect(201);
    assert_eq!(none.body["api_version"], Value::Null);
}

#[tokio::test]
async fn a_secret_is_shown_when_it_is_made_and_never_again_and_is_stored_nowhere_in_the_clear() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let create = || app.post(PATH).key(&key).form(ENDPOINT).send();
    let made = create().await.expect(201);
    assert_shape(&made.body, WEBHOOK_ENDPOINT);
    let path = format!("{PATH}/{}", made.id());
    assert_eq!(made.header("Location"), Some(&*path));
    let secret = made.body["secret"].as_str().expect("it is shown").to_owned();
    assert!(secret.starts_with("whsec_") && secret.len() >= 38, "{secret}");
    let roll_key = fresh_key();
    let roll = || app.post(&format!("{path}/roll_secret")).key(&roll_key).form("").send();
    let rolled = roll().await.expect(200);
    let second = rolled.body["secret"].as_str().expect("it is shown").to_owned();
    assert_ne!(second, secret);

    // Only the replays of those two answers show them, byte for byte.
    for (replay, first) in [(create().await, &made), (roll().await, &rolled)] {
        assert!(replay.is_replay());
        assert_eq!((replay.status, &replay.bytes), (first.status, &first.bytes));
    }
    let mut bare = made.body.clone();
    bare.as_object_mut().unwrap().remove("secret");
    assert_eq!(app.read(&path).await, bare);
    assert_eq!(app.read(PATH).await["data"], json!([bare]));
    let updated = app.submit(&path, "description=x").await.expect(200);
    assert_eq!(updated.body.get("secret"), None);

    let dump = app.database.dump();
    assert!(dump.contains("https://example.com/hook"), "the dump shows what is stored");
    for secret in [&secret, &second] {
        let bytes = secret.strip_prefix("whsec_").unwrap();
        for form in [secret.clone(), bytes.to_owned(), hex::encode(secret), hex::encode(bytes)] {
            assert!(!dump.contains(&form), "a secret is stored in the clear");
        }
    }
    let sealed = "SELECT count(*) AS number FROM idempotency_records WHERE sealed";
    assert_eq!(app.database.number(sealed), 2);
    app.database.assert_clean();
}

#[tokio::test]
async fn an_endpoint_shows_what_it_was_made_with() {
    let app = TestApp::spawn();
    let form = "url=http://example.com:81/a?b=c&enabled_events[]=invoice.paid&enabled_events[]=charge.succeeded\
                &description=mine&metadata[a]=1&api_version=2026-08-26.dahlia";
    let made = app.submit(PATH, &form.replace("?b=c", "%3Fb%3Dc")).await.expect(201);
    let shown = |name: &str| made.body[name].clone();
    assert_eq!(shown("url"), "http://example.com:81/a?b=c");
    // An event type that this service does not have is accepted, because Stripe has many more.
    assert_eq!(shown("enabled_events"), json!(["invoice.paid", "charge.succeeded"]));
    assert_eq!((shown("description"), shown("metadata")), (json!("mine"), json!({ "a": "1" })));
    assert_eq!((shown("api_version"), shown("status")), (json!("2026-08-26.dahlia"), json!("enabled")));
    assert_eq!((shown("object"), shown("application")), (json!("webhook_endpoint"), Value::Null));
    let plain =
        app.submit_json(PATH, &json!({ "url": "https://example.com", "enabled_events": ["*"] })).await;
    let plain = plain.expect(201);
    assert_eq!((&plain.body["description"], &plain.body["metadata"]), (&Value::Null, &json!({})));

    let path = format!("{PATH}/{}", made.id());
    for (form, property, expected) in [
        ("url=https://example.com/other", "url", json!("https://example.com/other")),
        ("enabled_events[]=*", "enabled_events", json!(["*"])),
        ("description=", "description", Value::Null),
        ("metadata[b]=2", "metadata", json!({ "a": "1", "b": "2" })),
        ("metadata[a]=", "metadata", json!({ "b": "2" })),
        ("metadata=", "metadata", json!({})),
        ("disabled=true", "status", json!("disabled")),
        ("description=again", "status", json!("disabled")),
        ("disabled=false", "status", json!("enabled")),
    ] {
        let mut expected_shape = app.read(&path).await;
        let updated = app.submit(&path, form).await.expect(200);
        assert_shape(&updated.body, WEBHOOK_ENDPOINT);
        assert_eq!(updated.body[property], expected, "{form}");
        assert_eq!(app.read(&path).await, updated.body);
        // Nothing else has changed.
        expected_shape[property] = expected;
        if form == "description=again" {
            expected_shape["description"] = json!("again");
        }
        assert_eq!(updated.body, expected_shape, "{form}");
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn an_invalid_endpoint_is_refused_by_the_name_of_its_parameter_and_changes_nothing() {
    let app = TestApp::spawn();
    let path = format!("{PATH}/{}", endpoint(&app, ENDPOINT).await);
    let before = app.database.contents();
    let many: String =
        (0..251).map(|number| format!("&enabled_events[]=a.{}", "b".repeat(number + 1))).collect();
    let long = format!("url=https://example.com/{}", "x".repeat(6000));
    for (form, param) in [
        ("url=example.com", "url"),
        ("url=", "url"),
        ("url=ftp://example.com/", "url"),
        ("url=https://user:pass@example.com/", "url"),
        (&*long, "url"),
        ("enabled_events=*", "enabled_events"),
        ("enabled_events=", "enabled_events"),
        ("enabled_events[]=", "enabled_events"),
        ("enabled_events[]=charge", "enabled_events"),
        ("enabled_events[]=charge.*", "enabled_events"),
        ("enabled_events[]=Charge.succeeded", "enabled_events"),
        ("enabled_events[]=charge..succeeded", "enabled_events"),
        ("enabled_events[]=charge.suceeded", "enabled_events"),
        ("enabled_events[]=charge.dispute.opened", "enabled_events"),
        ("enabled_events[]=charge.succeeded&enabled_events[]=%22", "enabled_events"),
        (&many[1..], "enabled_events"),
        (&*format!("metadata[a]={}", "x".repeat(501)), "metadata"),
        ("connect=true", "connect"),
        ("secret=whsec_mine", "secret"),
    ] {
        let updated = app.submit(&path, form).await.expect(400);
        assert!(updated.param().starts_with(param), "{form}: {updated:?}");
        let rest = ENDPOINT.split('&').filter(|part| !part.starts_with(param)).collect::<Vec<_>>().join("&");
        let created = app.submit(PATH, &format!("{form}&{rest}")).await.expect(400);
        assert!(created.param().starts_with(param), "{form}: {created:?}");
    }
    for (form, param) in [("url=https://example.com", "enabled_events"), ("enabled_events[]=*", "url")] {
        let error = app.submit(PATH, form).await.expect_error(400, "parameter_missing");
        assert_eq!(error.param(), param);
    }
    for grace in ["-1", "604801", "x", "1.5"] {
        let form = format!("grace_period_seconds={grace}");
        let error = app.submit(&format!("{path}/roll_secret"), &form).await.expect(400);
        assert_eq!(error.param(), "grace_period_seconds", "{grace}");
    }
    assert_eq!(app.database.contents(), before);
}

#[tokio::test]
async fn a_deleted_endpoint_and_one_of_another_account_do_not_exist() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let [kept, deleted] = [endpoint(&app, ENDPOINT).await, endpoint(&app, ENDPOINT).await];
    let gone = app.delete(&format!("{PATH}/{deleted}")).send().await.expect(200);
    assert_eq!(gone.body, json!({ "id": deleted, "object": "webhook_endpoint", "deleted": true }));
    let before = app.database.contents();
    for (key, id) in [(&app.database.api_key, &deleted), (&other, &kept), (&other, &"we_x".to_owned())] {
        let path = format!("{PATH}/{id}");
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::POST, path.clone()),
            (Method::POST, format!("{path}/roll_secret")),
        ] {
            let call = app.call_as(key, method.clone(), &path).key(&fresh_key());
            let error = call.send().await.expect_error(404, "resource_missing");
            let message = error.body["error"]["message"].as_str().unwrap();
            assert_eq!(message, format!("No such webhook endpoint: '{id}'"), "{method}");
        }
    }
    let list = |key: &str, query: &str| app.call_as(key, Method::GET, &format!("{PATH}{query}")).send();
    assert_eq!(list(&other, "").await.expect(200).body["data"], json!([]));
    let error = list(&other, &format!("?starting_after={kept}")).await.expect_error(400, "resource_missing");
    assert_eq!(error.param(), "starting_after");
    let ours = list(&app.database.api_key, "").await.expect(200).body;
    assert_shape(&ours, LIST);
    assert_eq!((ours["data"].as_array().unwrap().len(), &ours["data"][0]["id"]), (1, &json!(kept)));
    assert_eq!(app.database.contents(), before);
}

#[tokio::test]
async fn an_account_has_at_most_sixteen_endpoints_however_many_are_made_at_once() {
    let app = TestApp::spawn();
    let app = &app;
    let create = |number: usize| {
        let form = format!("{ENDPOINT}&description={number}");
        async move { app.post(PATH).key(&fresh_key()).form(&form).send().await.status }
    };
    let statuses = futures_util::future::join_all((0..24).map(create)).await;
    assert!(statuses.iter().all(|status| [201, 400, 409].contains(status)), "{statuses:?}");
    let made = statuses.iter().filter(|status| **status == 201).count();
    assert!((1..=16).contains(&made), "{made} endpoints were made");
    for number in made..16 {
        assert_eq!(create(number).await, 201);
    }
    let error = app.submit(PATH, ENDPOINT).await.expect(400);
    assert!(error.body["error"]["message"].as_str().unwrap().contains("16"), "{error:?}");
    let list = app.read(&format!("{PATH}?limit=10")).await;
    assert_eq!((list["data"].as_array().unwrap().len(), &list["has_more"]), (10, &json!(true)));
    let last = list["data"][9]["id"].as_str().unwrap();
    let rest = app.read(&format!("{PATH}?limit=10&starting_after={last}")).await;
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["has_more"]), (6, &json!(false)));
    // A deleted endpoint does not count, and another account has a limit of its own.
    app.delete(&format!("{PATH}/{last}")).send().await.expect(200);
    endpoint(app, ENDPOINT).await;
    let other = app.database.other_account();
    app.call_as(&other, Method::POST, PATH).key(&fresh_key()).form(ENDPOINT).send().await.expect(201);
}

#[tokio::test]
async fn a_delivery_is_written_with_its_event_for_each_endpoint_that_wants_it_and_never_without() {
    let broken = "this one breaks";
    let faults = Faults::new(move |point, call| {
        let is_broken = call.claim.as_ref().is_some_and(|claim| claim.key.as_str().starts_with("broken"));
        assert!(!(is_broken && point == Point::BeforeCommit), "{broken}");
    });
    let app = TestApp::with(|builder| builder.faults = faults);
    let other = app.database.other_account();
    let charges = endpoint(&app, ENDPOINT).await;
    let all = endpoint(&app, "url=https://example.com&enabled_events[]=x.y&enabled_events[]=*").await;
    let customers = endpoint(&app, "url=https://example.com&enabled_events[]=customer.created").await;
    let [disabled, deleted] = [
        endpoint(&app, "url=https://example.com&enabled_events[]=*").await,
        endpoint(&app, "url=https://example.com&enabled_events[]=*").await,
    ];
    app.submit(&format!("{PATH}/{disabled}"), "disabled=true").await.expect(200);
    app.delete(&format!("{PATH}/{deleted}")).send().await.expect(200);
    let form = "url=https://example.com&enabled_events[]=*";
    let foreign =
        app.call_as(&other, Method::POST, PATH).key(&fresh_key()).form(form).send().await.expect(201);

    let charge = |key: &str, amount: u32| {
        let form = format!("amount={amount}&currency=usd&source=tok_visa");
        app.post("/v1/charges").key(key).form(&form).send()
    };
    charge("broken-1", 1000).await.expect(500);
    charge("refused", 1).await.expect(400);
    app.submit("/v1/customers", "source=tok_chargeDeclined").await.expect(402);
    assert_eq!((app.database.count("events"), app.database.count("webhook_deliveries")), (0, 0));

    charge("good", 1000).await.expect(201);
    assert!(charge("good", 1000).await.expect(201).is_replay());
    app.submit("/v1/customers", "").await.expect(201);
    assert_eq!(deliveries(&app, &charges), "charge.succeeded pending");
    assert_eq!(deliveries(&app, &all), "charge.succeeded pending, customer.created pending");
    assert_eq!(deliveries(&app, &customers), "customer.created pending");
    for none in [&*disabled, &*deleted, foreign.id()] {
        assert_eq!(deliveries(&app, none), "");
    }
    // The event shows how many deliveries are pending; the body that is sent counts at least its own.
    let event = app.read("/v1/events?type=charge.succeeded").await["data"][0].clone();
    assert_eq!(event["pending_webhooks"], 2);
    assert!(
        app.database
            .text("SELECT payload::text AS text FROM events LIMIT 1")
            .contains(r#""pending_webhooks":1"#)
    );

    // Disabling and deleting cancel pending deliveries.
    app.submit(&format!("{PATH}/{all}"), "disabled=true").await.expect(200);
    app.delete(&format!("{PATH}/{charges}")).send().await.expect(200);
    assert_eq!(deliveries(&app, &all), "charge.succeeded canceled, customer.created canceled");
    assert_eq!(deliveries(&app, &charges), "charge.succeeded canceled");
    assert_eq!(deliveries(&app, &customers), "customer.created pending");
    let path = format!("/v1/events/{}", event["id"].as_str().unwrap());
    assert_eq!(app.read(&path).await["pending_webhooks"], 0);
    // After it is enabled again, it receives the events from then on.
    app.submit(&format!("{PATH}/{all}"), "disabled=false").await.expect(200);
    app.state.clock.advance(Duration::from_secs(1));
    app.charge().await;
    assert!(deliveries(&app, &all).ends_with("canceled, charge.succeeded pending"));
    app.database.assert_clean();
}

//! `HEAD` is answered like `GET`, without a body.

use oncepay::app;
use reqwest::Method;

use crate::support::bytes::{Bytes, FORM};
use crate::support::{CHARGE, Raw, Reply, TestApp};

/// The answers to `HEAD` and to a `GET` that follows on the same connection: bytes of a body that the first one should
/// not have would spoil the second.
fn both(app: &TestApp, path: &str) -> (Reply, Reply) {
    let mut connection = Raw::connect(app.address);
    connection.send(&Bytes::get(app, path).method("HEAD").write());
    let head = connection.answer_to("HEAD").expect("an answer");
    let get = connection.ask(&Bytes::get(app, path).write()).expect("an answer on the same connection");
    (head, get)
}

#[tokio::test]
async fn every_route_that_has_a_get_answers_head_with_the_same_headers_and_no_body() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let key = "looked-up";
    app.post("/v1/charges").key(key).form(CHARGE).send().await.expect(201);
    let mut paths: Vec<String> = app::routes()
        .iter()
        .filter(|route| route.method == actix_web::http::Method::GET)
        .map(|route| route.path.replace("{charge}", &charge).replace("{key:.+}", key))
        .collect();
    assert!(paths.len() > 20, "{paths:?}");
    let probes = ["/metrics", "/healthz", "/readyz"];
    paths.extend(probes.map(str::to_owned));
    // A fault in the query is found in the same way.
    paths.push("/v1/charges?limit=0".to_owned());
    for path in &paths {
        let (head, get) = both(&app, path);
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.bytes.is_empty(), "{path}");
        assert_eq!(head.header("Content-Type"), get.header("Content-Type"), "{path}");
        if path != "/metrics" {
            // The figures have counted the first request when they answer the second.
            assert_eq!(head.header("Content-Length"), get.header("Content-Length"), "{path}");
        }
        assert!(head.header("Request-Id").is_some(), "{path}");
        assert_eq!(head.header("Cache-Control"), Some("no-store"), "{path}");
        if !path.contains('{') && !path.contains("limit=0") {
            assert_eq!(head.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn head_needs_credentials_as_get_does_and_a_post_alone_has_none() {
    let app = TestApp::spawn();
    let mut connection = Raw::connect(app.address);
    connection.send(&Bytes::new("HEAD", "/v1/charges").write());
    assert_eq!(connection.answer_to("HEAD").expect("an answer").status, 401);
    connection.send(&Bytes::get(&app, "/v1/tokens").method("HEAD").write());
    let refused = connection.answer_to("HEAD").expect("an answer");
    assert_eq!((refused.status, refused.header("Allow")), (405, Some("POST")));
    for path in ["/v1/charges", "/v1/customers/cus_x"] {
        let refused = app.call(Method::PUT, path).send().await.expect_error(405, "");
        assert!(refused.header("Allow").unwrap().starts_with("GET, HEAD, POST"), "{path}");
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("HEAD"));
    }
    // It reads, so it writes nothing, whatever comes with it.
    let before = app.database.contents();
    let request = Bytes::post(&app, FORM, CHARGE).method("HEAD").write();
    let mut connection = Raw::connect(app.address);
    connection.send(&request);
    assert_eq!(connection.answer_to("HEAD").expect("an answer").status, 200);
    assert_eq!(app.database.contents(), before);
}

//! Which requests are the same request: bodies are compared by meaning, and all else by its text.

use reqwest::Method;

use crate::support::{Reply, TestApp, fresh_key, probe_routes};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// Path, media type, body.
type Request<'a> = (&'a str, &'a str, &'a str);

async fn send(app: &TestApp, key: &str, (path, media_type, body): Request<'_>) -> Reply {
    let call = app.call(Method::POST, path).key(key);
    // Without a type is also a way to send a form.
    let call = if media_type.is_empty() { call } else { call.header("Content-Type", media_type) };
    call.bytes(body).send().await
}

#[tokio::test]
async fn requests_of_one_meaning_are_one_request() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let customers = "/v1/customers";
    let json = |body| (customers, JSON, body);
    let form = |body| (customers, FORM, body);
    let full = r#"{"name":"Ada","metadata":{"a":"1","b":"2"},"preferred_locales":["en","fr"]}"#;
    let cases: [(Request<'_>, Request<'_>); 16] = [
        // The order of members, white space, and escapes.
        (json(full), json(r#"{"preferred_locales":["en","fr"],"metadata":{"b":"2","a":"1"},"name":"Ada"}"#)),
        (
            json(full),
            json(
                "\n{ \"metadata\" : {\"b\":\"2\",\t\"a\":\"1\"}, \"name\":\"Ada\",\r\n\"preferred_locales\":[ \"en\", \"fr\"]} ",
            ),
        ),
        (json(r#"{"name":"Ada"}"#), json(r#"{"name":"\u0041d\u0061"}"#)),
        (json(r#"{"name":"é/"}"#), json(r#"{"name":"\u00e9\/"}"#)),
        // An empty body is an empty object.
        (json(""), json("{}")),
        (json("{}"), json(" \n")),
        // The parameters of a media type.
        (json("{}"), (customers, "Application/JSON; charset=UTF-8", "{}")),
        (form("name=Ada"), (customers, "application/x-www-form-urlencoded;charset=utf-8", "name=Ada")),
        (form("name=Ada"), (customers, "", "name=Ada")),
        // Forms.
        (
            form("preferred_locales[]=en&preferred_locales[]=fr"),
            form("preferred_locales[0]=en&preferred_locales[1]=fr"),
        ),
        (form("name=Ada&metadata[a]=1&metadata[b]=2"), form("metadata[b]=2&name=Ada&metadata[a]=1")),
        (form("metadata[a]=1"), form("metadata%5Ba%5D=1")),
        (form("name=Ada+L"), form("n%61me=%41da%20L&")),
        (form("name"), form("name=")),
        // A query with nothing in it.
        (form("name=Ada"), ("/v1/customers?", FORM, "name=Ada")),
        (form("name=Ada"), ("/v1/customers?&", FORM, "name=Ada")),
    ];
    for (first, second) in cases {
        let key = fresh_key();
        let first_reply = send(&app, &key, first).await.expect(201);
        let second_reply = send(&app, &key, second).await;
        assert!(second_reply.is_replay(), "{first:?} and {second:?}: {second_reply:?}");
        assert_eq!(second_reply.bytes, first_reply.bytes);
    }
}

#[tokio::test]
async fn requests_that_differ_in_anything_that_counts_are_other_requests() {
    let app = TestApp::with(|builder| builder.routes = probe_routes);
    let customer = send(&app, &fresh_key(), ("/v1/customers", FORM, "")).await.expect(201).id().to_owned();
    let path = format!("/v1/customers/{customer}");
    let json = |body| ("/v1/customers", JSON, body);
    let form = |body| ("/v1/customers", FORM, body);
    let probe = |body| ("/v1/probe", JSON, body);
    let cases: [(Request<'_>, Request<'_>); 20] = [
        // Types, which are compared before anything is said about them.
        (probe(r#"{"name":"a","milliseconds":1}"#), probe(r#"{"name":"a","milliseconds":1.0}"#)),
        (probe(r#"{"name":"a","milliseconds":1}"#), probe(r#"{"name":"a","milliseconds":"1"}"#)),
        (probe(r#"{"name":"a","milliseconds":1}"#), probe(r#"{"name":"a","milliseconds":true}"#)),
        (probe(r#"{"name":"a"}"#), probe(r#"{"name":"a","milliseconds":null}"#)),
        (probe(r#"{"name":"a"}"#), probe(r#"{"name":"a","unknown":1}"#)),
        (probe(r#"{"name":"a"}"#), probe(r#"["name","a"]"#)),
        // Values, members and the order of lists.
        (json(r#"{"name":"Ada"}"#), json(r#"{"name":"ada"}"#)),
        (json(r#"{"name":"Ada"}"#), json(r#"{"name":"Ada "}"#)),
        (json(r#"{"name":"é"}"#), json("{\"name\":\"e\u{301}\"}")),
        (json(r#"{"name":"Ada"}"#), json(r#"{"description":"Ada"}"#)),
        (json(r#"{"name":"Ada"}"#), json("{}")),
        (json(r#"{"preferred_locales":["en","fr"]}"#), json(r#"{"preferred_locales":["fr","en"]}"#)),
        (json(r#"{"metadata":{"a":"1"}}"#), json(r#"{"metadata":{"a":"1","b":""}}"#)),
        (
            form("preferred_locales[]=en&preferred_locales[]=fr"),
            form("preferred_locales[]=fr&preferred_locales[]=en"),
        ),
        (form("name=Ada"), form("name=Ada&description=")),
        // The media type, although the parameters are the same.
        (json(r#"{"name":"Ada"}"#), form("name=Ada")),
        (json(""), form("")),
        // The path.
        (form("name=Ada"), (path.as_str(), FORM, "name=Ada")),
        // The query.
        (form("name=Ada"), ("/v1/customers?a=1", FORM, "name=Ada")),
        (form("name=Ada"), ("/v1/customers?name=Ada", FORM, "")),
    ];
    for (first, second) in cases {
        let key = fresh_key();
        let first_reply = send(&app, &key, first).await;
        assert!(first_reply.status < 300, "{first:?}: {first_reply:?}");
        let before = app.database.contents();
        let second_reply = send(&app, &key, second).await;
        if second.2.starts_with('[') {
            // What has no members cannot be anybody's parameters, so it is not compared at all.
            second_reply.expect_error(400, "");
        } else {
            assert_eq!(
                second_reply.code(),
                "idempotency_key_reused",
                "{first:?} and {second:?}: {second_reply:?}"
            );
            second_reply.expect_error(422, "idempotency_key_reused");
        }
        assert_eq!(app.database.contents(), before);
        // The first request keeps its answer.
        let replay = send(&app, &key, first).await;
        assert!(replay.is_replay() && replay.bytes == first_reply.bytes, "{first:?}");
    }
}

#[tokio::test]
async fn a_repeated_member_is_refused_whatever_the_key_has_answered() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let cases = [
        (JSON, r#"{"name":"Ada","name":"Ada"}"#),
        (JSON, r#"{"metadata":{"a":"1","a":"2"}}"#),
        (JSON, r#"{"name":"Ada","n\u0061me":"Ada"}"#),
        (FORM, "name=Ada&name=Ada"),
        (FORM, "metadata[a]=1&metadata[a]=1"),
        (FORM, "preferred_locales[]=en&preferred_locales[0]=en"),
    ];
    for used in [false, true] {
        let before = app.database.contents();
        for (media_type, body) in cases {
            let reply = send(&app, &key, ("/v1/customers", media_type, body)).await.expect_error(400, "");
            let message = reply.body["error"]["message"].as_str().unwrap();
            assert!(message.contains("repeated"), "{body}: {message}");
        }
        assert_eq!(app.database.contents(), before);
        let reply = send(&app, &key, ("/v1/customers", JSON, r#"{"name":"Ada"}"#)).await.expect(201);
        assert_eq!(reply.is_replay(), used);
    }
}

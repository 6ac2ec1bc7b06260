//! A header that is read as one value comes once. Of two the first would count, and whoever looked at the request on its
//! way may have gone by the second.

use crate::support::bytes::{Bytes, FORM};
use crate::support::network::{NETWORK_SECRET, NOTIFICATIONS};
use crate::support::{CHARGE, Reply, TestApp};

#[track_caller]
fn refused(reply: Option<Reply>, header: &str) {
    let reply = reply.expect("an answer").expect_error(400, "");
    let message = reply.body["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("The header {header} was sent more than once")), "{message}");
    assert_eq!(reply.body["error"]["retry"], "fix_request");
}

#[tokio::test]
async fn a_request_with_two_of_a_header_is_refused_and_changes_nothing() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let before = app.database.contents();
    let own = format!("Authorization: Bearer {}", app.database.api_key);
    for (name, lines) in [
        ("Authorization", vec![format!("Authorization: Bearer {other}")]),
        ("Authorization", vec![own.clone()]),
        ("Authorization", vec![format!("aUTHORIZATION: Basic {other}")]),
        ("Authorization", vec!["Authorization:".to_owned()]),
        ("Content-Type", vec!["Content-Type: application/json".to_owned()]),
        ("Content-Type", vec![format!("Content-Type: {FORM}")]),
        (
            "Content-Encoding",
            vec!["Content-Encoding: identity".to_owned(), "Content-Encoding: gzip".to_owned()],
        ),
        ("Origin", vec!["Origin: http://a".to_owned(), "Origin: http://b".to_owned()]),
        (
            "Stripe-Version",
            vec!["Stripe-Version: 2026-08-26".to_owned(), "Stripe-Version: 2020-08-27".to_owned()],
        ),
    ] {
        let request = lines.into_iter().fold(Bytes::post(&app, FORM, CHARGE), Bytes::header);
        refused(request.send(&app), name);
    }
    // The HTTP library refuses these before anybody else sees them.
    for line in ["Content-Length: 5", "Content-Length: 0", "Host: y", "Host: x", "Transfer-Encoding: chunked"]
    {
        let request = Bytes::post(&app, FORM, CHARGE).header(line);
        assert_eq!(request.send(&app).expect("an answer").status, 400, "{line}");
    }
    // It is the same where nothing is written.
    let get = Bytes::get(&app, "/v1/charges").header(format!("Authorization: Bearer {other}"));
    refused(get.send(&app), "Authorization");
    assert_eq!(app.database.contents(), before);
    Bytes::post(&app, FORM, CHARGE)
        .header("Accept: a")
        .header("Accept: b")
        .send(&app)
        .expect("an answer")
        .expect(201);
}

#[tokio::test]
async fn a_notification_with_two_headers_of_signatures_is_refused() {
    let app = TestApp::spawn();
    let notification =
        app.notification("refund.succeeded", serde_json::json!({ "refund": "re_x" })).to_string();
    let now = app.state.clock.now();
    let signature =
        oncepay::wire::signature::sign(&[NETWORK_SECRET.to_owned()], now, notification.as_bytes());
    for second in ["t=1,v1=00".to_owned(), signature.clone()] {
        let request = Bytes::new("POST", NOTIFICATIONS)
            .header("Content-Type: application/json")
            .header(format!("Stripe-Signature: {signature}"))
            .header(format!("Stripe-Signature: {second}"))
            .body(&notification);
        refused(request.send(&app), "Stripe-Signature");
    }
}

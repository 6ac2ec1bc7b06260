//! The table of states and calls, each pair through the API.

use serde_json::Value;

use crate::support::TestApp;
use crate::support::intents::{STATUSES, path_of};

/// A call, and the status that it leads to from each of [`STATUSES`]; the empty text where it is refused.
struct Row {
    call: &'static str,
    form: &'static str,
    leads_to: [&'static str; 6],
}

const METHOD: &str = "requires_payment_method";
const CONFIRMATION: &str = "requires_confirmation";
const ACTION: &str = "requires_action";
const CAPTURE: &str = "requires_capture";
const DONE: &str = "succeeded";
const NO: &str = "";

const TABLE: [Row; 12] = [
    Row { call: "", form: "description=x", leads_to: [METHOD, CONFIRMATION, ACTION, CAPTURE, DONE, NO] },
    Row { call: "", form: "metadata[a]=1", leads_to: [METHOD, CONFIRMATION, ACTION, CAPTURE, DONE, NO] },
    // A new price is to be confirmed anew.
    Row { call: "", form: "amount=2000", leads_to: [METHOD, CONFIRMATION, CONFIRMATION, NO, NO, NO] },
    Row { call: "", form: "currency=eur", leads_to: [METHOD, CONFIRMATION, CONFIRMATION, NO, NO, NO] },
    Row {
        call: "",
        form: "payment_method=pm_card_visa",
        leads_to: [CONFIRMATION, CONFIRMATION, CONFIRMATION, NO, NO, NO],
    },
    Row { call: "", form: "payment_method=", leads_to: [METHOD, METHOD, METHOD, NO, NO, NO] },
    Row { call: "/confirm", form: "", leads_to: [NO, DONE, ACTION, NO, NO, NO] },
    Row { call: "/confirm", form: "payment_method=pm_card_visa", leads_to: [DONE, DONE, DONE, NO, NO, NO] },
    Row {
        call: "/confirm",
        form: "payment_method=pm_card_visa&capture_method=manual",
        leads_to: [CAPTURE, CAPTURE, CAPTURE, NO, NO, NO],
    },
    Row { call: "/capture", form: "", leads_to: [NO, NO, NO, DONE, NO, NO] },
    Row { call: "/capture", form: "amount_to_capture=400", leads_to: [NO, NO, NO, DONE, NO, NO] },
    Row { call: "/cancel", form: "", leads_to: ["canceled", "canceled", "canceled", "canceled", NO, NO] },
];

#[tokio::test]
async fn every_call_does_in_every_state_what_the_table_says_or_is_refused_and_writes_nothing() {
    let app = TestApp::spawn();
    for Row { call, form, leads_to } in TABLE {
        for (status, expected) in STATUSES.into_iter().zip(leads_to) {
            let intent = app.intent_in(status).await;
            let path = path_of(&intent);
            let before = app.database.dump();
            let reply = app.submit(&format!("{path}{call}"), form).await;
            let case = format!("{call} {form} from {status}");
            if expected != NO {
                let reply = reply.expect(200);
                assert_eq!(reply.body["status"], expected, "{case}");
                assert_eq!(app.read(&path).await, reply.body, "{case}");
                continue;
            }
            let refused = reply.expect_error(400, "payment_intent_unexpected_state");
            let error = &refused.body["error"];
            assert_eq!(error["type"], "invalid_request_error", "{case}");
            assert_eq!(error["payment_intent"], intent, "{case}");
            let message = error["message"].as_str().unwrap();
            let says_why = message.contains(&format!("status of {status}"))
                || message.contains("missing a payment method");
            assert!(says_why, "{case}: {message}");
            assert_eq!(app.database.dump(), before, "{case}");
            assert_eq!(app.read(&path).await, intent, "{case}");
        }
    }
    app.database.assert_clean();
}

#[tokio::test]
async fn a_refused_confirmation_shows_the_intent_as_it_stands_and_not_as_was_asked() {
    let app = TestApp::spawn();
    for (status, form) in [
        ("requires_payment_method", "receipt_email=a%40b.c"),
        ("requires_confirmation", "payment_method="),
        ("requires_confirmation", "payment_method=&capture_method=manual"),
    ] {
        let intent = app.intent_in(status).await;
        let refused = app.submit(&format!("{}/confirm", path_of(&intent)), form).await;
        let refused = refused.expect_error(400, "payment_intent_unexpected_state");
        assert_eq!(refused.body["error"]["payment_intent"], intent, "{form}");
        assert_eq!(app.intent_now(&intent).await, intent, "{form}");
    }
}

#[tokio::test]
async fn a_card_whose_holder_must_confirm_waits_for_that_with_a_page_to_go_to() {
    let app = TestApp::spawn();
    for card in ["authenticationRequired", "threeDSecure2Required", "threeDSecureRequiredChargeDeclined"] {
        let form = format!(
            "amount=1000&currency=usd&confirm=true&payment_method=pm_card_{card}&return_url=https://a.b/c"
        );
        let reply = app.submit("/v1/payment_intents", &form).await.expect(201);
        assert_eq!(app.events_of(&reply).await, ["payment_intent.created", "payment_intent.requires_action"]);
        let intent = &reply.body;
        assert_eq!(intent["status"], ACTION);
        assert_eq!(intent["latest_charge"], Value::Null);
        assert!(intent["payment_method"].is_string());
        let action = &intent["next_action"];
        assert_eq!(action["type"], "redirect_to_url");
        assert_eq!(action["redirect_to_url"]["return_url"], "https://a.b/c");
        let url = action["redirect_to_url"]["url"].as_str().unwrap();
        assert!(url.starts_with(&format!("http://{}/", app.address)), "{url}");
        // Another price, another method and an end each take the page away.
        let canceled = app.submit(&format!("{}/cancel", path_of(intent)), "").await.expect(200).body;
        assert_eq!(canceled["next_action"], Value::Null);
    }
    let intent = app.intent_in(ACTION).await;
    let changed = app.submit(&path_of(&intent), "amount=1100").await.expect(200).body;
    assert_eq!(changed["next_action"], Value::Null);
    assert_eq!(changed["payment_method"], intent["payment_method"]);
    assert_eq!(app.database.count("charges"), 0);
    app.database.assert_clean();
}

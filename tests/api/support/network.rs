//! The card network, played by a test.

use std::sync::Arc;

use oncepay::card_network::simulation::{DeliveryMode, NetworkSettings};
use oncepay::wire::signature;
use serde_json::{Value, json};

use super::app::TestApp;
use super::client::Reply;

/// The path of its notifications.
pub const NOTIFICATIONS: &str = "/v1/provider_notifications";

/// The secret that it shares with the servers of the tests.
pub const NETWORK_SECRET: &str = "whsec_network";

/// An id that nobody else has, of this kind: `dp`, `ntf`.
pub fn fresh_id(prefix: &str) -> String {
    format!("{prefix}_{}", uuid::Uuid::now_v7().simple())
}

/// The data of a notification that a dispute is opened.
pub fn opened_dispute(dispute: &str, charge: &str, inquiry: bool) -> Value {
    json!({ "dispute": dispute, "charge": charge, "reason": "fraudulent", "inquiry": inquiry })
}

/// The data of a notification that a dispute is closed.
pub fn closed_dispute(dispute: &str, charge: &str, outcome: &str) -> Value {
    let mut data = opened_dispute(dispute, charge, false);
    data["outcome"] = outcome.into();
    data
}

impl TestApp {
    /// The id of the test's account.
    pub fn account(&self) -> String {
        let of_the_test =
            "SELECT replace(id::text, '-', '') AS text FROM accounts WHERE name = 'the test''s'";
        format!("acct_{}", self.database.text(of_the_test))
    }

    /// A notification with an id of its own.
    pub fn notification(&self, event: &str, data: Value) -> Value {
        json!({ "id": fresh_id("ntf"), "type": event, "account": self.account(), "created": 1, "data": data })
    }

    /// Sends a notification, signed now.
    pub async fn notify(&self, notification: &Value) -> Reply {
        let body = notification.to_string();
        let header = signature::sign(&[NETWORK_SECRET.to_owned()], self.state.clock.now(), body.as_bytes());
        self.notify_with(&body, &header).await
    }

    /// Sends these bytes with this signature and without a valid API key.
    pub async fn notify_with(&self, body: &str, signature: &str) -> Reply {
        let call = self.call_as("none", reqwest::Method::POST, NOTIFICATIONS);
        call.header(signature::HEADER, signature).body("application/json", body).send().await
    }

    /// Makes and sends a notification, which has to be taken.
    pub async fn send_notification(&self, event: &str, data: Value) -> Reply {
        self.notify(&self.notification(event, data)).await.expect(200)
    }

    /// Opens a dispute of this charge, and returns its id.
    pub async fn disputed(&self, charge: &str) -> String {
        let dispute = fresh_id("dp");
        self.send_notification("dispute.created", opened_dispute(&dispute, charge, false)).await;
        dispute
    }

    /// Another instance, whose simulated network sends to `url`.
    pub fn network(&self, url: String, delivery: DeliveryMode) -> TestApp {
        let database = Arc::clone(&self.database);
        TestApp::with(|builder| {
            builder.database = Some(database);
            builder.network = NetworkSettings { secret: NETWORK_SECRET.to_owned(), url: Some(url), delivery };
        })
    }

    /// The URL of this server for notifications.
    pub fn notifications_url(&self) -> String {
        format!("http://{}{NOTIFICATIONS}", self.address)
    }

    /// The types of all events, in the order in which they were written.
    pub async fn event_types(&self) -> Vec<String> {
        let events = self.read("/v1/events?limit=100").await;
        let types = events["data"].as_array().unwrap().iter().rev();
        types.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The available balance in usd, in cents.
    pub async fn usd(&self) -> i64 {
        self.read("/v1/balance").await["available"][0]["amount"].as_i64().unwrap()
    }
}

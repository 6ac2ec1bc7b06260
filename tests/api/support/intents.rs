//! Shapes and helpers for the tests of payment intents and payment methods.

use serde_json::Value;

use super::app::TestApp;
use super::client::Reply;
use super::shapes::Shape;

pub const PAYMENT_METHOD: Shape = "id:text object:text allow_redisplay:text billing_details:object card:object \
    created:integer customer:reference? livemode:boolean metadata:object? type:text";

/// `card` of a payment method.
pub const METHOD_CARD: Shape = "brand:text exp_month:integer exp_year:integer funding:text last4:text";

pub const PAYMENT_INTENT: Shape = "id:text object:text amount:integer amount_capturable:integer \
    amount_received:integer application:reference? application_fee_amount:integer? canceled_at:integer? \
    cancellation_reason:text? capture_method:text client_secret:text? confirmation_method:text created:integer \
    currency:text customer:reference? description:text? last_payment_error:object? latest_charge:reference? \
    livemode:boolean metadata:object next_action:object? on_behalf_of:reference? payment_method:reference? \
    payment_method_types:list processing:object? receipt_email:text? review:reference? setup_future_usage:text? \
    shipping:object? statement_descriptor:text? statement_descriptor_suffix:text? status:text \
    transfer_data:object? transfer_group:text?";

/// An intent's price.
pub const PRICE: &str = "amount=1000&currency=usd";

/// Every status that an intent can have here.
pub const STATUSES: [&str; 6] = [
    "requires_payment_method",
    "requires_confirmation",
    "requires_action",
    "requires_capture",
    "succeeded",
    "canceled",
];

/// An id that nobody has.
pub fn unknown_id(prefix: &str) -> String {
    format!("{prefix}_01900000000070008000{:012x}", 0xabc)
}

impl TestApp {
    /// Makes a customer, and returns its id.
    pub async fn customer(&self) -> String {
        self.submit("/v1/customers", "").await.expect(201).id().to_owned()
    }

    /// Makes a payment method of a test card, and returns its id.
    pub async fn method(&self, card: &str) -> String {
        let form = format!("type=card&card[token]=tok_{card}");
        self.submit("/v1/payment_methods", &form).await.expect(201).id().to_owned()
    }

    /// Makes a payment method that is attached to a customer, and returns its id.
    pub async fn attached_method(&self, card: &str, customer: &str) -> String {
        let path = format!("/v1/payment_methods/pm_card_{card}/attach");
        self.submit(&path, &format!("customer={customer}")).await.expect(200).id().to_owned()
    }

    /// Makes an intent of 10.00 usd.
    pub async fn intent(&self, form: &str) -> Value {
        self.submit("/v1/payment_intents", &format!("{PRICE}&{form}")).await.expect(201).body
    }

    /// Makes an intent of 10.00 usd that stands in this status.
    pub async fn intent_in(&self, status: &str) -> Value {
        let confirmed = "confirm=true&payment_method=pm_card";
        let intent = match status {
            "requires_payment_method" => self.intent("").await,
            "requires_confirmation" => self.intent("payment_method=pm_card_visa").await,
            "requires_action" => self.intent(&format!("{confirmed}_authenticationRequired")).await,
            "requires_capture" => self.intent(&format!("{confirmed}_visa&capture_method=manual")).await,
            "succeeded" => self.intent(&format!("{confirmed}_visa")).await,
            "canceled" => {
                let path =
                    format!("/v1/payment_intents/{}/cancel", self.intent("").await["id"].as_str().unwrap());
                self.submit(&path, "").await.expect(200).body
            }
            other => panic!("no status is called {other}"),
        };
        assert_eq!(intent["status"], status);
        intent
    }

    /// The current state of an intent.
    pub async fn intent_now(&self, intent: &Value) -> Value {
        self.read(&path_of(intent)).await
    }

    /// The types of the events of a request, in the order they were written.
    pub async fn events_of(&self, reply: &Reply) -> Vec<String> {
        let events = self.event_objects_of(reply).await;
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The events of a request, in the order they were written.
    pub async fn event_objects_of(&self, reply: &Reply) -> Vec<Value> {
        let request = reply.header("Request-Id").unwrap();
        let events = self.read("/v1/events?limit=100").await;
        let of_it = events["data"].as_array().unwrap().iter().rev();
        of_it.filter(|event| event["request"]["id"] == request).cloned().collect()
    }
}

/// The path of an intent.
#[track_caller]
pub fn path_of(intent: &Value) -> String {
    format!("/v1/payment_intents/{}", intent["id"].as_str().expect("an intent has an id"))
}

/// The answer without `id`, so that the answers about two ids can be compared.
pub fn without_id(reply: &Reply, id: &str) -> (u16, String) {
    (reply.status, reply.body.to_string().replace(id, "ID"))
}

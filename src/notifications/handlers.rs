//! The route of notifications: checks the signature, and reads the body.

use actix_web::HttpRequest;
use actix_web::web::{self, Data};
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{RETENTION, Receiver};
use crate::card_network::Notification;
use crate::error::{Error, quoted};
use crate::http::{Payload, Policy, Route, Tx};
use crate::idempotency::{Answer, Key};
use crate::types::Id;
use crate::types::ids::{AccountId, kinds};
use crate::wire::{Parameters, Params, json as wire_json, signature};

pub const PATH: &str = "/v1/provider_notifications";

pub fn routes() -> Vec<Route> {
    vec![Route::post(PATH, Policy::Signed { lifetime: RETENTION, admit }, || web::to(receive))]
}

async fn receive(tx: Tx, receiver: Data<Receiver>, body: Payload<Notification>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (notification, _) = body.parse()?;
        (receiver.apply)(connection, cause, notification)?;
        Ok(Answer::json(200, &json!({ "object": "provider_notification", "received": true })))
    })
    .await
}

/// Checks the signature; then reads the account and the id of the notification.
fn admit(request: &HttpRequest, bytes: &[u8], now: DateTime<Utc>) -> Result<(AccountId, Key, Value), Error> {
    let receiver = request.app_data::<Data<Receiver>>().expect("src/app/mod.rs sets the receiver");
    let header = request.headers().get(signature::HEADER).and_then(|value| value.to_str().ok());
    signature::verify(header, &receiver.secret, now, bytes)
        .map_err(|error| Error::SignatureRefused(error.to_string()))?;
    let body = wire_json::parse(bytes)?;
    let text = |name: &str| body[name].as_str().ok_or_else(|| Error::ParameterMissing(name.to_owned()));
    let account = text("account")?;
    let account = Id::parse(account).ok_or_else(|| Error::no_such::<kinds::Account>(account, "account"))?;
    let key = Key::parse(text("id")?.as_bytes())
        .map_err(|error| Error::invalid("id", format!("The id of the notification {error}.")))?;
    Ok((account, key, body))
}

impl Parameters for Notification {
    fn read(params: &mut Params) -> Result<Self, Error> {
        // The guard has already used the id as the key and the account as the caller's.
        params.need::<String>("id")?;
        params.need::<AccountId>("account")?;
        params.need::<i64>("created")?;
        let kind: String = params.need("type")?;
        let data = params.take_value("data").ok_or_else(|| Error::ParameterMissing("data".to_owned()))?;
        match kind.as_str() {
            "refund.succeeded" => read(data).map(Notification::RefundSucceeded),
            "refund.failed" => read(data).map(Notification::RefundFailed),
            "dispute.created" => read(data).map(Notification::DisputeCreated),
            "dispute.closed" => read(data).map(Notification::DisputeClosed),
            other => Err(Error::invalid("type", format!("Unknown type of notification: {}", quoted(other)))),
        }
    }
}

/// Reads the data of a notification; an error names the member, as in `data[charge]`.
fn read<T: DeserializeOwned>(data: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(data).map_err(|error| {
        let message = error.inner().to_string();
        let named = message.split('`').nth(1).unwrap_or_default();
        if message.starts_with("missing field") {
            return Error::ParameterMissing(format!("data[{named}]"));
        }
        if message.starts_with("unknown field") {
            return Error::ParameterUnknown(format!("data[{}]", quoted(named)));
        }
        let path = match error.path().to_string().as_str() {
            "." => "data".to_owned(),
            member => format!("data[{}]", quoted(member)),
        };
        Error::invalid(&path, format!("Invalid {}: {}", quoted(&path), quoted(&message)))
    })
}

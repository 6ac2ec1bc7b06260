use actix_web::web;
use serde_json::json;

use super::{News, Notification, RETENTION};
use crate::app::Route;
use crate::auth::Account;
use crate::db::Tx;
use crate::disputes::{Allegation, Verdict};
use crate::error::{Error, quoted};
use crate::idempotency::{Answer, Policy};
use crate::notifications;
use crate::types::Id;
use crate::wire::{Parameters, Params, Payload};

pub const PATH: &str = "/v1/provider_notifications";

pub fn routes() -> Vec<Route> {
    vec![Route::post(PATH, Policy::Signed { lifetime: RETENTION }, || web::to(receive))]
}

impl Parameters for Notification {
    fn read(params: &mut Params) -> Result<Self, Error> {
        // The id is the key, and the account the caller: the guard has read both.
        params.need::<String>("id")?;
        params.need::<Id<Account>>("account")?;
        params.need::<i64>("created")?;
        let event: String = params.need("type")?;
        let mut data: Params = params.need("data")?;
        let news = match event.as_str() {
            "refund.succeeded" => News::RefundSucceeded(data.need("refund")?),
            "refund.failed" => News::RefundFailed(data.need("refund")?),
            "dispute.created" => News::DisputeCreated(allegation(&mut data)?),
            "dispute.closed" => News::DisputeClosed(allegation(&mut data)?, verdict(&mut data)?),
            other => {
                return Err(Error::invalid(
                    "type",
                    format!("Unknown type of notification: {}", quoted(other)),
                ));
            }
        };
        data.finish()?;
        Ok(Self(news))
    }
}

fn allegation(data: &mut Params) -> Result<Allegation, Error> {
    let name: String = data.need("dispute")?;
    let known = Id::parse(&name).and_then(|dispute| Some((dispute, dispute.made_at()?)));
    let (dispute, made_at) = known.ok_or_else(|| {
        let message = "is no name of a dispute: that is dp_ and a UUIDv7 in 32 hex digits.";
        Error::invalid("data[dispute]", format!("{} {message}", quoted(&name)))
    })?;
    Ok(Allegation {
        dispute,
        made_at,
        charge: data.need("charge")?,
        reason: data.need("reason")?,
        is_inquiry: data.need("inquiry")?,
    })
}

fn verdict(data: &mut Params) -> Result<Verdict, Error> {
    match data.need::<String>("outcome")?.as_str() {
        "won" => Ok(Verdict::Won),
        "lost" => Ok(Verdict::Lost),
        other => Err(Error::invalid("data[outcome]", format!("Unknown outcome: {}", quoted(other)))),
    }
}

async fn receive(tx: Tx, body: Payload<Notification>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (notification, _) = body.parse()?;
        notifications::apply(connection, cause, notification.0)?;
        Ok(Answer::json(200, &json!({ "object": "provider_notification", "received": true })))
    })
    .await
}

//! The routes of charges, and their parameters.

use actix_web::web::{self, Path};
use diesel::pg::PgConnection;
use serde_json::Value;

use super::{CaptureCharge, Charge, CreateCharge, Details, Filter, UpdateCharge, UserReport};
use crate::answers;
use crate::error::{Error, ErrorBody};
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::charges;
use crate::payments::tokens::Source;
use crate::types::Cause;
use crate::types::ids::kinds;
use crate::wire::params::Email;
use crate::wire::{Expand, List, Nothing, Parameters, Params, Update};

const PATH: &str = "/v1/charges";

/// The most characters of a statement descriptor: card networks print no more.
const MAX_DESCRIPTOR_CHARACTERS: usize = 22;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/charges/{charge}", || web::to(retrieve)),
        Route::post("/v1/charges/{charge}", Policy::KEYED, || web::to(update)),
        Route::post("/v1/charges/{charge}/capture", Policy::KEYED, || web::to(capture)),
    ]
}

/// What changes nothing about a card payment here: data for card networks, and Stripe's own checks for fraud.
const WITHOUT_EFFECT: [&str; 2] = ["level3", "radar_options"];

impl Parameters for CreateCharge {
    fn read(params: &mut Params) -> Result<Self, Error> {
        params.take_without_effect(&WITHOUT_EFFECT);
        let (amount, currency) = params.price()?;
        let source: Option<Source> = params.take("source")?;
        // An older name of the same parameter, which some callers still use.
        let card: Option<Source> = params.take("card")?;
        if source.is_some() && card.is_some() {
            return Err(Error::invalid("card", "You cannot use both `source` and `card`."));
        }
        Ok(Self {
            amount,
            currency,
            source: source.or(card),
            capture: params.take("capture")?.unwrap_or(true),
            details: Details {
                customer: params.take("customer")?,
                payment_intent: None,
                description: params.take("description")?,
                metadata: params.new_metadata()?,
                receipt_email: params.take("receipt_email")?.map(|Email(email)| email),
                shipping: params.take("shipping")?,
                statement_descriptor: descriptor(params, "statement_descriptor")?,
                statement_descriptor_suffix: descriptor(params, "statement_descriptor_suffix")?,
            },
        })
    }
}

impl Parameters for UpdateCharge {
    fn read(params: &mut Params) -> Result<Self, Error> {
        params.take_without_effect(&WITHOUT_EFFECT);
        Ok(Self {
            customer: params.take("customer")?,
            description: params.update("description")?,
            metadata: params.metadata()?,
            receipt_email: params.update("receipt_email")?,
            shipping: params.update("shipping")?,
            user_report: params.nested("fraud_details")?.map(user_report).transpose()?,
        })
    }
}

impl Parameters for CaptureCharge {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            amount: params.take("amount")?,
            receipt_email: params.take("receipt_email")?,
            statement_descriptor: descriptor(params, "statement_descriptor")?,
            statement_descriptor_suffix: descriptor(params, "statement_descriptor_suffix")?,
        })
    }
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            customer: params.reference("customer")?,
            payment_intent: params.reference("payment_intent")?,
        })
    }
}

async fn create(tx: Tx, body: Payload<CreateCharge>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let (charge, object) = charges::create(connection, cause, create)?;
        answer(connection, cause, &charge, object, &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let charge = charges::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, charge.object(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateCharge>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let charge = charges::update(connection, cause, &id, update)?;
        answers::found(connection, cause, charge.object(), &expand)
    })
    .await
}

async fn capture(tx: Tx, id: Path<String>, body: Payload<CaptureCharge>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (capture, expand) = body.parse()?;
        let charge = charges::capture(connection, cause, &id, capture)?;
        answers::found(connection, cause, charge.object(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::Charge, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = charges::list(connection, cause, &list)?;
        let objects = page.map(|charge| charge.object());
        answers::listed(connection, cause, (PATH, "charge"), objects, &expand)
    })
    .await
}

/// 201, or 402 if the card was declined. Both are remembered, since both left a charge.
fn answer(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    object: Value,
    expand: &Expand,
) -> Result<Answer, Error> {
    // A property that cannot be expanded is refused whether or not the card was declined.
    let created = answers::created(connection, cause, PATH, object, expand)?;
    let Some(decline) = charge.decline else { return Ok(created) };
    let error = ErrorBody { charge: Some(charge.id.to_string()), ..decline.error_body() };
    Ok(answers::declined(&error))
}

fn user_report(mut details: Params) -> Result<Update<UserReport>, Error> {
    let report = details.update_one_of("user_report", UserReport::ALL)?;
    details.finish()?;
    match report {
        Update::Keep => Err(Error::ParameterMissing("fraud_details[user_report]".to_owned())),
        _ => Ok(report),
    }
}

/// A text for the payer's statement.
///
/// # Errors
/// It is too long, or has a character that no statement can print.
pub fn descriptor(params: &mut Params, name: &str) -> Result<Option<String>, Error> {
    let text: Option<String> = params.take(name)?;
    if let Some(text) = &text
        && (text.chars().count() > MAX_DESCRIPTOR_CHARACTERS
            || text.contains(['<', '>', '\\', '\'', '"', '*']))
    {
        return Err(Error::invalid(
            name,
            format!(
                "Invalid {name}: it can have up to {MAX_DESCRIPTOR_CHARACTERS} characters, and none of < > \\ ' \" *."
            ),
        ));
    }
    Ok(text)
}

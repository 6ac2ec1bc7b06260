use actix_web::web::{self, Path};
use diesel::pg::PgConnection;
use serde_json::Value;

use super::{CaptureCharge, Charge, CreateCharge, Filter, UpdateCharge};
use crate::app::Route;
use crate::charges;
use crate::db::{Db, Tx};
use crate::error::{Error, ErrorBody};
use crate::idempotency::{Answer, Policy};
use crate::tokens::Source;
use crate::types::{Cause, Id, PageRequest};
use crate::wire::{self, Expand, Nothing, Parameters, Params, Payload, Update};

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

impl Parameters for CreateCharge {
    fn read(params: &mut Params) -> Result<Self, Error> {
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
            customer: params.take("customer")?,
            capture: params.take("capture")?.unwrap_or(true),
            description: params.take("description")?,
            metadata: params.new_metadata()?,
            receipt_email: params.take("receipt_email")?,
            shipping: params.take("shipping")?,
            statement_descriptor: descriptor(params, "statement_descriptor")?,
            statement_descriptor_suffix: descriptor(params, "statement_descriptor_suffix")?,
        })
    }
}

impl Parameters for UpdateCharge {
    fn read(params: &mut Params) -> Result<Self, Error> {
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

struct ListCharges {
    page: PageRequest,
    cursor: Option<Id<Charge>>,
    filter: Filter,
}

impl Parameters for ListCharges {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (page, cursor) = params.page()?;
        let filter =
            Filter { customer: params.take("customer")?, payment_intent: params.take("payment_intent")? };
        Ok(Self { page, cursor, filter })
    }
}

async fn create(tx: Tx, body: Payload<CreateCharge>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let (charge, shape) = charges::create(connection, cause, create)?;
        answer(connection, cause, &charge, shape, &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let charge = charges::retrieve(connection, cause, &id)?;
        wire::found(connection, cause, charge.shape(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateCharge>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let charge = charges::update(connection, cause, &id, update)?;
        wire::found(connection, cause, charge.shape(), &expand)
    })
    .await
}

async fn capture(tx: Tx, id: Path<String>, body: Payload<CaptureCharge>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (capture, expand) = body.parse()?;
        let charge = charges::capture(connection, cause, &id, capture)?;
        wire::found(connection, cause, charge.shape(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<ListCharges>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = charges::list(connection, cause, &list.page, list.cursor, &list.filter)?;
        let shapes = page.map(|charge| charge.shape());
        wire::listed(connection, cause, (PATH, "charge"), shapes, &expand)
    })
    .await
}

/// 201, or 402 if the card was declined. Both are remembered, since both left a charge.
fn answer(
    connection: &mut PgConnection,
    cause: &Cause,
    charge: &Charge,
    shape: Value,
    expand: &Expand,
) -> Result<Answer, Error> {
    // A property that cannot be expanded is refused whether or not the card was declined.
    let created = wire::created(connection, cause, PATH, shape, expand)?;
    let Some(decline) = charge.decline() else { return Ok(created) };
    let error = ErrorBody { charge: Some(charge.id.to_string()), ..ErrorBody::decline(decline) };
    Ok(wire::declined(&error))
}

fn user_report(mut details: Params) -> Result<Update<String>, Error> {
    let report = details.update::<String>("user_report")?;
    details.finish()?;
    match &report {
        Update::Keep => Err(Error::ParameterMissing("fraud_details[user_report]".to_owned())),
        Update::Set(text) if !matches!(text.as_str(), "fraudulent" | "safe") => Err(Error::invalid(
            "fraud_details[user_report]",
            "Invalid fraud_details[user_report]: must be one of fraudulent or safe.",
        )),
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

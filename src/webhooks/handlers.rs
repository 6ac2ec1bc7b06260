//! The routes of webhook endpoints, and their parameters.

use actix_web::web::{self, Data, Path};
use chrono::NaiveDate;

use super::{CreateEndpoint, DEFAULT_GRACE_SECONDS, MAX_GRACE_SECONDS, UpdateEndpoint, WebhookSettings};
use crate::answers;
use crate::error::{Error, quoted};
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::types::EventType;
use crate::types::ids::kinds;
use crate::webhooks;
use crate::wire::{
    API_VERSION, FromParameter, List, MAX_TEXT_CHARACTERS, Nothing, Parameter, Parameters, Params, RELEASES,
    Update,
};

const PATH: &str = "/v1/webhook_endpoints";

/// The most types that an endpoint can be for.
const MAX_TYPES: usize = 250;

pub fn routes() -> Vec<Route> {
    let secret = Policy::Keyed { lifetime: None, secret: true };
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, secret, || web::to(create)),
        Route::get("/v1/webhook_endpoints/{endpoint}", || web::to(retrieve)),
        Route::post("/v1/webhook_endpoints/{endpoint}", Policy::KEYED, || web::to(update)),
        Route::delete("/v1/webhook_endpoints/{endpoint}", Policy::Unkeyed, || web::to(delete)),
        Route::post("/v1/webhook_endpoints/{endpoint}/roll_secret", secret, || web::to(roll_secret)),
    ]
}

impl Parameters for CreateEndpoint {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            url: params.need("url")?,
            enabled_events: types(params.need("enabled_events")?)?,
            description: params.take("description")?,
            api_version: params.take("api_version")?.map(|ApiVersion(version)| version),
            metadata: params.new_metadata()?,
        })
    }
}

/// A version of Stripe's API: a date and, for newer ones, the name of its release, as in `2026-08-26.dahlia`.
struct ApiVersion(String);

impl FromParameter for ApiVersion {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let name = parameter.name.clone();
        let text = parameter.text(MAX_TEXT_CHARACTERS)?;
        let (date, release) = text.split_once('.').map_or((&*text, None), |(date, name)| (date, Some(name)));
        // chrono alone would take +2026-8-26 too.
        let is_padded = date.split('-').map(str::len).eq([4, 2, 2]) && !date.starts_with('+');
        let is_date = is_padded && NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok();
        if is_date && release.is_none_or(|release| RELEASES.contains(&release)) {
            return Ok(Self(text));
        }
        Err(Error::invalid(
            &name,
            format!(
                "Invalid API version: {}. It is a date, as in 2024-06-20 or {API_VERSION}.",
                quoted(&text)
            ),
        ))
    }
}

impl Parameters for UpdateEndpoint {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            url: another(params, "url")?,
            enabled_events: another(params, "enabled_events")?.map(types).transpose()?,
            description: params.update("description")?,
            disabled: params.take("disabled")?,
            metadata: params.metadata()?,
        })
    }
}

/// What every endpoint has: it can be given another one, and none cannot be.
fn another<T: FromParameter>(params: &mut Params, name: &str) -> Result<Option<T>, Error> {
    match params.update(name)? {
        Update::Keep => Ok(None),
        Update::Set(value) => Ok(Some(value)),
        Update::Unset => {
            Err(Error::invalid(name, format!("Every webhook endpoint has {name}: you cannot unset it.")))
        }
    }
}

/// Types of events, or `*`. A type that this service does not have is no mistake: Stripe has many more.
pub fn types(types: Vec<String>) -> Result<Vec<String>, Error> {
    let invalid = |why: String| Err(Error::invalid("enabled_events", why));
    if types.is_empty() || types.len() > MAX_TYPES {
        return invalid(format!("Name 1 to {MAX_TYPES} types of events, or `*` for all of them."));
    }
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let is_type = |name: &str| name.contains('.') && name.split('.').all(is_word);
    match types.iter().find(|name| *name != "*" && (!is_type(name) || EventType::is_misspelt(name))) {
        Some(wrong) => invalid(format!("Invalid type of event: {}", quoted(wrong))),
        None => Ok(types),
    }
}

struct RollSecret {
    grace_seconds: i64,
}

impl Parameters for RollSecret {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let grace_seconds = params.take("grace_period_seconds")?.unwrap_or(DEFAULT_GRACE_SECONDS);
        if !(0..=MAX_GRACE_SECONDS).contains(&grace_seconds) {
            return Err(Error::invalid(
                "grace_period_seconds",
                format!("The older secret can sign for 0 to {MAX_GRACE_SECONDS} more seconds."),
            ));
        }
        Ok(Self { grace_seconds })
    }
}

async fn create(
    tx: Tx,
    settings: Data<WebhookSettings>,
    body: Payload<CreateEndpoint>,
) -> Result<Answer, Error> {
    let state = tx.state();
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let (endpoint, secret) =
            webhooks::create(connection, cause, create, &state.engine.secrets, &settings)?;
        answers::created(connection, cause, PATH, endpoint.object_with(&secret), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let endpoint = webhooks::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, endpoint.object(), &expand)
    })
    .await
}

async fn update(
    tx: Tx,
    settings: Data<WebhookSettings>,
    id: Path<String>,
    body: Payload<UpdateEndpoint>,
) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let endpoint = webhooks::update(connection, cause, &id, update, &settings)?;
        answers::found(connection, cause, endpoint.object(), &expand)
    })
    .await
}

async fn delete(tx: Tx, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let endpoint = webhooks::delete(connection, cause, &id)?;
        answers::found(connection, cause, endpoint.object(), &expand)
    })
    .await
}

async fn roll_secret(tx: Tx, id: Path<String>, body: Payload<RollSecret>) -> Result<Answer, Error> {
    let state = tx.state();
    tx.run(move |connection, cause| {
        let (roll, expand) = body.parse()?;
        let (endpoint, secret) =
            webhooks::roll_secret(connection, cause, &id, roll.grace_seconds, &state.engine.secrets)?;
        answers::found(connection, cause, endpoint.object_with(&secret), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::WebhookEndpoint, Nothing>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = webhooks::list(connection, cause, &list)?;
        let objects = page.map(|endpoint| endpoint.object());
        answers::listed(connection, cause, (PATH, "webhook_endpoint"), objects, &expand)
    })
    .await
}

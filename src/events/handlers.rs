//! The routes of events, and their parameters.

use actix_web::web::{self, Path};

use super::Filter;
use crate::answers;
use crate::error::Error;
use crate::events;
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::types::ids::{WebhookEndpointId, kinds};
use crate::types::{EventType, Page};
use crate::webhooks;
use crate::wire::{List, Nothing, Parameters, Params};

const PATH: &str = "/v1/events";

/// The most types that one list can be filtered by.
const MAX_TYPES: usize = 20;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::get("/v1/events/{event}", || web::to(retrieve)),
        Route::get("/v1/events/{event}/deliveries", || web::to(deliveries)),
        Route::post("/v1/events/{event}/resend", Policy::KEYED, || web::to(resend)),
    ]
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let one: Option<String> = params.take("type")?;
        let many: Option<Vec<String>> = params.take("types")?;
        let types = match (one, many) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid("types", "You cannot use both `type` and `types`."));
            }
            (Some(one), None) => match one.strip_suffix('*') {
                Some("") => None,
                Some(prefix) if prefix.ends_with('.') => Some(EventType::with_prefix(prefix)),
                _ => Some(known(&[one])),
            },
            (None, Some(many)) if many.len() > MAX_TYPES => {
                return Err(Error::invalid("types", format!("You can filter by up to {MAX_TYPES} types.")));
            }
            (None, Some(many)) => Some(known(&many)),
            (None, None) => None,
        };
        Ok(Self { types, is_delivered: params.take("delivery_success")? })
    }
}

/// The types among these texts. There are no events of the others, so a list of them is empty.
fn known(types: &[String]) -> Vec<EventType> {
    types.iter().filter_map(|text| EventType::parse(text)).collect()
}

struct Resend {
    endpoint: Option<WebhookEndpointId>,
}

impl Parameters for Resend {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { endpoint: params.take("webhook_endpoint")? })
    }
}

async fn list(db: Db, query: Payload<List<kinds::Event, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = events::list(connection, cause, &list)?;
        let objects = events::objects(connection, cause, page.rows)?;
        let page = Page { rows: objects, has_more: page.has_more };
        answers::listed(connection, cause, (PATH, "event"), page, &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let event = events::retrieve(connection, cause, &id)?;
        let object = events::objects(connection, cause, vec![event])?.remove(0);
        answers::found(connection, cause, object, &expand)
    })
    .await
}

async fn deliveries(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let event = events::retrieve(connection, cause, &id)?;
        let rows = webhooks::deliveries(connection, cause, event.id)?;
        let path = format!("/v1/events/{id}/deliveries");
        answers::listed(
            connection,
            cause,
            (&path, "webhook_delivery"),
            Page { rows, has_more: false },
            &expand,
        )
    })
    .await
}

async fn resend(tx: Tx, id: Path<String>, body: Payload<Resend>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (resend, expand) = body.parse()?;
        let event = events::retrieve(connection, cause, &id)?;
        webhooks::resend(connection, cause, event.id, resend.endpoint)?;
        let object = events::objects(connection, cause, vec![event])?.remove(0);
        answers::found(connection, cause, object, &expand)
    })
    .await
}

use actix_web::web::{self, Path};

use super::{Event, Filter, TypeFilter};
use crate::app::Route;
use crate::db::Db;
use crate::error::Error;
use crate::events;
use crate::idempotency::Answer;
use crate::types::{Id, Page, PageRequest};
use crate::wire::{self, Nothing, Parameters, Params, Payload};

const PATH: &str = "/v1/events";

/// The most types that one list can be filtered by.
const MAX_TYPES: usize = 20;

pub fn routes() -> Vec<Route> {
    vec![Route::get(PATH, || web::to(list)), Route::get("/v1/events/{event}", || web::to(retrieve))]
}

struct ListEvents {
    page: PageRequest,
    cursor: Option<Id<Event>>,
    filter: Filter,
}

impl Parameters for ListEvents {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (page, cursor) = params.page()?;
        let one: Option<String> = params.take("type")?;
        let many: Option<Vec<String>> = params.take("types")?;
        let types = match (one, many) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid("types", "You cannot use both `type` and `types`."));
            }
            (Some(one), None) => match one.strip_suffix('*') {
                Some("") => TypeFilter::Any,
                Some(prefix) if prefix.ends_with('.') => TypeFilter::Prefix(prefix.to_owned()),
                _ => TypeFilter::Types(vec![one]),
            },
            (None, Some(many)) if many.len() > MAX_TYPES => {
                return Err(Error::invalid("types", format!("You can filter by up to {MAX_TYPES} types.")));
            }
            (None, Some(many)) => TypeFilter::Types(many),
            (None, None) => TypeFilter::Any,
        };
        let filter = Filter { types, is_delivered: params.take("delivery_success")? };
        Ok(Self { page, cursor, filter })
    }
}

async fn list(db: Db, query: Payload<ListEvents>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = events::list(connection, cause, &list.page, list.cursor, &list.filter)?;
        let shapes = events::shapes(connection, cause, page.rows)?;
        let page = Page { rows: shapes, has_more: page.has_more };
        wire::listed(connection, cause, (PATH, "event"), page, &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let event = events::retrieve(connection, cause, &id)?;
        let shape = events::shapes(connection, cause, vec![event])?.remove(0);
        wire::found(connection, cause, shape, &expand)
    })
    .await
}

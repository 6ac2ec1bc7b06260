//! Events: what happened, each with a snapshot of its object.
//!
//! An effect writes its events in its own transaction (the outbox), so there is no event without its effect and no
//! effect without its events; a replay writes none. Within a request events are in the order they were written;
//! across requests they may become visible out of id order, since a request may commit before an older one does.

mod changes;
pub mod handlers;
pub mod queries;

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgConnection, PgValue};
use diesel::prelude::*;
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::Json;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;
use crate::schema::events;
use crate::types::ids::{AccountId, EventId, RequestId, kinds};
use crate::types::{Cause, EventType, Page, write_json};
use crate::webhooks;
use crate::wire::ids;
use crate::wire::{API_VERSION, List};
pub use queries::NewEvents;

/// An event.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = events, check_for_backend(Pg))]
pub struct Event {
    pub id: EventId,
    #[diesel(column_name = payload)]
    pub object: EventObject,
}

/// An event as it is sent: with its object as it was right after the effect.
#[derive(Debug, Clone, PartialEq, FromSqlRow)]
#[diesel(sql_type = Json)]
pub struct EventObject(pub Value);

/// An event on its way into the database.
#[derive(Debug, Serialize, AsExpression)]
#[diesel(sql_type = Json)]
struct NewEventObject<'a> {
    api_version: &'static str,
    created: i64,
    data: Data<'a>,
    id: EventId,
    livemode: bool,
    object: &'static str,
    /// When it is sent to an endpoint, it is still to be delivered to that one at least.
    pending_webhooks: u8,
    request: Origin,
    r#type: EventType,
}

#[derive(Debug, Serialize)]
struct Data<'a> {
    object: &'a Value,
    /// What an update changed, as it was before; an event of another kind has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_attributes: Option<Value>,
}

#[derive(Debug, Serialize)]
struct Origin {
    id: RequestId,
    idempotency_key: Option<String>,
}

/// Which events a list holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The types, if the list is not of all of them.
    pub types: Option<Vec<EventType>>,
    /// Whether no delivery of the event is still pending or has failed, if that is asked.
    pub is_delivered: Option<bool>,
}

/// The events of an effect, to be written with it.
pub fn of<'a>(cause: &Cause, happened: &[(EventType, &'a Value)]) -> NewEvents<'a> {
    NewEvents::new(cause, None, happened)
}

/// The events of a change to one object, to be written with it. `previous` is the object before the change: each
/// event called `….updated` says what is different.
pub fn of_change<'a>(cause: &Cause, previous: &Value, happened: &[(EventType, &'a Value)]) -> NewEvents<'a> {
    NewEvents::new(cause, Some(previous), happened)
}

/// An event by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Event, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// A page of events, the newest first.
///
/// # Errors
/// The cursor names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::Event, Filter>,
) -> Result<Page<Event>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// The events with these ids, as they were written.
///
/// # Errors
/// The database's.
pub fn written(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.into_iter().map(|event| event.object.0).collect())
}

/// The objects of these events, with how many deliveries each still has before it.
///
/// # Errors
/// What the statement reports.
pub fn objects(
    connection: &mut PgConnection,
    cause: &Cause,
    events: Vec<Event>,
) -> Result<Vec<Value>, Error> {
    let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
    let pending = webhooks::pending(connection, cause.account, &ids)?;
    let object = |event: Event| {
        let mut object = event.object.0;
        object["pending_webhooks"] = pending.get(&event.id).copied().unwrap_or(0).into();
        object
    };
    Ok(events.into_iter().map(object).collect())
}

impl<'a> NewEventObject<'a> {
    fn new(
        cause: &Cause,
        id: EventId,
        event_type: EventType,
        previous: Option<&Value>,
        object: &'a Value,
    ) -> Self {
        let previous = previous.filter(|_| event_type.is_update());
        Self {
            api_version: API_VERSION,
            created: cause.now.timestamp(),
            data: Data {
                object,
                previous_attributes: previous.map(|previous| changes::previous_attributes(previous, object)),
            },
            id,
            livemode: false,
            object: "event",
            pending_webhooks: 1,
            request: Origin { id: cause.request_id, idempotency_key: cause.idempotency_key.clone() },
            r#type: event_type,
        }
    }
}

impl ToSql<Json, Pg> for NewEventObject<'_> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        write_json(self, out)
    }
}

impl FromSql<Json, Pg> for EventObject {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(serde_json::from_slice(value.as_bytes())?))
    }
}

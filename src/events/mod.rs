//! Events: what happened, each with a snapshot of its object.
//!
//! An effect writes its events in its own transaction (the outbox), so there is no event without its effect and no
//! effect without its events; a replay writes none. Within a request events are in the order they were written;
//! across requests they may become visible out of id order, since a request may commit before an older one does.

pub mod handlers;
pub mod queries;

use chrono::{DateTime, Utc};
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgConnection, PgValue};
use diesel::prelude::*;
use diesel::serialize::{self, Output, ToSql};
use diesel::sql_types::Json;
use serde_json::{Value, json};

use crate::auth::Account;
use crate::db;
use crate::error::Error;
use crate::schema::events;
use crate::types::cause::Request;
use crate::types::ids;
use crate::types::{Cause, Id, Kind, Page, PageRequest};
pub use queries::NewEvents;

/// The version of Stripe's API whose shapes these are.
pub const API_VERSION: &str = "2026-08-26.dahlia";

/// An event.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = events, check_for_backend(Pg))]
pub struct Event {
    pub id: Id<Event>,
    pub request_id: Id<Request>,
    pub idempotency_key: Option<String>,
    #[diesel(column_name = type_)]
    pub event_type: String,
    pub object: Snapshot,
    pub created_at: DateTime<Utc>,
}

impl Kind for Event {
    const PREFIX: &'static str = "evt";
    const NOUN: &'static str = "event";
}

/// An object as it was right after an effect.
#[derive(Debug, Clone, PartialEq, FromSqlRow)]
#[diesel(sql_type = Json)]
pub struct Snapshot(pub Value);

/// A snapshot on its way into the database.
#[derive(Debug, Clone, Copy, AsExpression)]
#[diesel(sql_type = Json)]
struct NewSnapshot<'a>(&'a Value);

/// Which events a list holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeFilter {
    Any,
    /// Any of these types.
    Types(Vec<String>),
    /// `charge.*`: all types that begin so, the dot included.
    Prefix(String),
}

/// The events of an effect, to be written with it.
pub fn of<'a>(cause: &Cause, happened: &[(&'static str, &'a Value)]) -> NewEvents<'a> {
    NewEvents::new(cause, happened)
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
/// The cursor names no event.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    cursor: Option<Id<Event>>,
    types: &TypeFilter,
) -> Result<Page<Event>, Error> {
    if let Some(id) = cursor
        && queries::find(connection, cause.account, id)?.is_none()
    {
        return Err(Error::no_such::<Event>(&id.to_string(), page.cursor_name()));
    }
    Ok(page.page(queries::list(connection, cause.account, page, types)?))
}

impl Event {
    pub fn shape(&self, account: Id<Account>) -> Value {
        json!({
            "id": self.id,
            "object": "event",
            "account": account,
            "api_version": API_VERSION,
            "created": self.created_at.timestamp(),
            "data": { "object": self.object.0 },
            "livemode": false,
            "pending_webhooks": 0,
            "request": { "id": self.request_id, "idempotency_key": self.idempotency_key },
            "type": self.event_type,
        })
    }
}

impl ToSql<Json, Pg> for NewSnapshot<'_> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        db::write_json(self.0, out)
    }
}

impl FromSql<Json, Pg> for Snapshot {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(serde_json::from_slice(value.as_bytes())?))
    }
}

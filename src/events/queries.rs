//! The SQL of events.

use chrono::{DateTime, Utc};
use diesel::dsl::{exists, not};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types;
use serde_json::Value;

use super::{Event, Filter, NewEventObject};
use crate::db::{page_of, rows};
use crate::schema::{events, webhook_deliveries};
use crate::types::ids::{AccountId, EventId, RequestId};
use crate::types::{Cause, EventType, PageRequest};
use crate::webhooks;

rows!(events: Event, EventId => find, find_all);

/// The events of one effect and their deliveries to the endpoints that want them: the end of a
/// [`crate::db::Together`], whose list of statements it goes on with. It is one text for any number of events, so that
/// diesel keeps it prepared.
#[derive(Debug)]
pub struct NewEvents<'a> {
    account_id: AccountId,
    request_id: RequestId,
    idempotency_key: Option<String>,
    created_at: DateTime<Utc>,
    ids: Vec<EventId>,
    types: Vec<EventType>,
    objects: Vec<NewEventObject<'a>>,
}

impl<'a> NewEvents<'a> {
    pub fn new(cause: &Cause, previous: Option<&Value>, happened: &[(EventType, &'a Value)]) -> Self {
        let ids: Vec<EventId> = happened.iter().map(|_| cause.new_id()).collect();
        let objects = ids
            .iter()
            .zip(happened)
            .map(|(id, (event_type, object))| NewEventObject::new(cause, *id, *event_type, previous, object));
        Self {
            account_id: cause.account,
            request_id: cause.request_id,
            idempotency_key: cause.idempotency_key.clone(),
            created_at: cause.now,
            types: happened.iter().map(|(event_type, _)| *event_type).collect(),
            objects: objects.collect(),
            ids,
        }
    }
}

impl QueryFragment<Pg> for NewEvents<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            ", written AS (INSERT INTO events \
             (account_id, request_id, idempotency_key, created_at, id, type, payload) SELECT ",
        );
        out.push_bind_param::<sql_types::Uuid, _>(&self.account_id)?;
        out.push_sql(", ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.request_id)?;
        out.push_sql(", ");
        out.push_bind_param::<sql_types::Nullable<sql_types::Text>, _>(&self.idempotency_key)?;
        out.push_sql(", ");
        out.push_bind_param::<sql_types::Timestamptz, _>(&self.created_at)?;
        out.push_sql(", happened.* FROM unnest(");
        out.push_bind_param::<sql_types::Array<sql_types::Uuid>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<sql_types::Array<sql_types::Text>, _>(&self.types)?;
        out.push_sql(", ");
        out.push_bind_param::<sql_types::Array<sql_types::Json>, _>(&self.objects)?;
        out.push_sql(") AS happened (id, type, payload) RETURNING account_id, id, type, created_at) ");
        out.push_sql(webhooks::statements::DELIVER_WRITTEN);
        Ok(())
    }
}

/// Written out, because the derived one knows no lifetimes.
impl QueryId for NewEvents<'_> {
    type QueryId = NewEvents<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<Event>> {
    let mut query = page_of!(events: Event, account, page);
    let undelivered = webhook_deliveries::table
        .filter(webhook_deliveries::account_id.eq(events::account_id))
        .filter(webhook_deliveries::event_id.eq(events::id))
        .filter(webhook_deliveries::status.eq_any([webhooks::Status::Pending, webhooks::Status::Failed]));
    query = match filter.is_delivered {
        None => query,
        Some(true) => query.filter(not(exists(undelivered))),
        Some(false) => query.filter(exists(undelivered)),
    };
    if let Some(types) = &filter.types {
        query = query.filter(events::type_.eq_any(types));
    }
    query.load(connection)
}

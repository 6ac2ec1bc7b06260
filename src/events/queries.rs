use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types;
use serde_json::Value;

use super::{Event, NewSnapshot, TypeFilter};
use crate::auth::Account;
use crate::schema::events;
use crate::types::cause::Request;
use crate::types::page::From;
use crate::types::{Cause, Id, PageRequest};

/// The events of one effect: one statement for any number of them, so that diesel keeps it prepared, and a part
/// that can stand in [`crate::db::Together`].
#[derive(Debug)]
pub struct NewEvents<'a> {
    account_id: Id<Account>,
    request_id: Id<Request>,
    idempotency_key: Option<String>,
    created_at: DateTime<Utc>,
    ids: Vec<Id<Event>>,
    types: Vec<&'static str>,
    objects: Vec<NewSnapshot<'a>>,
}

impl<'a> NewEvents<'a> {
    pub fn new(cause: &Cause, happened: &[(&'static str, &'a Value)]) -> Self {
        Self {
            account_id: cause.account,
            request_id: cause.request_id,
            idempotency_key: cause.idempotency_key.clone(),
            created_at: cause.now,
            ids: happened.iter().map(|_| cause.new_id()).collect(),
            types: happened.iter().map(|(event_type, _)| *event_type).collect(),
            objects: happened.iter().map(|(_, object)| NewSnapshot(object)).collect(),
        }
    }
}

impl QueryFragment<Pg> for NewEvents<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO events (account_id, request_id, idempotency_key, created_at, id, type, object) SELECT ",
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
        out.push_sql(") AS happened (id, type, object)");
        Ok(())
    }
}

/// Written out, because the derived one knows no lifetimes.
impl QueryId for NewEvents<'_> {
    type QueryId = NewEvents<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl RunQueryDsl<PgConnection> for NewEvents<'_> {}

pub fn find(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Event>,
) -> QueryResult<Option<Event>> {
    events::table.find((account, id)).select(Event::as_select()).first(connection).optional()
}

pub fn list(
    connection: &mut PgConnection,
    account: Id<Account>,
    page: &PageRequest,
    types: &TypeFilter,
) -> QueryResult<Vec<Event>> {
    let mut query = events::table
        .filter(events::account_id.eq(account))
        .filter(events::id.ge(page.low()))
        .filter(events::id.lt(page.high()))
        .select(Event::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
    query = match types {
        TypeFilter::Any => query,
        TypeFilter::Types(types) => query.filter(events::type_.eq_any(types)),
        TypeFilter::Prefix(prefix) => query.filter(events::type_.like(format!("{}%", escaped(prefix)))),
    };
    match page.from() {
        From::Newest => query.order(events::id.desc()).load(connection),
        From::Oldest => query.order(events::id.asc()).load(connection),
    }
}

/// A text in which `LIKE` finds nothing but itself.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

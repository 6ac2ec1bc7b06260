//! `GET /v1/idempotency_keys/{key}`: what became of a request whose answer was lost.

use actix_web::{HttpRequest, web};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Bool};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::{Answer, Key, Source, record};
use crate::app::Route;
use crate::db::Db;
use crate::error::Error;
use crate::types::Cause;

const PATH: &str = "/v1/idempotency_keys/";

pub fn routes() -> Vec<Route> {
    // A key may hold a slash.
    vec![Route::get("/v1/idempotency_keys/{key:.+}", || web::to(retrieve))]
}

/// `completed`, `in_progress`, or 404. A 404 never means "use a new key": the request may be on its way.
async fn retrieve(db: Db, request: HttpRequest) -> Result<Answer, Error> {
    let path = request.path().strip_prefix(PATH).unwrap_or_default();
    let text: Vec<u8> = percent_decode_str(path).collect();
    db.read(move |connection, cause| {
        let unknown = crate::error::quoted(&String::from_utf8_lossy(&text));
        // What can be no key was never one; PostgreSQL would not even take NUL for text.
        let found =
            Key::exactly(text).ok().map(|key| look_up(connection, cause, key.as_str())).transpose()?;
        found.flatten().ok_or(Error::NotFound { noun: "idempotency key", id: unknown })
    })
    .await
}

fn look_up(connection: &mut PgConnection, cause: &Cause, key: &str) -> QueryResult<Option<Answer>> {
    let source = Source::Api.as_str();
    // The lock is looked for first: a request that ends in between is then found by its record. The lock itself
    // is never taken, or the look-up would make the request fail that it asks about.
    let running = is_locked(connection, record::lock_number(cause.account, source, key))?;
    let record = record::find_by_key(connection, cause.account, source, key)?
        .filter(|record| record.is_live(cause.now));
    let (status, record) = match record {
        Some(record) => ("completed", Some(record)),
        None if running => ("in_progress", None),
        None => return Ok(None),
    };
    Ok(Some(Answer::json(
        200,
        &json!({
            "object": "idempotency_key",
            "key": key,
            "livemode": false,
            "status": status,
            "status_code": record.as_ref().map(|record| record.status),
            "request_id": record.as_ref().map(|record| record.request_id),
            "created": record.as_ref().map(|record| record.created_at.timestamp()),
            "expires": record.as_ref().map(|record| record.expires_at.timestamp()),
        }),
    )))
}

/// Whether a transaction holds the advisory lock of this number.
fn is_locked(connection: &mut PgConnection, number: i64) -> QueryResult<bool> {
    IsLocked { number }.get_result(connection)
}

/// diesel keeps no `sql_query` prepared. PostgreSQL shows a number of 64 bits in halves.
#[derive(QueryId)]
struct IsLocked {
    number: i64,
}

impl QueryFragment<Pg> for IsLocked {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND (classid::bigint << 32 | objid::bigint) = ",
        );
        out.push_bind_param::<BigInt, _>(&self.number)?;
        out.push_sql(")");
        Ok(())
    }
}

impl Query for IsLocked {
    type SqlType = Bool;
}

impl RunQueryDsl<PgConnection> for IsLocked {}

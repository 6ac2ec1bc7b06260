//! Deletes expired records, to free space only: an expired record counts as no record anyway.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};

/// Deletes up to `most` records whose lifetime was over at `now`, and returns how many it deleted.
pub fn batch(connection: &mut PgConnection, now: DateTime<Utc>, most: i64) -> QueryResult<usize> {
    diesel::sql_query(
        "DELETE FROM idempotency_records WHERE ctid = ANY (ARRAY( \
             SELECT ctid FROM idempotency_records WHERE expires_at <= $1 \
             ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<BigInt, _>(most)
    .execute(connection)
}

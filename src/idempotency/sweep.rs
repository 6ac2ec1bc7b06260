//! Forgetting what has expired. Nothing correct depends on it: an expired record counts as none.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};

use crate::app::State;
use crate::error::Error;

/// How many rows one statement deletes, and how long the next one waits: large batches without pauses were
/// measured to halve the throughput of everything else.
const BATCH: i64 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// How long the sweeper rests when nothing is left to sweep.
const REST: Duration = Duration::from_secs(60);

/// Sweeps for ever. Several instances may do so at once: `SKIP LOCKED` keeps them out of each other's way, and out
/// of the way of a request that reuses an expired key.
pub async fn run(state: State) {
    loop {
        let now = state.clock.now();
        match state.database.run(move |connection| Ok(batch(connection, now, BATCH)?)).await {
            Ok(swept) if swept < usize::try_from(BATCH).unwrap_or(0) => {
                actix_web::rt::time::sleep(REST).await
            }
            Ok(_) => actix_web::rt::time::sleep(PAUSE).await,
            Err(error) => {
                log_failure(&error);
                actix_web::rt::time::sleep(REST).await;
            }
        }
    }
}

/// Deletes up to `most` records whose lifetime was over at `now`, and says how many.
///
/// # Errors
/// What the statement reports.
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

fn log_failure(error: &Error) {
    log::warn!("the sweeper failed and will try again: {}", error.internals().unwrap_or("refused"));
}

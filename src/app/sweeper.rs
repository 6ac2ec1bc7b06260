//! What time does by itself: expired keys are forgotten, holds that nobody captured are let go, deliveries that nobody
//! will get are canceled, and what an older secret of the server sealed is sealed by its successor.
//!
//! Several instances may sweep at once: `SKIP LOCKED` keeps them out of each other's way, and out of the way of
//! requests.

use std::time::Duration;

use diesel::prelude::*;

use crate::error::Error;
use crate::http::State;
use crate::payments::{charges, payment_intents};
use crate::{idempotency, webhooks};

/// How many records one statement forgets, and how long the next one waits: large batches without pauses were
/// measured to halve the throughput of everything else.
const BATCH: i64 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// How long the sweeper rests when nothing is left to sweep.
const REST: Duration = Duration::from_secs(60);

/// Sweeps for ever.
pub async fn run(state: State) {
    seal_anew(&state).await;
    loop {
        let rest = match sweep(&state).await {
            Ok(true) => PAUSE,
            Ok(false) => {
                seal_anew(&state).await;
                give_memory_back();
                REST
            }
            Err(error) => {
                log::warn!("the sweeper failed and will try again: {}", error.for_log());
                REST
            }
        };
        actix_web::rt::time::sleep(rest).await;
    }
}

/// Large bodies and answers leave holes that glibc keeps for itself; where nothing is to be done there is time to give
/// them back.
fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// While the server's secret is being replaced: seals anew what the older one sealed.
pub async fn seal_anew(state: &State) {
    let shared = State::clone(state);
    let work = move |connection: &mut PgConnection| webhooks::seal_anew(connection, &shared.engine.secrets);
    match state.engine.database.run(work).await.map_err(Error::from).flatten() {
        Ok(0) => {}
        Ok(sealed) => {
            log::info!("the secrets of {sealed} webhook endpoints are sealed by the newest secret now")
        }
        Err(error) => log::warn!("what an older secret sealed is sealed anew later: {}", error.for_log()),
    }
}

/// Sweeps once, and says whether more may be left.
///
/// # Errors
/// What the statements report, or no database.
pub async fn sweep(state: &State) -> Result<bool, Error> {
    let now = state.clock.now();
    let work = move |connection: &mut PgConnection| {
        // One that fails does not keep the others from their work.
        let stray = webhooks::cancel_stray(connection);
        let forgotten = idempotency::sweep::batch(connection, now, BATCH);
        let canceled = connection.transaction(|connection| payment_intents::expire_one(connection, now));
        let expired = connection.transaction(|connection| charges::expire_one(connection, now));
        stray?;
        Ok(i64::try_from(forgotten?) == Ok(BATCH) || canceled?.is_some() || expired?.is_some())
    };
    state.engine.database.run(work).await?
}

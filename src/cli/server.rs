//! The PostgreSQL server that the program uses: its private one, or another.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;

use super::Failure;
use super::settings::Settings;
use crate::db::{self, migrate::migrate};
use crate::embedded::{self, Cluster};

/// The name of the database in the private cluster.
const DATABASE: &str = "oncepay";

/// There is nothing to work on.
#[derive(Debug, thiserror::Error)]
#[error(
    "there are no data here (looked in {0}). Start the server here first, or name the place with --data-dir or \
     --database-url"
)]
pub struct NoData(String);

/// The PostgreSQL server, and the private cluster if it is ours.
pub struct Server {
    pub url: String,
    pub cluster: Option<Arc<Mutex<Cluster>>>,
}

impl Server {
    /// Reaches the server of the settings, starting the private one if none is named.
    pub fn reach(settings: &Settings) -> Result<Self, Failure> {
        if let Some(url) = settings.database_url() {
            return Ok(Self { url: url.to_owned(), cluster: None });
        }
        let cluster = Cluster::start(&settings.data_dir)?;
        let mut connection = db::connect(&cluster.url("postgres"))?;
        let there = diesel::sql_query(format!("SELECT FROM pg_database WHERE datname = '{DATABASE}'"));
        if there.execute(&mut connection)? == 0 {
            let made = diesel::sql_query(format!("CREATE DATABASE {DATABASE}")).execute(&mut connection);
            // Another starter may have been faster.
            let is_there = diesel::sql_query(format!("SELECT FROM pg_database WHERE datname = '{DATABASE}'"));
            if is_there.execute(&mut connection)? == 0 {
                made?;
            }
        }
        Ok(Self { url: cluster.url(DATABASE), cluster: Some(Arc::new(Mutex::new(cluster))) })
    }

    /// Reaches the server only if it has data of oncepay: nothing is made for who only looks.
    pub fn with_data(settings: &Settings) -> Result<Self, Failure> {
        if settings.database_url().is_none() && !embedded::has_cluster(&settings.data_dir) {
            let place = std::path::absolute(&settings.data_dir)?;
            return Err(NoData(place.display().to_string()).into());
        }
        let server = Self::reach(settings)?;
        let made = diesel::sql_query("SELECT FROM pg_tables WHERE tablename = 'idempotency_records'");
        if made.execute(&mut server.connect()?)? == 0 {
            server.leave();
            return Err(NoData("the database, which has no tables of oncepay".to_owned()).into());
        }
        Ok(server)
    }

    /// Leaves the private cluster, if there is one; the last to leave stops it.
    pub fn leave(self) {
        let Some(mut cluster) = self.cluster else { return };
        // Whoever keeps it alive may be looking at it just now.
        loop {
            match Arc::try_unwrap(cluster) {
                Ok(cluster) => return cluster.into_inner().unwrap_or_else(PoisonError::into_inner).stop(),
                Err(shared) => cluster = shared,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn migrate(&self, settings: &Settings) -> Result<(), Failure> {
        let applied = migrate(settings.migration_url().unwrap_or(&self.url))?;
        if applied > 0 {
            log::info!("applied {applied} migrations");
        }
        Ok(())
    }

    pub fn connect(&self) -> Result<PgConnection, Failure> {
        Ok(db::connect(&self.url)?)
    }
}

/// Starts the private PostgreSQL again, should it have died while we live: on the same socket, so that the pool finds
/// it. The thread ends with the program.
pub fn keep_alive(cluster: &Arc<Mutex<Cluster>>, data_dir: &Path) {
    let (cluster, data_dir) = (Arc::downgrade(cluster), data_dir.to_owned());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(WATCH_PAUSE);
            let Some(cluster) = cluster.upgrade() else { return };
            let mut cluster = lock(&cluster);
            if cluster.postmaster_pid().is_some() && PgConnection::establish(&cluster.url("postgres")).is_ok()
            {
                continue;
            }
            log::warn!("the private PostgreSQL is gone: starting it again");
            match Cluster::start(&data_dir) {
                // The older value leaves, and the new one stays.
                Ok(again) => *cluster = again,
                Err(error) => log::error!("the private PostgreSQL does not start: {error}"),
            }
        }
    });
}

/// How often it is looked whether the private PostgreSQL lives.
const WATCH_PAUSE: Duration = Duration::from_secs(2);

pub fn lock(cluster: &Mutex<Cluster>) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

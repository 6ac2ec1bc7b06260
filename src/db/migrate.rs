//! Migrations, compiled into the program and applied when it starts.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

/// All migrations, in the order in which they are applied.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!();

/// The number of the advisory lock that is held while migrations run; it spells "oncepay" in ASCII.
const LOCK: i64 = 0x006f_6e63_6570_6179;

/// Why the database could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("cannot connect to the database: {0}")]
    Connect(#[from] ConnectionError),
    #[error("cannot lock the migrations: {0}")]
    Lock(#[from] diesel::result::Error),
    #[error("a migration failed: {0}")]
    Migration(Box<dyn std::error::Error + Send + Sync>),
    #[error("PostgreSQL 15 or later is needed, and this server is {0}")]
    Version(String),
}

/// Applies all pending migrations, and returns how many there were.
///
/// Two instances may start at the same time, and diesel takes no lock, so this function takes one. It is a session lock,
/// which means nothing behind a pooler in transaction mode: `url` must lead to the server itself.
///
/// # Errors
/// See [`MigrateError`]. If a migration fails, those before it stay applied.
pub fn migrate(url: &str) -> Result<usize, MigrateError> {
    let mut connection = super::connect(url)?;
    check_version(&mut connection)?;
    diesel::select(pg_advisory_lock(LOCK)).execute(&mut connection)?;
    let applied = connection.run_pending_migrations(MIGRATIONS).map_err(MigrateError::Migration)?.len();
    // The lock ends with the session.
    Ok(applied)
}

fn check_version(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let number: String = diesel::select(current_setting("server_version_num")).get_result(connection)?;
    if number.parse::<u32>().is_ok_and(|number| number < 150_000) {
        return Err(MigrateError::Version(number));
    }
    Ok(())
}

diesel::define_sql_function! {
    fn pg_advisory_lock(number: diesel::sql_types::BigInt);
}

diesel::define_sql_function! {
    fn current_setting(name: diesel::sql_types::Text) -> diesel::sql_types::Text;
}

//! The demo account, whose key is well known while only this machine can reach the server.

use chrono::Utc;
use diesel::pg::PgConnection;

use super::Failure;
use super::secret_files::kept_secret;
use super::settings::Settings;
use crate::auth::{Credentials, keys, queries};

/// The key of the demo account, and where it comes from.
pub enum DemoKey {
    /// Everybody knows it.
    WellKnown,
    /// The settings name it.
    Chosen(String),
    /// It is random, and stands in a file of the data directory.
    Random(String),
}

/// The name of the file that holds a random key.
pub const FILE: &str = "demo-api-key";

impl DemoKey {
    pub fn as_str(&self) -> &str {
        match self {
            DemoKey::WellKnown => keys::DEMO_KEY,
            DemoKey::Chosen(key) | DemoKey::Random(key) => key,
        }
    }
}

/// Makes the demo account and its key. The well-known key is revoked where it is not the key.
///
/// # Errors
/// The settings name the well-known key on an address that others can reach.
pub fn ensure(connection: &mut PgConnection, settings: &Settings) -> Result<DemoKey, Failure> {
    let now = Utc::now();
    let is_local = settings.listen.is_loopback();
    let key = match settings.demo_key() {
        Some(keys::DEMO_KEY) if !is_local => {
            return Err(format!(
                "{} is known to everybody, and others can reach {}: choose another --demo-key",
                keys::DEMO_KEY,
                settings.listen
            )
            .into());
        }
        Some(keys::DEMO_KEY) => DemoKey::WellKnown,
        Some(key) => DemoKey::Chosen(key.to_owned()),
        None if is_local => DemoKey::WellKnown,
        None => DemoKey::Random(kept_secret(&settings.data_dir.join(FILE), keys::random)?),
    };
    if !matches!(key, DemoKey::WellKnown) {
        queries::revoke_credentials(connection, &Credentials::of_key(keys::DEMO_KEY), now)?;
    }
    keys::ensure(connection, keys::DEMO_ACCOUNT, key.as_str(), now)?;
    Ok(key)
}

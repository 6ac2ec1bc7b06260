//! Creates API keys.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;

use super::{Credentials, queries};
use crate::secrets::random_text;

/// The API key of the demo account while the server listens on loopback only.
pub const DEMO_KEY: &str = "sk_test_oncepay_demo";

/// The name of the demo account.
pub const DEMO_ACCOUNT: &str = "demo";

/// A new random key; it is shown to the user once, and never again.
pub fn random() -> String {
    format!("sk_test_{}", random_text(24))
}

/// Checks that a text can be an API key which somebody has chosen.
///
/// # Errors
/// Why it cannot.
pub fn check(key: &str) -> Result<(), &'static str> {
    if !key.starts_with("sk_test_") {
        return Err("an API key begins with sk_test_");
    }
    if !(20..=255).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
        return Err("an API key has 20 to 255 visible ASCII characters, and no colon");
    }
    Ok(())
}

/// Adds `key` to the account with this name, and creates the account if it does not exist.
///
/// It does nothing if the key works already.
pub fn ensure(
    connection: &mut PgConnection,
    account: &str,
    key: &str,
    now: DateTime<Utc>,
) -> QueryResult<()> {
    let credentials = Credentials::of_key(key);
    connection.transaction(|connection| {
        let account = queries::account_named(connection, account, now)?;
        if queries::account(connection, &credentials)?.is_none() {
            queries::insert_key(connection, account, &credentials, now)?;
        }
        Ok(())
    })
}

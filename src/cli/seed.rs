//! `--seed FILE`: accounts, API keys and webhook endpoints that are there when the server starts.
//!
//! What is there already stays as it is, so the same file may be given at each start.

use std::fs;
use std::path::Path;

use chrono::Utc;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use serde::Deserialize;

use super::Failure;
use crate::app::Service;
use crate::auth::{Credentials, keys, queries};
use crate::types::Cause;
use crate::webhooks;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    accounts: Vec<Account>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    name: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    webhook_endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    url: String,
    enabled_events: Vec<String>,
    secret: String,
}

/// Makes what the file names and is not there yet, all of it or nothing.
///
/// # Errors
/// The file cannot be read, or a member of it is wrong; the message names which.
pub fn apply(connection: &mut PgConnection, path: &Path, service: &Service) -> Result<(), Failure> {
    let told = |what: String| format!("{}: {what}", path.display());
    let text = fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    let seed: Seed =
        serde_path_to_error::deserialize(&mut reader).map_err(|error| told(error.to_string()))?;
    connection.transaction(|connection| {
        for (number, account) in seed.accounts.iter().enumerate() {
            account
                .apply(connection, service)
                .map_err(|failure| told(format!("accounts[{number}].{failure}")))?;
        }
        Ok(())
    })
}

impl Account {
    fn apply(&self, connection: &mut PgConnection, service: &Service) -> Result<(), Failure> {
        let is_name = (1..=200).contains(&self.name.chars().count()) && !self.name.contains(char::is_control);
        if !is_name {
            return Err("name: a name has 1 to 200 characters, and no line breaks".into());
        }
        let now = Utc::now();
        let account = queries::account_named(connection, &self.name, now)?;
        for (number, key) in self.keys.iter().enumerate() {
            let here = |what: &str| format!("keys[{number}]: {what}");
            keys::check(key).map_err(here)?;
            keys::ensure(connection, &self.name, key, now)?;
            if queries::account(connection, &Credentials::of_key(key))? != Some(account) {
                return Err(here("another account has this key").into());
            }
        }
        let cause = Cause::of_the_service(account, now);
        for (number, endpoint) in self.webhook_endpoints.iter().enumerate() {
            let secrets = &service.state.engine.secrets;
            let (url, events) = (endpoint.url.clone(), endpoint.enabled_events.clone());
            webhooks::ensure(connection, &cause, (url, events, &endpoint.secret), secrets, &service.webhooks)
                .map_err(|error| format!("webhook_endpoints[{number}]: {error}"))?;
        }
        Ok(())
    }
}

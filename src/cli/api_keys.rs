//! `oncepay api-key`: keys are made, listed and revoked.

use chrono::Utc;

use super::Failure;
use super::server::Server;
use super::settings::{ApiKeyCommand, Settings};
use crate::auth::{keys, queries};

pub fn run(settings: &Settings, command: &ApiKeyCommand) -> Result<(), Failure> {
    // A database that is named may be new: its first key is made before its first server starts.
    let server = match settings.database_url() {
        Some(_) => Server::reach(settings)?,
        None => Server::with_data(settings)?,
    };
    server.migrate(settings)?;
    let mut connection = server.connect()?;
    match command {
        ApiKeyCommand::Create { account } => {
            let key = keys::random();
            keys::ensure(&mut connection, account, &key, Utc::now())?;
            println!("{key}");
            eprintln!(
                "This is the key of the account {account}. It is not stored and will not be shown again."
            );
        }
        ApiKeyCommand::List => {
            println!("{:<36}  {:<20}  {:<20}  {:<19}  revoked", "id", "account", "key", "created");
            for (account, key) in queries::keys(&mut connection)? {
                let time = |time: chrono::DateTime<Utc>| time.format("%Y-%m-%d %H:%M:%S").to_string();
                let revoked = key.revoked_at.map_or("-".to_owned(), time);
                println!("{}  {account:<20}  {:<20}  {}  {revoked}", key.id, key.hint, time(key.created_at));
            }
        }
        ApiKeyCommand::Revoke { id } => match queries::revoke(&mut connection, *id, Utc::now())? {
            0 => return Err(format!("no key that works has the id {id}; see `oncepay api-key list`").into()),
            _ => println!("revoked {id}"),
        },
    }
    Ok(())
}

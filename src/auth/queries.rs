//! The SQL of accounts and API keys.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::Credentials;
use crate::schema::{accounts, api_keys};
use crate::types::ids::AccountId;

/// A row of `api_keys` without the hash, for display.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = api_keys, check_for_backend(diesel::pg::Pg))]
pub struct ApiKey {
    pub id: Uuid,
    pub hint: String,
    pub created_at: DateTime<Utc>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// The account whose key `credentials` is, if the key has not been revoked.
pub fn account(connection: &mut PgConnection, credentials: &Credentials) -> QueryResult<Option<AccountId>> {
    api_keys::table
        .filter(api_keys::secret_hash.eq(credentials.hash()))
        .filter(api_keys::revoked_at.is_null())
        .select(api_keys::account_id)
        .first(connection)
        .optional()
}

/// The id again, if there is an account with it.
pub fn account_with_id(connection: &mut PgConnection, id: AccountId) -> QueryResult<Option<AccountId>> {
    accounts::table.find(id).select(accounts::id).first(connection).optional()
}

/// The name of an account, and the time at which it was created.
pub fn name_and_age(
    connection: &mut PgConnection,
    account: AccountId,
) -> QueryResult<(String, DateTime<Utc>)> {
    accounts::table.find(account).select((accounts::name, accounts::created_at)).first(connection)
}

/// The account with this name; it is created if it does not exist.
pub fn account_named(
    connection: &mut PgConnection,
    name: &str,
    now: DateTime<Utc>,
) -> QueryResult<AccountId> {
    let id = AccountId::new(now, &uuid::ContextV7::new());
    diesel::insert_into(accounts::table)
        .values((accounts::id.eq(id), accounts::name.eq(name), accounts::created_at.eq(now)))
        .on_conflict(accounts::name)
        .do_nothing()
        .execute(connection)?;
    accounts::table.filter(accounts::name.eq(name)).select(accounts::id).first(connection)
}

/// Adds a key to `account`.
pub fn insert_key(
    connection: &mut PgConnection,
    account: AccountId,
    credentials: &Credentials,
    now: DateTime<Utc>,
) -> QueryResult<Uuid> {
    let id = Uuid::now_v7();
    diesel::insert_into(api_keys::table)
        .values((
            api_keys::account_id.eq(account),
            api_keys::id.eq(id),
            api_keys::secret_hash.eq(credentials.hash()),
            api_keys::hint.eq(&credentials.hint),
            api_keys::created_at.eq(now),
        ))
        // Another instance that starts at the same time may insert the same key.
        .on_conflict_do_nothing()
        .execute(connection)?;
    Ok(id)
}

/// All keys with the names of their accounts, oldest first.
pub fn keys(connection: &mut PgConnection) -> QueryResult<Vec<(String, ApiKey)>> {
    api_keys::table
        .inner_join(accounts::table)
        .order(api_keys::id.asc())
        .select((accounts::name, ApiKey::as_select()))
        .load(connection)
}

/// Revokes the key with this id, and returns how many keys it revoked.
pub fn revoke(connection: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> QueryResult<usize> {
    diesel::update(api_keys::table.filter(api_keys::id.eq(id)).filter(api_keys::revoked_at.is_null()))
        .set(api_keys::revoked_at.eq(now))
        .execute(connection)
}

/// Revokes the key of these credentials, and returns how many keys it revoked.
pub fn revoke_credentials(
    connection: &mut PgConnection,
    credentials: &Credentials,
    now: DateTime<Utc>,
) -> QueryResult<usize> {
    diesel::update(
        api_keys::table
            .filter(api_keys::secret_hash.eq(credentials.hash()))
            .filter(api_keys::revoked_at.is_null()),
    )
    .set(api_keys::revoked_at.eq(now))
    .execute(connection)
}

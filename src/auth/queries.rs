//! The SQL of accounts and API keys.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use super::Credentials;
use crate::schema::{accounts, api_keys};
use crate::types::ids::AccountId;

/// A row of `api_keys`, for people to look at.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = api_keys, check_for_backend(diesel::pg::Pg))]
pub struct ApiKey {
    pub id: Uuid,
    pub hint: String,
    pub created_at: DateTime<Utc>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// The account that may use `credentials`, if any.
///
/// # Errors
/// What the statement reports.
pub fn account(connection: &mut PgConnection, credentials: &Credentials) -> QueryResult<Option<AccountId>> {
    api_keys::table
        .filter(api_keys::secret_hash.eq(credentials.hash()))
        .filter(api_keys::revoked_at.is_null())
        .select(api_keys::account_id)
        .first(connection)
        .optional()
}

/// The account of this id, if there is one.
///
/// # Errors
/// What the statement reports.
pub fn account_with_id(connection: &mut PgConnection, id: AccountId) -> QueryResult<Option<AccountId>> {
    accounts::table.find(id).select(accounts::id).first(connection).optional()
}

/// The name of an account, and when it was made.
///
/// # Errors
/// What the statement reports.
pub fn name_and_age(
    connection: &mut PgConnection,
    account: AccountId,
) -> QueryResult<(String, DateTime<Utc>)> {
    accounts::table.find(account).select((accounts::name, accounts::created_at)).first(connection)
}

/// The account of this name, made if it is not there.
///
/// # Errors
/// What the statements report.
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

/// Gives `account` a key.
///
/// # Errors
/// What the statement reports.
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
        // Another starter may be making the same key.
        .on_conflict_do_nothing()
        .execute(connection)?;
    Ok(id)
}

/// All keys with the names of their accounts, the oldest first.
///
/// # Errors
/// What the statement reports.
pub fn keys(connection: &mut PgConnection) -> QueryResult<Vec<(String, ApiKey)>> {
    api_keys::table
        .inner_join(accounts::table)
        .order(api_keys::id.asc())
        .select((accounts::name, ApiKey::as_select()))
        .load(connection)
}

/// Revokes the keys with this id, and says how many that were.
///
/// # Errors
/// What the statement reports.
pub fn revoke(connection: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> QueryResult<usize> {
    diesel::update(api_keys::table.filter(api_keys::id.eq(id)).filter(api_keys::revoked_at.is_null()))
        .set(api_keys::revoked_at.eq(now))
        .execute(connection)
}

/// Revokes this very key.
///
/// # Errors
/// What the statement reports.
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

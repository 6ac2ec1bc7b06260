//! The remembered answer, as a row. *It exists if and only if its response was committed.*
//!
//! A row is inserted complete and never updated. `FOR UPDATE` is not needed anywhere: who holds the key's
//! advisory lock is alone with its row, but for the sweeper, which deletes only what has expired.

use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::DatabaseErrorKind;
use diesel::result::Error::DatabaseError;
use diesel::sql_types::{BigInt, Bool};
use sha2::{Digest, Sha256};

use super::{Answer, Call, Claim, Fingerprint, Key, KeySource, fingerprint};
use crate::error::Error;
use crate::schema::idempotency_records as records;
use crate::secrets::Secrets;
use crate::types::Cause;
use crate::types::ids::{AccountId, RequestId};

/// A row.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = records, check_for_backend(Pg))]
pub struct Record {
    fingerprint_version: i16,
    fingerprint: Vec<u8>,
    pub request_id: RequestId,
    pub status: i16,
    content_type: String,
    location: String,
    sealed: bool,
    body: Vec<u8>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

#[derive(Insertable)]
#[diesel(table_name = records, treat_none_as_default_value = false)]
struct NewRecord<'a> {
    account_id: AccountId,
    source: &'a str,
    key: &'a str,
    fingerprint_version: i16,
    fingerprint: &'a [u8],
    request_id: RequestId,
    status: i16,
    content_type: &'a str,
    location: &'a str,
    sealed: bool,
    body: &'a [u8],
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

impl Record {
    /// Whether the key's lifetime lasts. A record whose lifetime is over counts as none, swept or not.
    pub fn is_live(&self, now: DateTime<Utc>) -> bool {
        now < self.expires_at
    }

    /// Whether this is the answer to that very request, as far as it can be compared.
    pub fn is_of(&self, fingerprint: &Fingerprint) -> bool {
        self.fingerprint_version != fingerprint::VERSION || fingerprint.may_be(&self.fingerprint)
    }

    /// The answer as it was sent first, marked as a replay.
    ///
    /// # Errors
    /// A sealed body that none of the server's secrets opens.
    pub fn answer(&self, secrets: &Secrets, account: AccountId, claim: &Claim) -> Result<Answer, Error> {
        let body = if self.sealed {
            secrets.open(&self.body, &seal_context(account, claim)).ok_or_else(|| {
                Error::Internal("no secret of the server opens the stored answer".to_owned())
            })?
        } else {
            self.body.clone()
        };
        Ok(Answer {
            status: self.status.unsigned_abs(),
            content_type: self.content_type.clone(),
            location: (!self.location.is_empty()).then(|| self.location.clone()),
            body,
            original: Some(self.request_id),
        })
    }
}

/// The record of `claim`.
///
/// # Errors
/// What the statement reports.
pub fn find(connection: &mut PgConnection, account: AccountId, claim: &Claim) -> QueryResult<Option<Record>> {
    find_by_key(connection, account, claim.source.as_str(), claim.key.as_str())
}

/// The record of a key.
///
/// # Errors
/// What the statement reports.
fn find_by_key(
    connection: &mut PgConnection,
    account: AccountId,
    source: &str,
    key: &str,
) -> QueryResult<Option<Record>> {
    records::table.find((account, source, key)).select(Record::as_select()).first(connection).optional()
}

/// Stores the answer. The insert is plain: should another transaction have stored one for this key in spite of
/// the lock, it fails with this transaction, and the answer here is `false`.
///
/// # Errors
/// What the statement reports.
pub fn insert(
    secrets: &Secrets,
    connection: &mut PgConnection,
    account: AccountId,
    call: &Call,
    claim: &Claim,
    answer: &Answer,
) -> QueryResult<bool> {
    let sealed_body = claim.secret.then(|| secrets.seal(&answer.body, &seal_context(account, claim)));
    let lifetime = chrono::Duration::from_std(claim.lifetime).unwrap_or(chrono::Duration::days(36_500));
    let record = NewRecord {
        account_id: account,
        source: claim.source.as_str(),
        key: claim.key.as_str(),
        fingerprint_version: fingerprint::VERSION,
        fingerprint: claim.fingerprint.current(),
        request_id: call.request_id,
        status: i16::try_from(answer.status).unwrap_or(500),
        content_type: &answer.content_type,
        location: answer.location.as_deref().unwrap_or(""),
        sealed: claim.secret,
        body: sealed_body.as_deref().unwrap_or(&answer.body),
        created_at: call.now,
        expires_at: call.now + lifetime,
    };
    match diesel::insert_into(records::table).values(&record).execute(connection) {
        Ok(_) => Ok(true),
        Err(DatabaseError(DatabaseErrorKind::UniqueViolation, info))
            if info.constraint_name() == Some("idempotency_records_pkey") =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Removes the record of `claim`, which has expired.
///
/// # Errors
/// What the statement reports.
pub fn delete(connection: &mut PgConnection, account: AccountId, claim: &Claim) -> QueryResult<()> {
    diesel::delete(records::table.find((account, claim.source.as_str(), claim.key.as_str())))
        .execute(connection)?;
    Ok(())
}

/// Takes the lock of `claim` until the transaction ends, or says at once that another has it.
///
/// # Errors
/// What the statement reports.
pub fn try_lock(connection: &mut PgConnection, account: AccountId, claim: &Claim) -> QueryResult<bool> {
    diesel::select(pg_try_advisory_xact_lock(lock_number(account, claim.source.as_str(), claim.key.as_str())))
        .get_result(connection)
}

/// What can be known of a key.
pub enum Known {
    Completed(Record),
    InProgress,
}

/// What became of the request with this key of the account's; `None` if nothing is known of it.
///
/// # Errors
/// What the statements report.
pub fn known(connection: &mut PgConnection, cause: &Cause, key: &Key) -> QueryResult<Option<Known>> {
    let (account, source) = (cause.account, KeySource::Api.as_str());
    // The lock is looked for first: a request that ends in between is then found by its record. The lock itself
    // is never taken, or the look-up would make the request fail that it asks about.
    let is_running: bool =
        IsLocked { number: lock_number(account, source, key.as_str()) }.get_result(connection)?;
    let record = find_by_key(connection, account, source, key.as_str())?;
    Ok(match record.filter(|record| record.is_live(cause.now)) {
        Some(record) => Some(Known::Completed(record)),
        None => is_running.then_some(Known::InProgress),
    })
}

/// Whether a transaction holds the advisory lock of a number, which PostgreSQL shows in halves. diesel keeps no
/// `sql_query` prepared.
#[derive(QueryId)]
struct IsLocked {
    number: i64,
}

impl QueryFragment<Pg> for IsLocked {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND (classid::bigint << 32 | objid::bigint) = ",
        );
        out.push_bind_param::<BigInt, _>(&self.number)?;
        out.push_sql(")");
        Ok(())
    }
}

impl Query for IsLocked {
    type SqlType = Bool;
}

impl RunQueryDsl<PgConnection> for IsLocked {}

diesel::define_sql_function! {
    fn pg_try_advisory_xact_lock(number: BigInt) -> Bool;
}

/// The number of a key's advisory lock. Two keys that share one (a chance of 2⁻⁶⁴) only conflict while both run.
fn lock_number(account: AccountId, source: &str, key: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update(b"oncepay idempotency key\0");
    hash.update(account.uuid().as_bytes());
    hash.update(source.as_bytes());
    hash.update([0]);
    hash.update(key.as_bytes());
    i64::from_be_bytes(hash.finalize()[..8].try_into().expect("eight of 32 bytes"))
}

/// What a sealed body is bound to, so that it opens in no other record.
fn seal_context(account: AccountId, claim: &Claim) -> String {
    format!("{account} {} {}", claim.source.as_str(), claim.key)
}

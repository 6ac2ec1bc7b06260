//! The remembered answer, as a row. *It exists if and only if its response was committed.*
//!
//! A row is inserted complete and never updated. No statement here needs `FOR UPDATE`: a transaction that holds the key's
//! advisory lock has the row to itself. Only the sweeper does not take that lock, and it deletes expired rows only.

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

/// A row of `idempotency_records`.
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
    /// Whether the key's lifetime still lasts. An expired record counts as no record, swept or not.
    pub fn is_live(&self, now: DateTime<Utc>) -> bool {
        now < self.expires_at
    }

    /// Whether this record may answer the request with this fingerprint; a record that cannot be compared may.
    pub fn may_answer(&self, fingerprint: &Fingerprint) -> bool {
        self.fingerprint_version != fingerprint::VERSION || fingerprint.may_match(&self.fingerprint)
    }

    /// The stored answer, marked as a replay.
    ///
    /// # Errors
    /// [`Error::Internal`] for a sealed body that none of the server's secrets opens.
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

/// The record of `claim`, live or expired.
pub fn find(connection: &mut PgConnection, account: AccountId, claim: &Claim) -> QueryResult<Option<Record>> {
    find_by_key(connection, account, claim.source.as_str(), claim.key.as_str())
}

fn find_by_key(
    connection: &mut PgConnection,
    account: AccountId,
    source: &str,
    key: &str,
) -> QueryResult<Option<Record>> {
    records::table.find((account, source, key)).select(Record::as_select()).first(connection).optional()
}

/// Stores the answer, and returns `false` if another transaction has stored one for this key in spite of the lock.
///
/// The insert is plain, without `ON CONFLICT`: if it loses that race, the whole transaction fails and rolls back.
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

/// Deletes the expired record of `claim`.
pub fn delete(connection: &mut PgConnection, account: AccountId, claim: &Claim) -> QueryResult<()> {
    diesel::delete(records::table.find((account, claim.source.as_str(), claim.key.as_str())))
        .execute(connection)?;
    Ok(())
}

/// Takes the lock of `claim` until the transaction ends; returns `false` at once if another transaction holds it.
pub fn try_lock(connection: &mut PgConnection, account: AccountId, claim: &Claim) -> QueryResult<bool> {
    diesel::select(pg_try_advisory_xact_lock(lock_number(account, claim.source.as_str(), claim.key.as_str())))
        .get_result(connection)
}

/// The state of a key.
pub enum KeyState {
    Completed(Record),
    InProgress,
}

/// The state of a key of the account; `None` if no request runs with it and none has committed.
pub fn state_of_key(
    connection: &mut PgConnection,
    cause: &Cause,
    key: &Key,
) -> QueryResult<Option<KeyState>> {
    let (account, source) = (cause.account, KeySource::Api.as_str());
    // The lock is looked up before the record, so a request that commits in between is found by its record. The look-up
    // never takes the lock: the request that it asks about would then get 409.
    let is_running: bool =
        IsLocked { number: lock_number(account, source, key.as_str()) }.get_result(connection)?;
    let record = find_by_key(connection, account, source, key.as_str())?;
    Ok(match record.filter(|record| record.is_live(cause.now)) {
        Some(record) => Some(KeyState::Completed(record)),
        None => is_running.then_some(KeyState::InProgress),
    })
}

/// Whether a transaction holds the advisory lock with this number.
///
/// `pg_locks` shows the number in two halves. This is a type of its own and not an `sql_query`, because diesel does not
/// cache the prepared statement of an `sql_query`.
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

/// The number of a key's advisory lock.
///
/// Two keys share a number with a chance of 2⁻⁶⁴. Their requests then conflict while both run, and nothing else happens.
fn lock_number(account: AccountId, source: &str, key: &str) -> i64 {
    let mut hash = Sha256::new();
    hash.update(b"oncepay idempotency key\0");
    hash.update(account.uuid().as_bytes());
    hash.update(source.as_bytes());
    hash.update([0]);
    hash.update(key.as_bytes());
    i64::from_be_bytes(hash.finalize()[..8].try_into().expect("eight of 32 bytes"))
}

/// The context that a sealed body is bound to, so that it cannot be opened as part of another record.
fn seal_context(account: AccountId, claim: &Claim) -> String {
    format!("{account} {} {}", claim.source.as_str(), claim.key)
}

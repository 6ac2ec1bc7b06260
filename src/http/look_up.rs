//! The first statement of a request, which finds the caller's account and the record of the key.

use diesel::dsl::{AsSelect, SqlTypeOf};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Binary, Nullable, Text};

use crate::auth::{self, Credentials};
use crate::error::Error;
use crate::idempotency::faults::Point;
use crate::idempotency::record::{self, Record};
use crate::idempotency::{Call, Claim, Engine, Found};
use crate::schema::api_keys;
use crate::types::ids::{AccountId, kinds};

/// The caller of a request.
#[derive(Debug)]
pub enum Caller {
    /// The holder of an API key, which is not checked yet.
    Holder(Credentials),
    /// The sender of a notification about this account, whose signature has been checked.
    Notifier(AccountId),
}

impl Caller {
    /// The error of a caller who has no account.
    pub fn unknown(&self) -> Error {
        match self {
            Caller::Holder(credentials) => credentials.unknown(),
            Caller::Notifier(account) => Error::no_such::<kinds::Account>(&account.to_string(), "account"),
        }
    }

    /// The caller's account, if it exists.
    pub fn account(&self, connection: &mut PgConnection) -> QueryResult<Option<AccountId>> {
        match self {
            Caller::Holder(credentials) => auth::queries::account(connection, credentials),
            Caller::Notifier(account) => auth::queries::account_with_id(connection, *account),
        }
    }
}

/// Finds the caller's account and, if the request has a key, the record of the key.
///
/// # Errors
/// The account does not exist, or the database fails.
pub fn look_up(
    engine: &Engine,
    connection: &mut PgConnection,
    caller: &Caller,
    call: &Call,
) -> Result<Found, Error> {
    let found = engine.database.with_reconnect(connection, |connection| match (caller, &call.claim) {
        (Caller::Holder(credentials), Some(claim)) => find_with_account(connection, credentials, claim),
        (_, claim) => {
            let Some(account) = caller.account(connection)? else { return Ok(None) };
            let record = claim.as_ref().map(|claim| record::find(connection, account, claim)).transpose()?;
            Ok(Some((account, record.flatten())))
        }
    })?;
    engine.faults.reach(Point::AfterLookUp, call);
    let (account, record) = found.ok_or_else(|| caller.unknown())?;
    Ok(Found { account, record })
}

/// Finds the account of `credentials` and its record for `claim` in one statement; `None` if there is no such API key.
fn find_with_account(
    connection: &mut PgConnection,
    credentials: &Credentials,
    claim: &Claim,
) -> QueryResult<Option<(AccountId, Option<Record>)>> {
    AccountWithRecord { credentials, claim, record: Record::as_select() }.get_result(connection).optional()
}

/// The statement of [`find_with_account`], which diesel's DSL cannot express.
///
/// With `LATERAL`, the planner must look up the record by its whole primary key. It may plan a simple join as a scan of all
/// records. Prepared statements keep their plans, so it would still scan them when there are many.
struct AccountWithRecord<'a> {
    credentials: &'a Credentials,
    claim: &'a Claim,
    record: AsSelect<Record, Pg>,
}

impl QueryFragment<Pg> for AccountWithRecord<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT api_keys.account_id, idempotency_records.* FROM api_keys LEFT JOIN LATERAL (SELECT ",
        );
        self.record.walk_ast(out.reborrow())?;
        out.push_sql(
            " FROM idempotency_records WHERE idempotency_records.account_id = api_keys.account_id \
             AND idempotency_records.source = ",
        );
        out.push_bind_param::<Text, _>(self.claim.source.as_str())?;
        out.push_sql(" AND idempotency_records.key = ");
        out.push_bind_param::<Text, _>(self.claim.key.as_str())?;
        out.push_sql(" LIMIT 1) AS idempotency_records ON true WHERE api_keys.secret_hash = ");
        out.push_bind_param::<Binary, _>(self.credentials.hash())?;
        out.push_sql(" AND api_keys.revoked_at IS NULL");
        Ok(())
    }
}

/// Written by hand, because the derive does not support lifetimes.
impl QueryId for AccountWithRecord<'_> {
    type QueryId = AccountWithRecord<'static>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for AccountWithRecord<'_> {
    type SqlType =
        (SqlTypeOf<api_keys::account_id>, Nullable<SqlTypeOf<<Record as Selectable<Pg>>::SelectExpression>>);
}

impl RunQueryDsl<PgConnection> for AccountWithRecord<'_> {}

//! The SQL of the ledger.

use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::{BalanceTransaction, Filter, MovedBy};
use crate::db::{one_of, page_of, rows};
use crate::schema::balance_transactions;
use crate::types::ids::{AccountId, BalanceTransactionId, DisputeId};
use crate::types::{Currency, PageRequest};

rows!(balance_transactions: BalanceTransaction, BalanceTransactionId => find, find_all);

pub fn of_disputes(
    connection: &mut PgConnection,
    account: AccountId,
    disputes: &[DisputeId],
) -> QueryResult<Vec<BalanceTransaction>> {
    balance_transactions::table
        .filter(balance_transactions::account_id.eq(account))
        .filter(one_of!(balance_transactions::dispute_id.assume_not_null(), disputes))
        .order(balance_transactions::id.asc())
        .select(BalanceTransaction::as_select())
        .load(connection)
}

pub fn list(
    connection: &mut PgConnection,
    account: AccountId,
    page: &PageRequest,
    filter: &Filter,
) -> QueryResult<Vec<BalanceTransaction>> {
    let mut query = page_of!(balance_transactions: BalanceTransaction, account, page);
    if let Some(currency) = filter.currency {
        query = query.filter(balance_transactions::currency.eq(currency));
    }
    if let Some(movements) = &filter.movements {
        query = query.filter(one_of!(balance_transactions::kind, &movements[..]));
    }
    query = match filter.moved_by {
        None => query,
        Some(MovedBy::Charge(id)) => query
            .filter(balance_transactions::charge_id.eq(id))
            .filter(balance_transactions::refund_id.is_null())
            .filter(balance_transactions::dispute_id.is_null()),
        Some(MovedBy::Refund(id)) => query.filter(balance_transactions::refund_id.eq(id)),
        Some(MovedBy::Dispute(id)) => query.filter(balance_transactions::dispute_id.eq(id)),
    };
    query.load(connection)
}

/// The sum of the ledger by currency, read from one index.
pub fn sums(connection: &mut PgConnection, account: AccountId) -> QueryResult<Vec<(Currency, i64)>> {
    balance_transactions::table
        .filter(balance_transactions::account_id.eq(account))
        .group_by(balance_transactions::currency)
        // The sum of bigint is numeric. It fits: 92 billion payments of the largest amount would not be too much.
        .select((balance_transactions::currency, sql::<BigInt>("sum(amount)::bigint")))
        .order(balance_transactions::currency.asc())
        .load(connection)
}

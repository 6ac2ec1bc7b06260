use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use uuid::Uuid;

use super::{BalanceTransaction, Filter, MovedBy, Movement};
use crate::db::one_of;
use crate::schema::balance_transactions;
use crate::types::ids::{AccountId, BalanceTransactionId, ChargeId};
use crate::types::page::Direction;
use crate::types::{Currency, PageRequest};

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: BalanceTransactionId,
) -> QueryResult<Option<BalanceTransaction>> {
    balance_transactions::table
        .find((account, id))
        .select(BalanceTransaction::as_select())
        .first(connection)
        .optional()
}

pub fn find_all(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[Uuid],
) -> QueryResult<Vec<BalanceTransaction>> {
    balance_transactions::table
        .filter(balance_transactions::account_id.eq(account))
        .filter(one_of!(balance_transactions::id, ids))
        .select(BalanceTransaction::as_select())
        .load(connection)
}

pub fn of_disputed(
    connection: &mut PgConnection,
    account: AccountId,
    charges: &[ChargeId],
) -> QueryResult<Vec<BalanceTransaction>> {
    balance_transactions::table
        .filter(balance_transactions::account_id.eq(account))
        .filter(one_of!(balance_transactions::charge_id, charges))
        .filter(balance_transactions::refund_id.is_null())
        .filter(balance_transactions::kind.eq_any([Movement::Dispute, Movement::DisputeReversal]))
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
    let mut query = balance_transactions::table
        .filter(balance_transactions::account_id.eq(account))
        .filter(balance_transactions::id.ge(page.low()))
        .filter(balance_transactions::id.lt(page.high()))
        .select(BalanceTransaction::as_select())
        .limit(page.rows_to_fetch())
        .into_boxed();
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
            .filter(balance_transactions::refund_id.is_null()),
        Some(MovedBy::Refund(id)) => query.filter(balance_transactions::refund_id.eq(id)),
    };
    match page.direction() {
        Direction::Newest => query.order(balance_transactions::id.desc()).load(connection),
        Direction::Oldest => query.order(balance_transactions::id.asc()).load(connection),
    }
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

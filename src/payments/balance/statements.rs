//! What is written to the ledger, as a part of the statement that moves the money.

use diesel::pg::Pg;
use diesel::query_builder::{QueryFragment, QueryId};

use super::BalanceTransaction;
use crate::db::Part;
use crate::schema::balance_transactions;

/// A row of the ledger.
pub fn insert(movement: &BalanceTransaction) -> Part<impl QueryFragment<Pg> + QueryId> {
    Part::new("ledger", diesel::insert_into(balance_transactions::table).values(movement))
}

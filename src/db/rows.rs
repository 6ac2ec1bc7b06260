//! Finds, locks, lists and updates rows whose key is an account and an id, in the same way for all nouns.
//!
//! These are macros where diesel's types make a generic function hard to write.

use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AsChangeset, AstPass, QueryFragment, QueryId};
use diesel::sql_types;
use uuid::Uuid;

use crate::types::ids::AccountId;
use crate::types::{Id, Kind};

/// Declares the named functions among `find`, `lock` and `find_all`, which load rows by their keys.
macro_rules! rows {
    ($table:ident: $row:ident, $id:ty => $($query:ident),+) => {
        $($crate::db::rows!(@$query $table: $row, $id);)+
    };
    (@find $table:ident: $row:ident, $id:ty) => {
        pub fn find(
            connection: &mut diesel::PgConnection,
            account: $crate::types::ids::AccountId,
            id: $id,
        ) -> diesel::QueryResult<Option<$row>> {
            $table::table.find((account, id)).select($row::as_select()).first(connection).optional()
        }
    };
    (@lock $table:ident: $row:ident, $id:ty) => {
        /// Locks the row: `FOR NO KEY UPDATE` blocks other changes of it, and does not block foreign-key checks.
        pub fn lock(
            connection: &mut diesel::PgConnection,
            account: $crate::types::ids::AccountId,
            id: $id,
        ) -> diesel::QueryResult<Option<$row>> {
            $table::table
                .find((account, id))
                .select($row::as_select())
                .for_no_key_update()
                .first(connection)
                .optional()
        }
    };
    (@find_all $table:ident: $row:ident, $id:ty) => {
        pub fn find_all(
            connection: &mut diesel::PgConnection,
            account: $crate::types::ids::AccountId,
            ids: &[uuid::Uuid],
        ) -> diesel::QueryResult<Vec<$row>> {
            $table::table
                .filter($table::account_id.eq(account))
                .filter($crate::db::one_of!($table::id, ids))
                .select($row::as_select())
                .load(connection)
        }
    };
}
pub(crate) use rows;

/// The query of one page of an account's rows, to which a noun adds its filter.
macro_rules! page_of {
    ($table:ident: $row:ident, $account:expr, $page:expr) => {{
        let query = $table::table
            .filter($table::account_id.eq($account))
            .filter($table::id.ge($page.low()))
            .filter($table::id.lt($page.high()))
            .select($row::as_select())
            .limit($page.rows_to_fetch())
            .into_boxed();
        match $page.direction() {
            $crate::types::page::Direction::Newest => query.order($table::id.desc()),
            $crate::types::page::Direction::Oldest => query.order($table::id.asc()),
        }
    }};
}
pub(crate) use page_of;

/// The `UPDATE` of a row that was read under its lock.
///
/// It sets all columns, so each table has one such statement, and diesel caches it. (diesel does not cache its own
/// `update`.)
#[derive(Debug)]
pub struct UpdateRow<Table, Changes> {
    table: Table,
    account: AccountId,
    id: Uuid,
    changes: Changes,
}

/// Sets the row with this key to `row`, whose type derives [`AsChangeset`] with `treat_none_as_null`.
pub fn update_row<Table, K: Kind, Row: AsChangeset<Target = Table>>(
    table: Table,
    account: AccountId,
    id: Id<K>,
    row: Row,
) -> UpdateRow<Table, Row::Changeset> {
    UpdateRow { table, account, id: id.uuid(), changes: row.as_changeset() }
}

impl<Table: QueryFragment<Pg>, Changes: QueryFragment<Pg>> QueryFragment<Pg> for UpdateRow<Table, Changes> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE ");
        self.table.walk_ast(out.reborrow())?;
        out.push_sql(" SET ");
        self.changes.walk_ast(out.reborrow())?;
        out.push_sql(" WHERE account_id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.account)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.id)
    }
}

/// Each table has one type of row, so its type identifies the statement.
impl<Table: 'static, Changes> QueryId for UpdateRow<Table, Changes> {
    type QueryId = UpdateRow<Table, ()>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<Table, Changes> RunQueryDsl<PgConnection> for UpdateRow<Table, Changes> {}

//! Several statements in one round trip, and conditions that PostgreSQL plans well.

use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{self, Array, BigInt};
use uuid::Uuid;

use crate::types::ids::AccountId;

/// `WITH a AS (…), b AS (…) …`: several statements in one round trip and one snapshot.
///
/// The statements do not see each other's rows. PostgreSQL checks the foreign keys among them at the end of the whole.
/// `parts` is a tuple of [`Part`]s. Each combination of types has its own query id, so diesel caches its prepared
/// statement.
#[derive(Debug, QueryId)]
pub struct Together<Parts, Last> {
    parts: Parts,
    last: Last,
}

/// A statement of [`Together`] and its name.
#[derive(Debug, QueryId)]
pub struct Part<Statement> {
    name: &'static str,
    statement: Statement,
}

impl<Parts, Last> Together<Parts, Last> {
    pub fn new(parts: Parts, last: Last) -> Self {
        Self { parts, last }
    }
}

impl<Statement> Part<Statement> {
    pub fn new(name: &'static str, statement: Statement) -> Self {
        Self { name, statement }
    }
}

impl<Statement: QueryFragment<Pg>> QueryFragment<Pg> for Part<Statement> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_identifier(self.name)?;
        out.push_sql(" AS (");
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql(")");
        Ok(())
    }
}

impl<Parts: QueryFragment<Pg>, Last: QueryFragment<Pg>> QueryFragment<Pg> for Together<Parts, Last> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH ");
        self.parts.walk_ast(out.reborrow())?;
        out.push_sql(" ");
        self.last.walk_ast(out)
    }
}

impl<Parts, Last> RunQueryDsl<PgConnection> for Together<Parts, Last> {}

/// Selects the newest rows of several owners in one statement: at most `limit` for each owner, the newest first.
///
/// `LATERAL` makes it one index scan for each owner. A plain condition on the owners would read all their rows.
#[derive(Debug)]
pub struct NewestOfEach<'a, Columns> {
    pub columns: Columns,
    pub table: &'static str,
    /// The column that names the owner.
    pub owner: &'static str,
    pub account: AccountId,
    pub owners: &'a [Uuid],
    pub limit: i64,
}

impl<Columns: QueryFragment<Pg>> QueryFragment<Pg> for NewestOfEach<'_, Columns> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT newest.* FROM unnest(");
        out.push_bind_param::<Array<sql_types::Uuid>, _>(&self.owners)?;
        out.push_sql(") AS owners (id) CROSS JOIN LATERAL (SELECT ");
        self.columns.walk_ast(out.reborrow())?;
        out.push_sql(" FROM ");
        out.push_identifier(self.table)?;
        out.push_sql(" WHERE ");
        out.push_identifier(self.owner)?;
        out.push_sql(" = owners.id AND account_id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.account)?;
        out.push_sql(" ORDER BY ");
        out.push_identifier(self.table)?;
        out.push_sql(".id DESC LIMIT ");
        out.push_bind_param::<BigInt, _>(&self.limit)?;
        out.push_sql(") AS newest");
        Ok(())
    }
}

/// Written by hand, because the derive does not support lifetimes. The columns of each table have a type of their own.
impl<Columns: 'static> QueryId for NewestOfEach<'_, Columns> {
    type QueryId = NewestOfEach<'static, Columns>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<Columns: Expression> Query for NewestOfEach<'_, Columns> {
    type SqlType = Columns::SqlType;
}

impl<Columns> RunQueryDsl<PgConnection> for NewestOfEach<'_, Columns> {}

/// The condition that a column equals one of these ids.
///
/// A single id is compared with `=`. A cached plan does not know the length of a list, and a plan for a long list may read
/// every row of the account.
macro_rules! one_of {
    ($table:ident::$column:ident $(.$and:ident())?, $ids:expr) => {
        match $ids {
            [id] => Box::new($table::$column$(.$and())?.eq(id))
                as Box<
                    dyn diesel::BoxableExpression<
                            $table::table,
                            diesel::pg::Pg,
                            SqlType = diesel::sql_types::Bool,
                        > + '_,
                >,
            ids => Box::new($table::$column$(.$and())?.eq_any(ids)),
        }
    };
}
pub(crate) use one_of;

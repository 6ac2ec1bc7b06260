//! Several statements in one round trip, and JSON columns.

use std::io::Write;

use diesel::deserialize;
use diesel::pg::{Pg, PgConnection, PgValue};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::serialize::{self, IsNull, Output};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// `WITH a AS (…), b AS (…) …`: one round trip and one snapshot for statements that do not read each other's
/// rows. Foreign keys among them are checked when all of it is done.
///
/// `parts` is a tuple of [`Part`]s. As each type of statement has its own query id, so has each combination, and
/// diesel keeps it prepared.
#[derive(Debug, QueryId)]
pub struct Together<Parts, Last> {
    parts: Parts,
    last: Last,
}

/// A statement under a name.
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

/// Writes `value` as `jsonb`, whose binary form is a version byte and the text.
///
/// # Errors
/// What serializing or the buffer reports.
pub fn write_jsonb(value: &impl Serialize, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    out.write_all(&[1])?;
    write_json(value, out)
}

/// Makes a type of serde a column of `jsonb`.
macro_rules! jsonb_column {
    ($column:ty) => {
        impl diesel::serialize::ToSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for $column {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                $crate::db::write_jsonb(self, out)
            }
        }

        impl diesel::deserialize::FromSql<diesel::sql_types::Jsonb, diesel::pg::Pg> for $column {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                $crate::db::read_jsonb(value)
            }
        }
    };
}
pub(crate) use jsonb_column;

/// That a column is one of these ids. A single one is compared as such: the length of a list is not known to a plan that
/// is kept for all values, and a plan for a long one may look at every row of the account.
macro_rules! one_of {
    ($table:ident::$column:ident, $ids:expr) => {
        match $ids {
            [id] => Box::new($table::$column.eq(id))
                as Box<
                    dyn diesel::BoxableExpression<
                            $table::table,
                            diesel::pg::Pg,
                            SqlType = diesel::sql_types::Bool,
                        > + '_,
                >,
            ids => Box::new($table::$column.eq_any(ids)),
        }
    };
}
pub(crate) use one_of;

/// Writes `value` as `json`, whose binary form is the text.
///
/// # Errors
/// What serializing or the buffer reports.
pub fn write_json(value: &impl Serialize, out: &mut Output<'_, '_, Pg>) -> serialize::Result {
    serde_json::to_writer(out, value)?;
    Ok(IsNull::No)
}

/// Reads what [`write_jsonb`] wrote.
///
/// # Errors
/// Another version of the form, or JSON of another shape.
pub fn read_jsonb<T: DeserializeOwned>(value: PgValue<'_>) -> deserialize::Result<T> {
    match value.as_bytes() {
        [1, text @ ..] => Ok(serde_json::from_slice(text)?),
        _ => Err("an unknown form of jsonb".into()),
    }
}

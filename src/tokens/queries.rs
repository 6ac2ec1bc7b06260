use chrono::{DateTime, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types;

use super::Token;
use crate::auth::Account;
use crate::payment_methods::PaymentMethod;
use crate::schema::{payment_methods, tokens};
use crate::types::Id;

pub fn insert(connection: &mut PgConnection, token: &Token) -> QueryResult<()> {
    diesel::insert_into(tokens::table).values(token).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Token>,
) -> QueryResult<Option<(Token, PaymentMethod)>> {
    tokens::table
        .inner_join(
            payment_methods::table.on(payment_methods::account_id
                .eq(tokens::account_id)
                .and(payment_methods::id.eq(tokens::payment_method_id))),
        )
        .filter(tokens::account_id.eq(account))
        .filter(tokens::id.eq(id))
        .select((Token::as_select(), PaymentMethod::as_select()))
        .first(connection)
        .optional()
}

/// Marks an unused token as used, and gives the id of its card.
pub fn spend(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Token>,
    now: DateTime<Utc>,
) -> QueryResult<Option<Id<PaymentMethod>>> {
    Spend { account, id, now }.get_result(connection).optional()
}

/// diesel keeps no `UPDATE` prepared of its own accord.
#[derive(QueryId)]
struct Spend {
    account: Id<Account>,
    id: Id<Token>,
    now: DateTime<Utc>,
}

impl QueryFragment<Pg> for Spend {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE tokens SET used_at = ");
        out.push_bind_param::<sql_types::Timestamptz, _>(&self.now)?;
        out.push_sql(" WHERE account_id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.account)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.id)?;
        out.push_sql(" AND used_at IS NULL RETURNING payment_method_id");
        Ok(())
    }
}

impl Query for Spend {
    type SqlType = sql_types::Uuid;
}

impl RunQueryDsl<PgConnection> for Spend {}

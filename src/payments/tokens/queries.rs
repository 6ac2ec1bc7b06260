//! The SQL of tokens.

use chrono::{DateTime, Utc};
use diesel::dsl::{AsSelect, SqlTypeOf};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types;

use super::Token;
use crate::payments::payment_methods::PaymentMethod;
use crate::schema::{payment_methods, tokens};
use crate::types::ids::{AccountId, TokenId};

pub fn insert(connection: &mut PgConnection, token: &Token) -> QueryResult<()> {
    diesel::insert_into(tokens::table).values(token).execute(connection).map(drop)
}

pub fn find(
    connection: &mut PgConnection,
    account: AccountId,
    id: TokenId,
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

/// Marks an unused token as used, and gives its card.
pub fn consume(
    connection: &mut PgConnection,
    account: AccountId,
    id: TokenId,
    now: DateTime<Utc>,
) -> QueryResult<Option<PaymentMethod>> {
    Consume { account, id, now, card: PaymentMethod::as_select() }.get_result(connection).optional()
}

/// diesel keeps no `UPDATE` prepared of its own accord, and knows none with a second table.
#[derive(QueryId)]
struct Consume {
    account: AccountId,
    id: TokenId,
    now: DateTime<Utc>,
    card: AsSelect<PaymentMethod, Pg>,
}

impl QueryFragment<Pg> for Consume {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE tokens SET used_at = ");
        out.push_bind_param::<sql_types::Timestamptz, _>(&self.now)?;
        out.push_sql(" FROM payment_methods WHERE tokens.account_id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.account)?;
        out.push_sql(" AND tokens.id = ");
        out.push_bind_param::<sql_types::Uuid, _>(&self.id)?;
        out.push_sql(
            " AND tokens.used_at IS NULL AND payment_methods.account_id = tokens.account_id \
             AND payment_methods.id = tokens.payment_method_id RETURNING ",
        );
        self.card.walk_ast(out)
    }
}

impl Query for Consume {
    type SqlType = SqlTypeOf<AsSelect<PaymentMethod, Pg>>;
}

impl RunQueryDsl<PgConnection> for Consume {}

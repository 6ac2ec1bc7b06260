use chrono::{DateTime, Utc};
use diesel::dsl::{AsSelect, SqlTypeOf};
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

/// Marks an unused token as used, and gives its card.
pub fn spend(
    connection: &mut PgConnection,
    account: Id<Account>,
    id: Id<Token>,
    now: DateTime<Utc>,
) -> QueryResult<Option<PaymentMethod>> {
    Spend { account, id, now, card: PaymentMethod::as_select() }.get_result(connection).optional()
}

/// diesel keeps no `UPDATE` prepared of its own accord, and knows none with a second table.
#[derive(QueryId)]
struct Spend {
    account: Id<Account>,
    id: Id<Token>,
    now: DateTime<Utc>,
    card: AsSelect<PaymentMethod, Pg>,
}

impl QueryFragment<Pg> for Spend {
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

impl Query for Spend {
    type SqlType = SqlTypeOf<AsSelect<PaymentMethod, Pg>>;
}

impl RunQueryDsl<PgConnection> for Spend {}

//! What is written to `charges`, as parts of one statement: other nouns write with them what changes together with
//! something of theirs.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Nullable, Text, Uuid as SqlUuid};

use super::Charge;
use crate::db::Part;
use crate::schema::charges;
use crate::types::ids::{AccountId, ChargeId};

/// A new charge.
pub fn insert(charge: &Charge) -> Part<impl QueryFragment<Pg> + QueryId> {
    Part::new("charge", diesel::insert_into(charges::table).values(charge))
}

/// A hold was captured.
pub fn capture(charge: &Charge) -> Part<impl QueryFragment<Pg> + QueryId + use<>> {
    Part::new("charge", Capture { charge: charge.clone() })
}

/// A hold was let go.
pub fn release(charge: &Charge) -> Part<impl QueryFragment<Pg> + QueryId> {
    let update = diesel::update(charges::table.find((charge.account_id, charge.id)));
    Part::new("charge", update.set(charges::status.eq(charge.status)))
}

/// A refund took something off, or gave it back.
pub fn refund(charge: &Charge) -> Part<impl QueryFragment<Pg> + QueryId + use<>> {
    let (account, id, amount_refunded) = (charge.account_id, charge.id, charge.amount_refunded);
    Part::new("charge", Refund { account, id, amount_refunded })
}

/// The cardholder says that it is wrong.
pub fn dispute(account: AccountId, charge: ChargeId) -> Part<impl QueryFragment<Pg> + QueryId> {
    Part::new(
        "charge",
        diesel::update(charges::table.find((account, charge))).set(charges::disputed.eq(true)),
    )
}

/// The `UPDATE` of a capture, which is hot. diesel prepares its own `update` anew each time.
#[derive(QueryId)]
struct Capture {
    charge: Charge,
}

impl QueryFragment<Pg> for Capture {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE charges SET status = ");
        out.push_bind_param::<Text, _>(&self.charge.status)?;
        out.push_sql(", amount_captured = ");
        out.push_bind_param::<BigInt, _>(&self.charge.amount_captured)?;
        out.push_sql(", balance_transaction_id = ");
        out.push_bind_param::<Nullable<SqlUuid>, _>(&self.charge.balance_transaction_id)?;
        out.push_sql(", receipt_email = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.charge.receipt_email)?;
        out.push_sql(", statement_descriptor = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.charge.statement_descriptor)?;
        out.push_sql(", statement_descriptor_suffix = ");
        out.push_bind_param::<Nullable<Text>, _>(&self.charge.statement_descriptor_suffix)?;
        out.push_sql(" WHERE account_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.charge.account_id)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<SqlUuid, _>(&self.charge.id)?;
        Ok(())
    }
}

/// The `UPDATE` of a refund.
#[derive(QueryId)]
struct Refund {
    account: AccountId,
    id: ChargeId,
    amount_refunded: i64,
}

impl QueryFragment<Pg> for Refund {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("UPDATE charges SET amount_refunded = ");
        out.push_bind_param::<BigInt, _>(&self.amount_refunded)?;
        out.push_sql(" WHERE account_id = ");
        out.push_bind_param::<SqlUuid, _>(&self.account)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<SqlUuid, _>(&self.id)?;
        Ok(())
    }
}

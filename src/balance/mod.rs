//! The ledger and its sum.
//!
//! Every movement of money writes its row in the transaction that moves it. The balance is the sum of the rows over
//! an index, and never a running total in one row, which would make all charges of an account wait for each other.

pub mod handlers;
mod queries;
pub mod statements;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::Account;
use crate::charges::{self, Charge};
use crate::db::text_column;
use crate::disputes::Dispute;
use crate::error::Error;
use crate::refunds::{self, Refund};
use crate::schema::balance_transactions;
use crate::types::cause::Request;
use crate::types::ids;
use crate::types::{Amount, Cause, Currency, Id, Kind, Page, PageRequest};

/// A row of the ledger; Stripe calls it a balance transaction.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = balance_transactions, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct BalanceTransaction {
    pub account_id: Id<Account>,
    pub id: Id<BalanceTransaction>,
    pub request_id: Id<Request>,
    pub kind: Movement,
    pub charge_id: Id<Charge>,
    pub refund_id: Option<Id<Refund>>,
    /// Signed, in minor units: what came in is positive.
    pub amount: i64,
    pub currency: Currency,
    pub created_at: DateTime<Utc>,
}

impl Kind for BalanceTransaction {
    const PREFIX: &'static str = "txn";
    const NOUN: &'static str = "balance transaction";
}

/// Which rows a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub currency: Option<Currency>,
    pub movements: Option<Vec<Movement>>,
    pub source: Option<Source>,
}

text_column! {
    /// Why money moved.
    pub enum Movement {
        Charge => "charge",
        Refund => "refund",
        /// A refund came back.
        RefundFailure => "refund_failure",
        Dispute => "dispute",
        /// A dispute was won.
        DisputeReversal => "dispute_reversal",
    }
}

/// What moved the money.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    Charge(Id<Charge>),
    Refund(Id<Refund>),
}

/// The balance, by currency.
///
/// # Errors
/// What the statement reports.
pub fn balance(connection: &mut PgConnection, cause: &Cause) -> Result<Value, Error> {
    let mut sums = queries::sums(connection, cause.account)?;
    if sums.is_empty() {
        sums.push((Currency::parse("usd").expect("a currency of ISO 4217"), 0));
    }
    let part = |settled: bool| -> Vec<Value> {
        let amounts = sums.iter().map(|(currency, sum)| {
            let amount = if settled { *sum } else { 0 };
            json!({ "amount": amount, "currency": currency, "source_types": { "card": amount } })
        });
        amounts.collect()
    };
    Ok(json!({ "object": "balance", "available": part(true), "livemode": false, "pending": part(false) }))
}

/// A row by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<BalanceTransaction, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// A page of the ledger, the newest first.
///
/// # Errors
/// The cursor names no row, or the filter no source.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    cursor: Option<Id<BalanceTransaction>>,
    filter: &Filter,
) -> Result<Page<BalanceTransaction>, Error> {
    if let Some(id) = cursor {
        ids::in_parameter(id, page.cursor_name(), |id| queries::find(connection, cause.account, id))?;
    }
    match filter.source {
        None => {}
        Some(Source::Charge(id)) => charges::known(connection, cause, id, "source")?,
        Some(Source::Refund(id)) => refunds::known(connection, cause, id, "source")?,
    }
    Ok(page.page(queries::list(connection, cause.account, page, filter)?))
}

/// The shapes of these rows.
///
/// # Errors
/// What the statement reports.
pub fn shapes(connection: &mut PgConnection, account: Id<Account>, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(BalanceTransaction::shape).collect())
}

/// What disputes moved of these charges, in order.
///
/// # Errors
/// What the statement reports.
pub fn of_disputed(
    connection: &mut PgConnection,
    account: Id<Account>,
    charges: &[Id<Charge>],
) -> QueryResult<Vec<BalanceTransaction>> {
    queries::of_disputed(connection, account, charges)
}

/// The row of a capture: money in.
pub fn money_in(
    cause: &Cause,
    id: Id<BalanceTransaction>,
    charge: Id<Charge>,
    amount: Amount,
    currency: Currency,
) -> BalanceTransaction {
    BalanceTransaction {
        account_id: cause.account,
        id,
        request_id: cause.request_id,
        kind: Movement::Charge,
        charge_id: charge,
        refund_id: None,
        amount: amount.minor(),
        currency,
        created_at: cause.now,
    }
}

/// The row of a refund: money out.
pub fn money_out(cause: &Cause, refund: &Refund) -> BalanceTransaction {
    BalanceTransaction {
        account_id: cause.account,
        id: refund.balance_transaction_id,
        request_id: cause.request_id,
        kind: Movement::Refund,
        charge_id: refund.charge_id,
        refund_id: Some(refund.id),
        amount: -refund.amount.minor(),
        currency: refund.currency,
        created_at: cause.now,
    }
}

/// The row of a refund that failed after it had seemed to succeed: the money is here again.
pub fn money_again(cause: &Cause, id: Id<BalanceTransaction>, refund: &Refund) -> BalanceTransaction {
    BalanceTransaction {
        id,
        kind: Movement::RefundFailure,
        amount: refund.amount.minor(),
        ..money_out(cause, refund)
    }
}

/// The row of a dispute: money taken.
pub fn disputed(cause: &Cause, dispute: &Dispute) -> BalanceTransaction {
    BalanceTransaction {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        kind: Movement::Dispute,
        charge_id: dispute.charge_id,
        refund_id: None,
        amount: -dispute.amount,
        currency: dispute.currency,
        created_at: cause.now,
    }
}

/// The row of a dispute that was won: money given back.
pub fn reinstated(cause: &Cause, dispute: &Dispute) -> BalanceTransaction {
    BalanceTransaction { kind: Movement::DisputeReversal, amount: dispute.amount, ..disputed(cause, dispute) }
}

impl Movement {
    /// The type that Stripe gives its row: all that disputes move is an adjustment.
    fn wire_type(self) -> &'static str {
        match self {
            Movement::Dispute | Movement::DisputeReversal => "adjustment",
            other => other.as_str(),
        }
    }

    /// All of a type on the wire; none, if Stripe has the type and this service never moves money so.
    pub fn of_type(wire_type: &str) -> Vec<Movement> {
        Movement::ALL.iter().copied().filter(|movement| movement.wire_type() == wire_type).collect()
    }
}

impl BalanceTransaction {
    pub fn shape(&self) -> Value {
        let source = self.refund_id.map_or(self.charge_id.to_string(), |refund| refund.to_string());
        json!({
            "id": self.id,
            "object": "balance_transaction",
            "amount": self.amount,
            "available_on": self.created_at.timestamp(),
            "balance_type": "payments",
            "created": self.created_at.timestamp(),
            "currency": self.currency,
            "description": null,
            "exchange_rate": null,
            "fee": 0,
            "fee_details": [],
            "net": self.amount,
            "reporting_category": self.kind,
            "source": source,
            "status": "available",
            "type": self.kind.wire_type(),
        })
    }
}

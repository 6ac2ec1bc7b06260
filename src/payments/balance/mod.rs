//! The ledger and its sum.
//!
//! Every movement of money writes its row in the transaction that moves it. The balance is the sum of the rows over
//! an index, and never a running total in one row, which would make all charges of an account wait for each other.

pub mod handlers;
mod queries;
pub mod statements;

use std::fmt;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::schema::balance_transactions;
use crate::types::ids::{AccountId, BalanceTransactionId, ChargeId, DisputeId, RefundId, RequestId, kinds};
use crate::types::text_column;
use crate::types::{Cause, Currency, Page};
use crate::wire::{List, ids};

/// A row of the ledger; Stripe calls it a balance transaction.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = balance_transactions, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct BalanceTransaction {
    pub account_id: AccountId,
    pub id: BalanceTransactionId,
    pub request_id: RequestId,
    pub kind: Movement,
    pub charge_id: ChargeId,
    pub refund_id: Option<RefundId>,
    /// Signed, in minor units: what came in is positive.
    pub amount: i64,
    pub currency: Currency,
    pub created_at: DateTime<Utc>,
    pub dispute_id: Option<DisputeId>,
}

/// Which rows a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub currency: Option<Currency>,
    pub movements: Option<Vec<Movement>>,
    pub moved_by: Option<MovedBy>,
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
pub enum MovedBy {
    Charge(ChargeId),
    Refund(RefundId),
    Dispute(DisputeId),
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
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::BalanceTransaction, Filter>,
) -> Result<Page<BalanceTransaction>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// The objects of these rows.
///
/// # Errors
/// What the statement reports.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(BalanceTransaction::object).collect())
}

/// What these disputes moved, in order.
///
/// # Errors
/// What the statement reports.
pub fn of_disputes(
    connection: &mut PgConnection,
    account: AccountId,
    disputes: &[DisputeId],
) -> QueryResult<Vec<BalanceTransaction>> {
    queries::of_disputes(connection, account, disputes)
}

impl BalanceTransaction {
    /// The row of one movement of a charge's money. `amount` is signed: what comes in is positive.
    pub fn new(
        cause: &Cause,
        id: BalanceTransactionId,
        kind: Movement,
        (charge, moved_by): (ChargeId, MovedBy),
        (amount, currency): (i64, Currency),
    ) -> Self {
        let (refund_id, dispute_id) = match moved_by {
            MovedBy::Charge(_) => (None, None),
            MovedBy::Refund(refund) => (Some(refund), None),
            MovedBy::Dispute(dispute) => (None, Some(dispute)),
        };
        Self {
            account_id: cause.account,
            id,
            request_id: cause.request_id,
            kind,
            charge_id: charge,
            refund_id,
            amount,
            currency,
            created_at: cause.now,
            dispute_id,
        }
    }

    /// What moved the money.
    pub fn moved_by(&self) -> MovedBy {
        match (self.refund_id, self.dispute_id) {
            (Some(refund), _) => MovedBy::Refund(refund),
            (None, Some(dispute)) => MovedBy::Dispute(dispute),
            (None, None) => MovedBy::Charge(self.charge_id),
        }
    }
}

impl fmt::Display for MovedBy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MovedBy::Charge(id) => id.fmt(out),
            MovedBy::Refund(id) => id.fmt(out),
            MovedBy::Dispute(id) => id.fmt(out),
        }
    }
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
    pub fn object(&self) -> Value {
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
            "source": self.moved_by().to_string(),
            "status": "available",
            "type": self.kind.wire_type(),
        })
    }
}

//! Refunds: money of a captured charge on its way back.

pub mod handlers;
mod queries;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::card_network::{self, simulation};
use crate::error::Error;
use crate::payments::balance::{BalanceTransaction, MovedBy, Movement};
use crate::payments::charges::{self, Charge};
use crate::payments::disputes;
use crate::payments::payment_intents::{self};
use crate::schema::refunds;
use crate::types::ids::{
    AccountId, BalanceTransactionId, ChargeId, CustomerId, PaymentIntentId, PaymentMethodId, RefundId,
    RequestId, kinds,
};
use crate::types::text_column;
use crate::types::{Amount, Cause, Currency, Metadata, MetadataPatch, Page, PageRequest, money};
use crate::wire::directory::SUBLIST_ROWS;
use crate::wire::params::{self, patch_metadata};
use crate::wire::{List, ids};

/// A refund.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = refunds, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct Refund {
    pub account_id: AccountId,
    pub id: RefundId,
    pub request_id: RequestId,
    pub charge_id: ChargeId,
    pub payment_intent_id: Option<PaymentIntentId>,
    pub status: Status,
    pub amount: Amount,
    pub currency: Currency,
    pub customer_id: Option<CustomerId>,
    pub payment_method_id: PaymentMethodId,
    /// None if it only let a hold go.
    pub balance_transaction_id: Option<BalanceTransactionId>,
    /// The row that brought the money back, if it failed.
    pub failure_balance_transaction_id: Option<BalanceTransactionId>,
    pub reason: Option<Reason>,
    pub metadata: Metadata,
    pub created_at: DateTime<Utc>,
}

text_column! {
    /// Whether the money has arrived.
    pub enum Status {
        /// On its way; the card network will say how it went.
        Pending => "pending",
        Succeeded => "succeeded",
        /// It came back to the account.
        Failed => "failed",
    }
}

text_column! {
    /// Why the account moves the money back.
    pub enum Reason {
        Duplicate => "duplicate",
        Fraudulent => "fraudulent",
        RequestedByCustomer => "requested_by_customer",
    }
}

/// What a refund is asked to be.
pub struct CreateRefund {
    pub of: Refunded,
    /// What is left of the charge, if none is given.
    pub amount: Option<i64>,
    pub reason: Option<Reason>,
    pub metadata: Metadata,
}

/// What is refunded: a charge, or the one that kept a payment intent.
pub enum Refunded {
    Charge(ChargeId),
    Intent(PaymentIntentId),
}

/// Which refunds a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub charge: Option<ChargeId>,
    pub payment_intent: Option<PaymentIntentId>,
}

/// Moves money back, or lets a hold go.
///
/// # Errors
/// No such charge; a charge that failed or has nothing left; more than what is left; a part of a hold.
pub fn create(connection: &mut PgConnection, cause: &Cause, create: CreateRefund) -> Result<Refund, Error> {
    let (charge, param) = match create.of {
        Refunded::Charge(charge) => (charge, "charge"),
        Refunded::Intent(intent) => {
            (payment_intents::charge_to_refund(connection, cause, intent)?, "payment_intent")
        }
    };
    // Ends the race of two refunds, and of a refund with a capture: the second waits here, and then sees what the first
    // one took or moved.
    let charge = charges::locked(connection, cause, charge, "charge")?;
    let is_hold = charge.status == charges::Status::Authorised;
    let amount = match is_hold {
        true => amount_to_release(&charge, create.amount, param)?,
        false => amount_to_refund(&charge, create.amount, param)?,
    };
    if charge.disputed && disputes::has_taken(connection, &charge)? {
        return Err(Error::not_allowed(
            "charge_disputed",
            format!("Charge {} is disputed, so its money is not here to be refunded.", charge.id),
        ));
    }
    let card = card_network::by_name(&charge.card.test_card);
    let at_once = is_hold || card.is_none_or(card_network::refunds_at_once);
    let refund = Refund {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        charge_id: charge.id,
        payment_intent_id: charge.payment_intent_id,
        status: if at_once { Status::Succeeded } else { Status::Pending },
        amount,
        currency: charge.currency,
        customer_id: charge.customer_id,
        payment_method_id: charge.payment_method_id,
        balance_transaction_id: (!is_hold).then(|| cause.new_id()),
        failure_balance_transaction_id: None,
        reason: create.reason,
        metadata: create.metadata,
        created_at: cause.now,
    };
    let charge = if is_hold { charge.released() } else { charge.refunded(amount) };
    queries::insert(connection, cause, &refund, refund.movement(cause).as_ref(), &charge)?;
    if !is_hold {
        simulation::announce_refund(connection, cause, &charge.card.test_card, refund.id)?;
    }
    Ok(refund)
}

/// A refund by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Refund, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// Changes the metadata of a refund.
///
/// # Errors
/// [`Error::NotFound`], or metadata beyond the limits.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    metadata: &MetadataPatch,
) -> Result<Refund, Error> {
    // Ends the race of two updates: the second merges its metadata into what the first one left.
    let previous = ids::in_path(id, |id| queries::lock(connection, cause.account, id))?;
    let refund = Refund { metadata: patch_metadata(&previous.metadata, metadata)?, ..previous.clone() };
    queries::update(connection, cause, &previous, &refund)?;
    Ok(refund)
}

/// The network says that a pending refund has arrived. One that failed stays failed, should that news be late.
///
/// # Errors
/// No such refund.
pub fn settle(connection: &mut PgConnection, cause: &Cause, id: RefundId) -> Result<Refund, Error> {
    let (refund, _) = lock_with_charge(connection, cause, id)?;
    if refund.status != Status::Pending {
        return Ok(refund);
    }
    let settled = Refund { status: Status::Succeeded, ..refund.clone() };
    queries::update(connection, cause, &refund, &settled)?;
    Ok(settled)
}

/// The network says that a refund has failed: its money is here again, and the charge can be refunded again.
///
/// # Errors
/// No such refund.
pub fn fail(connection: &mut PgConnection, cause: &Cause, id: RefundId) -> Result<Refund, Error> {
    let (refund, charge) = lock_with_charge(connection, cause, id)?;
    // A refund that only let a hold go has moved nothing that could come back.
    if refund.status == Status::Failed || refund.balance_transaction_id.is_none() {
        return Ok(refund);
    }
    let movement = refund.reversal(cause);
    let failed = Refund {
        status: Status::Failed,
        failure_balance_transaction_id: Some(movement.id),
        ..refund.clone()
    };
    let charge = charge.refund_failed(refund.amount);
    queries::update_failed(connection, cause, &refund, &failed, &movement, &charge)?;
    Ok(failed)
}

/// A page of refunds, the newest first.
///
/// # Errors
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::Refund, Filter>,
) -> Result<Page<Refund>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// The objects of these refunds.
///
/// # Errors
/// What the statement reports.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(Refund::object).collect())
}

/// The refunds of these charges for lists within them, each with the id of its charge.
///
/// # Errors
/// The database's.
pub fn sublists(
    connection: &mut PgConnection,
    account: AccountId,
    charges: &[Uuid],
) -> QueryResult<Vec<(Uuid, Value)>> {
    let refunds = queries::newest_of_charges(connection, account, charges, SUBLIST_ROWS as i64 + 1)?;
    Ok(refunds.iter().map(|refund| (refund.charge_id.uuid(), refund.object())).collect())
}

/// The refunds of a charge on this page.
///
/// # Errors
/// The database's.
pub fn of_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    charge: ChargeId,
) -> QueryResult<Vec<Refund>> {
    queries::list(connection, cause.account, page, &Filter { charge: Some(charge), payment_intent: None })
}

/// Locks the charge, which is the row that guards the money, and then its refund: in this order, as a new refund does.
fn lock_with_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    id: RefundId,
) -> Result<(Refund, Charge), Error> {
    let refund = ids::in_parameter(id, "data[refund]", |id| queries::find(connection, cause.account, id))?;
    let charge = charges::locked(connection, cause, refund.charge_id, "data[refund]")?;
    let refund = ids::in_parameter(id, "data[refund]", |id| queries::lock(connection, cause.account, id))?;
    Ok((refund, charge))
}

/// The whole of a hold, which is the only part of it that can be let go. `param` is what the charge was named by.
fn amount_to_release(charge: &Charge, asked: Option<i64>, param: &'static str) -> Result<Amount, Error> {
    let not_now = |message: String| Error::NotAllowedNow { code: None, message, param: Some(param) };
    if let Some(intent) = charge.payment_intent_id {
        return Err(not_now(format!(
            "Charge {} has not been captured, so there is nothing to refund. To release its hold, cancel its payment \
             intent: POST /v1/payment_intents/{intent}/cancel.",
            charge.id
        )));
    }
    let asked = asked.map(|minor| params::part(minor, charge.currency, "amount")).transpose()?;
    if asked.is_some_and(|asked| asked != charge.amount) {
        return Err(not_now(format!(
            "Charge {} has not been captured, so only the whole of its hold, {}, can be released. To keep a part of it, \
             capture that part: the rest is then released.",
            charge.id,
            money::shown(charge.amount.minor(), charge.currency)
        )));
    }
    Ok(charge.amount)
}

/// What to refund of a captured charge. `param` is what the charge was named by.
fn amount_to_refund(charge: &Charge, asked: Option<i64>, param: &'static str) -> Result<Amount, Error> {
    let nothing = |code, why: &str| Error::NotAllowedNow {
        code,
        message: format!("Charge {} {why}, so there is nothing to refund.", charge.id),
        param: Some(param),
    };
    match charge.status {
        charges::Status::Captured | charges::Status::Authorised => {}
        charges::Status::Failed => return Err(nothing(None, "failed")),
        charges::Status::Released => {
            // Without an intent, nearly always a refund has released it.
            let code = charge.payment_intent_id.is_none().then_some("charge_already_refunded");
            return Err(nothing(code, "was never captured, and its hold is released"));
        }
    }
    let left = charge.refundable();
    if left == 0 {
        return Err(Error::not_allowed(
            "charge_already_refunded",
            format!("Charge {} has already been refunded.", charge.id),
        ));
    }
    let amount = params::part(asked.unwrap_or(left), charge.currency, "amount")?;
    if amount.minor() > left {
        return Err(Error::ParameterInvalid {
            param: "amount".to_owned(),
            code: None,
            message: format!(
                "Refund amount ({}) is greater than unrefunded amount on charge ({}).",
                money::shown(amount.minor(), charge.currency),
                money::shown(left, charge.currency)
            ),
        });
    }
    Ok(amount)
}

impl Refund {
    /// The row of the ledger: money out. A hold that was let go has none.
    fn movement(&self, cause: &Cause) -> Option<BalanceTransaction> {
        let id = self.balance_transaction_id?;
        let (of, price) = ((self.charge_id, MovedBy::Refund(self.id)), (-self.amount.minor(), self.currency));
        Some(BalanceTransaction::new(cause, id, Movement::Refund, of, price))
    }

    /// The row of a refund that failed after it had seemed to succeed: the money is here again.
    fn reversal(&self, cause: &Cause) -> BalanceTransaction {
        let (of, price) = ((self.charge_id, MovedBy::Refund(self.id)), (self.amount.minor(), self.currency));
        BalanceTransaction::new(cause, cause.new_id(), Movement::RefundFailure, of, price)
    }

    pub fn object(&self) -> Value {
        let mut object = json!({
            "id": self.id,
            "object": "refund",
            "amount": self.amount,
            "balance_transaction": self.balance_transaction_id,
            "charge": self.charge_id,
            "created": self.created_at.timestamp(),
            "currency": self.currency,
            "customer": self.customer_id,
            "destination_details": { "card": { "type": "refund" }, "type": "card" },
            "livemode": false,
            "metadata": self.metadata,
            "payment_intent": self.payment_intent_id,
            "payment_method": self.payment_method_id,
            "reason": self.reason,
            "receipt_number": null,
            "source_transfer_reversal": null,
            "status": self.status,
            "transfer_reversal": null,
        });
        if let Some(movement) = self.failure_balance_transaction_id {
            object["failure_balance_transaction"] = movement.to_string().into();
            object["failure_reason"] = "declined".into();
        }
        object
    }
}

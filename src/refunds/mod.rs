//! Refunds: money of a captured charge on its way back.

pub mod handlers;
mod queries;

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::Account;
use crate::balance::{self, BalanceTransaction};
use crate::card_network::{self, simulation};
use crate::charges::{self, Charge};
use crate::customers::Customer;
use crate::db::text_column;
use crate::disputes;
use crate::error::Error;
use crate::payment_intents::{self, PaymentIntent};
use crate::payment_methods::PaymentMethod;
use crate::schema::refunds;
use crate::types::cause::Request;
use crate::types::ids;
use crate::types::{Amount, Cause, Currency, Id, Kind, Metadata, MetadataPatch, Page, PageRequest, money};
use crate::wire::params::{self, patch_metadata};

/// A refund.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = refunds, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct Refund {
    pub account_id: Id<Account>,
    pub id: Id<Refund>,
    pub request_id: Id<Request>,
    pub charge_id: Id<Charge>,
    pub payment_intent_id: Option<Id<PaymentIntent>>,
    pub status: Status,
    pub amount: Amount,
    pub currency: Currency,
    pub customer_id: Option<Id<Customer>>,
    pub payment_method_id: Id<PaymentMethod>,
    pub balance_transaction_id: Id<BalanceTransaction>,
    /// The row that brought the money back, if it failed.
    pub failure_balance_transaction_id: Option<Id<BalanceTransaction>>,
    pub reason: Option<String>,
    pub metadata: Metadata,
    pub created_at: DateTime<Utc>,
}

impl Kind for Refund {
    const PREFIX: &'static str = "re";
    const NOUN: &'static str = "refund";
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

/// What a refund is asked to be.
pub struct CreateRefund {
    pub of: Refunded,
    /// What is left of the charge, if none is given.
    pub amount: Option<i64>,
    pub reason: Option<String>,
    pub metadata: Metadata,
}

/// What is refunded: a charge, or the one that kept a payment intent.
pub enum Refunded {
    Charge(Id<Charge>),
    Intent(Id<PaymentIntent>),
}

/// Which refunds a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub charge: Option<Id<Charge>>,
    pub payment_intent: Option<Id<PaymentIntent>>,
}

/// Moves money back.
///
/// # Errors
/// No such charge; a charge that failed, was not captured or has nothing left; more than what is left.
pub fn create(connection: &mut PgConnection, cause: &Cause, create: CreateRefund) -> Result<Refund, Error> {
    let (charge, param) = match create.of {
        Refunded::Charge(charge) => (charge, "charge"),
        Refunded::Intent(intent) => {
            (payment_intents::charge_to_refund(connection, cause, intent)?, "payment_intent")
        }
    };
    // Ends the race of two refunds: the second waits here, and then sees what the first one took.
    let charge = charges::locked(connection, cause, charge, "charge")?;
    let amount = amount_to_refund(&charge, create.amount, param)?;
    if charge.disputed && disputes::has_taken(connection, &charge)? {
        return Err(Error::not_allowed(
            "charge_disputed",
            format!("Charge {} is disputed, so its money is not here to be refunded.", charge.id),
        ));
    }
    let at_once = card_network::by_name(&charge.card.test_card).is_none_or(card_network::refunds_at_once);
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
        balance_transaction_id: cause.new_id(),
        failure_balance_transaction_id: None,
        reason: create.reason,
        metadata: create.metadata,
        created_at: cause.now,
    };
    let charge = charge.refunded(amount);
    queries::insert(connection, cause, &refund, &balance::money_out(cause, &refund), &charge)?;
    simulation::will_speak_of_refund(connection, cause, &refund, &charge)?;
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
    let refund = ids::in_path(id, |id| queries::lock(connection, cause.account, id))?;
    let refund = Refund { metadata: patch_metadata(&refund.metadata, metadata)?, ..refund };
    queries::update_metadata(connection, cause, &refund)?;
    Ok(refund)
}

/// The network says that a pending refund has arrived. One that failed stays failed, should that news be late.
///
/// # Errors
/// No such refund.
pub fn settle(connection: &mut PgConnection, cause: &Cause, id: Id<Refund>) -> Result<Refund, Error> {
    let (refund, _) = lock_with_charge(connection, cause, id)?;
    if refund.status != Status::Pending {
        return Ok(refund);
    }
    let refund = Refund { status: Status::Succeeded, ..refund };
    queries::update_status(connection, cause, &refund)?;
    Ok(refund)
}

/// The network says that a refund has failed: its money is here again, and the charge can be refunded again.
///
/// # Errors
/// No such refund.
pub fn fail(connection: &mut PgConnection, cause: &Cause, id: Id<Refund>) -> Result<Refund, Error> {
    let (refund, charge) = lock_with_charge(connection, cause, id)?;
    if refund.status == Status::Failed {
        return Ok(refund);
    }
    let movement = balance::money_again(cause, cause.new_id(), &refund);
    let refund =
        Refund { status: Status::Failed, failure_balance_transaction_id: Some(movement.id), ..refund };
    let charge = charge.refund_failed(refund.amount);
    queries::update_failed(connection, cause, &refund, &movement, &charge)?;
    Ok(refund)
}

/// A page of refunds, the newest first.
///
/// # Errors
/// The cursor names no refund, or a filter nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    cursor: Option<Id<Refund>>,
    filter: &Filter,
) -> Result<Page<Refund>, Error> {
    if let Some(id) = cursor {
        known(connection, cause, id, page.cursor_name())?;
    }
    if let Some(charge) = filter.charge {
        charges::known(connection, cause, charge, "charge")?;
    }
    if let Some(intent) = filter.payment_intent {
        payment_intents::known(connection, cause, intent, "payment_intent")?;
    }
    Ok(page.page(queries::list(connection, cause.account, page, filter)?))
}

/// The shapes of these refunds.
///
/// # Errors
/// What the statement reports.
pub fn shapes(connection: &mut PgConnection, account: Id<Account>, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(Refund::shape).collect())
}

/// That `param` names a refund.
///
/// # Errors
/// [`Error::ReferenceNotFound`].
pub fn known(connection: &mut PgConnection, cause: &Cause, id: Id<Refund>, param: &str) -> Result<(), Error> {
    ids::in_parameter(id, param, |id| queries::find(connection, cause.account, id)).map(drop)
}

/// Locks the charge, which is the row that guards the money, and then its refund: in this order, as a new refund does.
fn lock_with_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    id: Id<Refund>,
) -> Result<(Refund, Charge), Error> {
    let refund = ids::in_parameter(id, "data[refund]", |id| queries::find(connection, cause.account, id))?;
    let charge = charges::locked(connection, cause, refund.charge_id, "data[refund]")?;
    let refund = ids::in_parameter(id, "data[refund]", |id| queries::lock(connection, cause.account, id))?;
    Ok((refund, charge))
}

/// `param` is what the charge was named by.
fn amount_to_refund(charge: &Charge, asked: Option<i64>, param: &'static str) -> Result<Amount, Error> {
    let obstacle = match charge.status {
        charges::Status::Captured => None,
        charges::Status::Authorised | charges::Status::Released => Some("has not been captured"),
        charges::Status::Failed => Some("failed"),
    };
    if let Some(obstacle) = obstacle {
        return Err(Error::NotAllowedNow {
            code: None,
            message: format!("Charge {} {obstacle}, so there is nothing to refund.", charge.id),
            param: Some(param),
        });
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
    pub fn shape(&self) -> Value {
        let mut shape = json!({
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
            shape["failure_balance_transaction"] = movement.to_string().into();
            shape["failure_reason"] = "declined".into();
        }
        shape
    }
}

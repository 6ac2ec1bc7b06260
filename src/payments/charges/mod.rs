//! Charges: one attempt to move money from a card.
//!
//! | status | may become | by |
//! |---|---|---|
//! | – | captured, failed | create |
//! | – | authorised, failed | create with `capture=false` |
//! | authorised | captured | capture, within 7 days; or by its payment intent |
//! | authorised | released | its payment intent is canceled, or 7 days are over |
//! | captured, released, failed | – | |

pub mod handlers;
mod queries;
pub mod statements;

use chrono::{DateTime, Duration, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::card_network::{self, Authorisation, Decline, simulation};
use crate::error::Error;
use crate::payments::balance::{BalanceTransaction, MovedBy, Movement};
use crate::payments::customers::{self};
use crate::payments::payment_methods::{self, CardSnapshot, PaymentMethod};
use crate::payments::tokens::{self, Source};
use crate::schema::charges;
use crate::types::ids::{
    AccountId, BalanceTransactionId, ChargeId, CustomerId, PaymentIntentId, PaymentMethodId, RequestId, kinds,
};
use crate::types::text_column;
use crate::types::{Amount, Cause, Currency, EventType, Metadata, MetadataPatch, Page, money};
use crate::wire::ids;
use crate::wire::params::{self, Email, patch_metadata};
use crate::wire::shared::Shipping;
use crate::wire::{List, Update};

/// How long an authorisation can be captured.
pub const HOLD_DAYS: i64 = 7;

/// What the payer's statement says of a charge that says nothing itself.
pub const STATEMENT_DESCRIPTOR: &str = "ONCEPAY";

/// A charge. Amounts are in minor units of its currency.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = charges, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct Charge {
    pub account_id: AccountId,
    pub id: ChargeId,
    pub request_id: RequestId,
    pub status: Status,
    pub amount: Amount,
    pub amount_captured: i64,
    pub amount_refunded: i64,
    pub currency: Currency,
    pub customer_id: Option<CustomerId>,
    pub payment_intent_id: Option<PaymentIntentId>,
    pub payment_method_id: PaymentMethodId,
    pub balance_transaction_id: Option<BalanceTransactionId>,
    /// Why it failed, if it did.
    #[diesel(column_name = decline_code)]
    pub decline: Option<Decline>,
    pub disputed: bool,
    pub card: CardSnapshot,
    pub description: Option<String>,
    pub metadata: Metadata,
    pub receipt_email: Option<String>,
    pub shipping: Option<Shipping>,
    pub statement_descriptor: Option<String>,
    pub statement_descriptor_suffix: Option<String>,
    pub user_report: Option<UserReport>,
    pub created_at: DateTime<Utc>,
}

text_column! {
    /// Where the money is.
    pub enum Status {
        /// Held on the card.
        Authorised => "authorised",
        /// Moved, the captured part of it.
        Captured => "captured",
        /// Held, and then let go; nothing moved.
        Released => "released",
        /// Declined; nothing moved.
        Failed => "failed",
    }
}

text_column! {
    /// What the account thinks of a charge (`fraud_details` on the wire).
    pub enum UserReport {
        Fraudulent => "fraudulent",
        Safe => "safe",
    }
}

/// What a charge is asked to be.
pub struct CreateCharge {
    pub amount: Amount,
    pub currency: Currency,
    pub source: Option<Source>,
    pub capture: bool,
    pub details: Details,
}

/// What a charge is for, and what it says of that.
pub struct Details {
    pub customer: Option<CustomerId>,
    pub payment_intent: Option<PaymentIntentId>,
    pub description: Option<String>,
    pub metadata: Metadata,
    pub receipt_email: Option<String>,
    pub shipping: Option<Shipping>,
    pub statement_descriptor: Option<String>,
    pub statement_descriptor_suffix: Option<String>,
}

/// What a charge is to become.
pub struct UpdateCharge {
    pub customer: Option<CustomerId>,
    pub description: Update<String>,
    pub metadata: MetadataPatch,
    pub receipt_email: Update<Email>,
    pub shipping: Update<Shipping>,
    pub user_report: Option<Update<UserReport>>,
}

/// How much of an authorised charge to capture.
pub struct CaptureCharge {
    pub amount: Option<i64>,
    pub receipt_email: Option<Email>,
    pub statement_descriptor: Option<String>,
    pub statement_descriptor_suffix: Option<String>,
}

/// Which charges a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub customer: Option<CustomerId>,
    pub payment_intent: Option<PaymentIntentId>,
}

/// Charges a card. A decline is no error: it leaves a failed charge, which is committed and remembered.
///
/// Its object, which its event holds, comes with the charge: the answer is the same, and is not made a second time.
///
/// A real card network would be called between its two halves, `prepare` and `conclude`.
///
/// # Errors
/// An amount out of bounds, no card to charge, a card that is refused, metadata beyond the limits.
pub fn create(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreateCharge,
) -> Result<(Charge, Value), Error> {
    let capture = create.capture;
    let (charge, card) = prepare(connection, cause, create)?;
    let answer = card_network::authorise(card.test_card()?);
    let (charge, movement) = conclude(cause, charge, answer, capture)?;
    let object = charge.object();
    queries::insert(connection, cause, &charge, movement.as_ref(), &object)?;
    charge.announce_dispute(connection, cause)?;
    Ok((charge, object))
}

/// A charge by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Charge, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// Changes what may change of a charge; never money.
///
/// # Errors
/// [`Error::NotFound`], metadata beyond the limits, or a customer where there is one.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    update: UpdateCharge,
) -> Result<Charge, Error> {
    // Ends the race of two updates: the second merges its metadata into what the first one left.
    let previous = lock(connection, cause, id)?;
    let charge = previous.clone();
    let customer_id = match (update.customer, charge.customer_id) {
        (None, customer) => customer,
        (Some(new), Some(old)) if new == old => Some(old),
        (Some(_), Some(_)) => {
            return Err(Error::invalid(
                "customer",
                "This charge has a customer already, which cannot change.",
            ));
        }
        (Some(new), None) => Some(customers::active(connection, cause, new, "customer")?.id),
    };
    let charge = Charge {
        customer_id,
        description: update.description.applied_to(charge.description),
        metadata: patch_metadata(&charge.metadata, &update.metadata)?,
        receipt_email: update.receipt_email.map(|Email(email)| email).applied_to(charge.receipt_email),
        shipping: update.shipping.applied_to(charge.shipping),
        user_report: update.user_report.unwrap_or(Update::Keep).applied_to(charge.user_report),
        ..charge
    };
    queries::update_details(connection, cause, &previous, &charge)?;
    Ok(charge)
}

/// Captures an authorised charge, all of it or a part; the rest of the hold is released.
///
/// # Errors
/// [`Error::NotFound`]; a charge that is captured, failed or expired; more than was authorised.
pub fn capture(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    capture: CaptureCharge,
) -> Result<Charge, Error> {
    // Ends the race of two captures: the second waits here, and then finds the charge captured.
    let charge = lock(connection, cause, id)?;
    if let Some(intent) = charge.payment_intent_id {
        return Err(Error::NotAllowedNow {
            code: None,
            message: format!(
                "Charge {} belongs to a payment intent. Capture that: POST /v1/payment_intents/{intent}/capture.",
                charge.id
            ),
            param: None,
        });
    }
    charge.check_capturable(cause)?;
    let amount = capture.amount.map(|minor| params::part(minor, charge.currency, "amount")).transpose()?;
    let charge = Charge {
        receipt_email: capture.receipt_email.map(|Email(email)| email).or(charge.receipt_email),
        statement_descriptor: capture.statement_descriptor.or(charge.statement_descriptor),
        statement_descriptor_suffix: capture
            .statement_descriptor_suffix
            .or(charge.statement_descriptor_suffix),
        ..charge
    };
    let (charge, movement) = charge.captured(cause, amount, "amount")?;
    queries::update_captured(connection, cause, &charge, &movement)?;
    charge.announce_dispute(connection, cause)?;
    Ok(charge)
}

/// A page of charges, the newest first.
///
/// # Errors
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::Charge, Filter>,
) -> Result<Page<Charge>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// The objects of these charges.
///
/// # Errors
/// What the statement reports.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(Charge::object).collect())
}

/// That `param` names a charge.
///
/// Locks the row that guards the money of a charge, as `param` names it, and reads it.
///
/// # Errors
/// [`Error::ReferenceNotFound`].
pub fn locked(
    connection: &mut PgConnection,
    cause: &Cause,
    id: ChargeId,
    param: &str,
) -> Result<Charge, Error> {
    ids::in_parameter(id, param, |id| queries::lock(connection, cause.account, id))
}

/// Locks a charge of a row that was locked before, and reads it.
///
/// # Errors
/// [`Error::Internal`] if there is none.
pub fn lock_by_id(connection: &mut PgConnection, cause: &Cause, id: ChargeId) -> Result<Charge, Error> {
    queries::lock(connection, cause.account, id)?.ok_or_else(|| Error::Internal(format!("{id} is gone")))
}

/// Builds a charge, and asks the network for its money. The caller inserts it, in one statement with what it is for.
///
/// # Errors
/// The network does not know the card.
pub fn attempt(
    cause: &Cause,
    price: (Amount, Currency),
    card: &PaymentMethod,
    details: Details,
    capture: bool,
) -> Result<(Charge, Option<BalanceTransaction>), Error> {
    let charge = build(cause, price, card, details);
    conclude(cause, charge, card_network::authorise(card.test_card()?), capture)
}

/// Lets go what was held for longer than a hold lasts, one charge that belongs to no intent; `None`: there is none.
///
/// # Errors
/// What the statements report.
pub fn expire_one(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Option<ChargeId>, Error> {
    let Some(charge) = queries::lock_expired(connection, now - Duration::days(HOLD_DAYS))? else {
        return Ok(None);
    };
    let cause = Cause::of_the_service(charge.account_id, now);
    let charge = charge.released();
    queries::update_released(connection, &cause, &charge)?;
    Ok(Some(charge.id))
}

/// What comes before the call of the network: the card is found or kept, and the charge is whole but for its outcome.
fn prepare(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreateCharge,
) -> Result<(Charge, PaymentMethod), Error> {
    let card = card_to_charge(connection, cause, create.source, create.details.customer)?;
    let charge = build(cause, (create.amount, create.currency), &card, create.details);
    Ok((charge, card))
}

/// The charge of a card before the network is asked.
fn build(
    cause: &Cause,
    (amount, currency): (Amount, Currency),
    card: &PaymentMethod,
    details: Details,
) -> Charge {
    Charge {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        status: Status::Authorised,
        amount,
        amount_captured: 0,
        amount_refunded: 0,
        currency,
        customer_id: details.customer,
        payment_intent_id: details.payment_intent,
        payment_method_id: card.id,
        balance_transaction_id: None,
        decline: None,
        disputed: false,
        card: card.snapshot(),
        description: details.description,
        metadata: details.metadata,
        receipt_email: details.receipt_email,
        shipping: details.shipping,
        statement_descriptor: details.statement_descriptor,
        statement_descriptor_suffix: details.statement_descriptor_suffix,
        user_report: None,
        created_at: cause.now,
    }
}

/// What comes after the call of the network: the charge as it became and, if money moved, its row of the ledger.
fn conclude(
    cause: &Cause,
    charge: Charge,
    answer: Authorisation,
    capture: bool,
) -> Result<(Charge, Option<BalanceTransaction>), Error> {
    match answer {
        Authorisation::Approved if capture => {
            let (charge, movement) = charge.captured(cause, None, "amount")?;
            Ok((charge, Some(movement)))
        }
        Authorisation::Approved => Ok((charge, None)),
        Authorisation::Declined(decline) => {
            Ok((Charge { status: Status::Failed, decline: Some(decline), ..charge }, None))
        }
    }
}

/// The card to charge: the source, or the default of the customer.
fn card_to_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    source: Option<Source>,
    customer: Option<CustomerId>,
) -> Result<PaymentMethod, Error> {
    let customer = match customer {
        Some(customer) => Some(customers::active(connection, cause, customer, "customer")?),
        None => None,
    };
    match (source, customer) {
        (Some(Source::New(_) | Source::Token(_)), Some(customer)) => Err(Error::invalid(
            "source",
            format!(
                "Customer {} does not own this card. Leave out `customer`, or add the card to the customer first.",
                customer.id
            ),
        )),
        (Some(source), customer) => {
            tokens::card_of(connection, cause, source, customer.map(|customer| customer.id))
        }
        (None, Some(customer)) => {
            let card = customer.default_source_id.ok_or_else(|| Error::NotAllowedNow {
                code: Some("missing"),
                message: "Cannot charge a customer that has no active card.".to_owned(),
                param: Some("card"),
            })?;
            payment_methods::owned_by(connection, cause, customer.id, card, "source")
        }
        (None, None) => Err(Error::ParameterMissing("source".to_owned())),
    }
}

/// Locks the row that guards the money of a charge, and reads it.
fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<Charge, Error> {
    ids::in_path(id, |id| queries::lock(connection, cause.account, id))
}

impl Charge {
    /// That it can be captured now.
    ///
    /// # Errors
    /// It is captured, failed or let go.
    pub fn check_capturable(&self, cause: &Cause) -> Result<(), Error> {
        match self.status {
            Status::Authorised if cause.now < self.created_at + Duration::days(HOLD_DAYS) => Ok(()),
            Status::Authorised | Status::Released => Err(Error::not_allowed(
                "charge_expired_for_capture",
                format!("The hold of charge {} is gone: it lasts {HOLD_DAYS} days at most.", self.id),
            )),
            Status::Captured => Err(Error::not_allowed(
                "charge_already_captured",
                format!("Charge {} has already been captured.", self.id),
            )),
            Status::Failed => Err(Error::NotAllowedNow {
                code: None,
                message: format!("Charge {} failed, so there is nothing to capture.", self.id),
                param: None,
            }),
        }
    }

    /// This authorised charge as captured, and its row of the ledger. `None` captures all of it; `param` is what an
    /// amount came in.
    ///
    /// # Errors
    /// More than was authorised.
    pub fn captured(
        self,
        cause: &Cause,
        amount: Option<Amount>,
        param: &str,
    ) -> Result<(Charge, BalanceTransaction), Error> {
        let amount = amount.unwrap_or(self.amount);
        if amount > self.amount {
            return Err(Error::ParameterInvalid {
                param: param.to_owned(),
                code: Some("amount_too_large"),
                message: format!(
                    "Cannot capture {}: only {} was authorised.",
                    money::shown(amount.minor(), self.currency),
                    money::shown(self.amount.minor(), self.currency)
                ),
            });
        }
        let movement = self.movement(cause, amount);
        let charge = Charge {
            status: Status::Captured,
            amount_captured: amount.minor(),
            balance_transaction_id: Some(movement.id),
            ..self
        };
        Ok((charge, movement))
    }

    /// The row of the ledger of a capture: money in.
    fn movement(&self, cause: &Cause, amount: Amount) -> BalanceTransaction {
        let price = (amount.minor(), self.currency);
        let of = (self.id, MovedBy::Charge(self.id));
        BalanceTransaction::new(cause, cause.new_id(), Movement::Charge, of, price)
    }

    /// This authorised charge with its hold let go.
    pub fn released(self) -> Charge {
        Charge { status: Status::Released, ..self }
    }

    /// Lets the network say later that a captured charge is disputed, if its card is one that does.
    ///
    /// # Errors
    /// The database's.
    pub fn announce_dispute(&self, connection: &mut PgConnection, cause: &Cause) -> QueryResult<()> {
        match self.status {
            Status::Captured => {
                simulation::announce_dispute(connection, cause, &self.card.test_card, self.id)
            }
            _ => Ok(()),
        }
    }

    /// The event of its beginning.
    pub fn first_event(&self) -> EventType {
        if self.status == Status::Failed { EventType::ChargeFailed } else { EventType::ChargeSucceeded }
    }

    /// This charge with `amount` moved back.
    pub fn refunded(self, amount: Amount) -> Charge {
        Charge { amount_refunded: self.amount_refunded + amount.minor(), ..self }
    }

    /// This charge with `amount` here again.
    pub fn refund_failed(self, amount: Amount) -> Charge {
        Charge { amount_refunded: self.amount_refunded - amount.minor(), ..self }
    }

    /// What refunds may still move back, in minor units.
    pub fn refundable(&self) -> i64 {
        self.amount_captured - self.amount_refunded
    }

    pub fn object(&self) -> Value {
        let succeeded = self.status != Status::Failed;
        let captured = self.status == Status::Captured;
        // What is let go of a hold, the rest of a partial capture or all of it, the wire counts as refunded.
        let released = match self.status {
            Status::Captured | Status::Released => self.amount.minor() - self.amount_captured,
            Status::Authorised | Status::Failed => 0,
        };
        json!({
            "id": self.id,
            "object": "charge",
            "amount": self.amount,
            "amount_captured": self.amount_captured,
            "amount_refunded": self.amount_refunded + released,
            "application": null,
            "application_fee": null,
            "application_fee_amount": null,
            "balance_transaction": self.balance_transaction_id,
            "billing_details": self.card.billing_details.object(),
            "calculated_statement_descriptor": self.statement_descriptor.as_deref().unwrap_or(STATEMENT_DESCRIPTOR),
            "captured": captured,
            "created": self.created_at.timestamp(),
            "currency": self.currency,
            "customer": self.customer_id,
            "description": self.description,
            "disputed": self.disputed,
            "failure_balance_transaction": null,
            "failure_code": self.decline.map(Decline::code),
            "failure_message": self.decline.map(Decline::message),
            "fraud_details": self.user_report.map_or(json!({}), |report| json!({ "user_report": report })),
            "livemode": false,
            "metadata": self.metadata,
            "on_behalf_of": null,
            "outcome": outcome_object(self.decline),
            "paid": succeeded,
            "payment_intent": self.payment_intent_id,
            "payment_method": self.payment_method_id,
            "payment_method_details": self.card.details(self.amount.minor()),
            "receipt_email": self.receipt_email,
            "receipt_number": null,
            "receipt_url": null,
            "refunded": self.status == Status::Released || (captured && self.refundable() == 0),
            "review": null,
            "shipping": self.shipping,
            "source_transfer": null,
            "statement_descriptor": self.statement_descriptor,
            "statement_descriptor_suffix": self.statement_descriptor_suffix,
            "status": if succeeded { "succeeded" } else { "failed" },
            "transfer_data": null,
            "transfer_group": null,
        })
    }
}

/// `outcome` of a charge: what the network and the issuer said.
fn outcome_object(decline: Option<Decline>) -> Value {
    let (network_status, seller_message, outcome_type) = match decline {
        None => ("approved_by_network", "Payment complete.".to_owned(), "authorized"),
        Some(decline) => (
            "declined_by_network",
            format!("The bank returned the decline code `{}`.", decline.as_str()),
            "issuer_declined",
        ),
    };
    json!({
        "advice_code": null,
        "network_advice_code": null,
        "network_decline_code": null,
        "network_status": network_status,
        "reason": decline,
        "risk_level": "normal",
        "risk_score": 0,
        "seller_message": seller_message,
        "type": outcome_type,
    })
}

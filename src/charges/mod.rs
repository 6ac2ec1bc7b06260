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

use crate::auth::Account;
use crate::balance::{self, BalanceTransaction};
use crate::card_network::{self, Decline, Outcome, simulation};
use crate::customers::{self, Customer};
use crate::db::text_column;
use crate::error::Error;
use crate::payment_intents::{self, PaymentIntent};
use crate::payment_methods::{self, CardSnapshot, PaymentMethod};
use crate::schema::charges;
use crate::tokens::{self, Source};
use crate::types::cause::Request;
use crate::types::ids;
use crate::types::{Amount, Cause, Currency, Id, Kind, Metadata, MetadataPatch, Page, PageRequest, money};
use crate::wire::Update;
use crate::wire::params::{self, Email, patch_metadata};
use crate::wire::shared::Shipping;

/// How long an authorisation can be captured.
pub const HOLD_DAYS: i64 = 7;

/// A charge. Amounts are in minor units of its currency.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = charges, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct Charge {
    pub account_id: Id<Account>,
    pub id: Id<Charge>,
    pub request_id: Id<Request>,
    pub status: Status,
    pub amount: Amount,
    pub amount_captured: i64,
    pub amount_refunded: i64,
    pub currency: Currency,
    pub customer_id: Option<Id<Customer>>,
    pub payment_intent_id: Option<Id<PaymentIntent>>,
    pub payment_method_id: Id<PaymentMethod>,
    pub balance_transaction_id: Option<Id<BalanceTransaction>>,
    pub decline_code: Option<String>,
    pub disputed: bool,
    pub card: CardSnapshot,
    pub description: Option<String>,
    pub metadata: Metadata,
    pub receipt_email: Option<String>,
    pub shipping: Option<Shipping>,
    pub statement_descriptor: Option<String>,
    pub statement_descriptor_suffix: Option<String>,
    pub user_report: Option<String>,
    pub created_at: DateTime<Utc>,
}

impl Kind for Charge {
    const PREFIX: &'static str = "ch";
    const NOUN: &'static str = "charge";
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

/// What a charge is asked to be.
pub struct CreateCharge {
    pub amount: Amount,
    pub currency: Currency,
    pub source: Option<Source>,
    pub customer: Option<Id<Customer>>,
    pub capture: bool,
    pub description: Option<String>,
    pub metadata: Metadata,
    pub receipt_email: Option<Email>,
    pub shipping: Option<Shipping>,
    pub statement_descriptor: Option<String>,
    pub statement_descriptor_suffix: Option<String>,
}

/// What a charge is to become.
pub struct UpdateCharge {
    pub customer: Option<Id<Customer>>,
    pub description: Update<String>,
    pub metadata: MetadataPatch,
    pub receipt_email: Update<Email>,
    pub shipping: Update<Shipping>,
    pub user_report: Option<Update<String>>,
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
    pub customer: Option<Id<Customer>>,
    pub payment_intent: Option<Id<PaymentIntent>>,
}

/// Charges a card. A decline is no error: it leaves a failed charge, which is committed and remembered.
///
/// Its shape, which its event holds, comes with the charge: the answer is the same, and is not made a second time.
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
    let outcome = card_network::authorise(card.test_card()?);
    let (charge, movement) = conclude(cause, charge, outcome, capture)?;
    let shape = charge.shape();
    queries::insert(connection, cause, &charge, movement.as_ref(), &shape)?;
    simulation::will_speak_of_charge(connection, cause, &charge)?;
    Ok((charge, shape))
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
    let charge = lock(connection, cause, id)?;
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
    queries::update_details(connection, cause, &charge)?;
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
    simulation::will_speak_of_charge(connection, cause, &charge)?;
    Ok(charge)
}

/// A page of charges, the newest first.
///
/// # Errors
/// The cursor names no charge, or a filter nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    cursor: Option<Id<Charge>>,
    filter: &Filter,
) -> Result<Page<Charge>, Error> {
    if let Some(id) = cursor {
        known(connection, cause, id, page.cursor_name())?;
    }
    if let Some(customer) = filter.customer {
        customers::known(connection, cause, customer, "customer")?;
    }
    if let Some(intent) = filter.payment_intent {
        payment_intents::known(connection, cause, intent, "payment_intent")?;
    }
    Ok(page.page(queries::list(connection, cause.account, page, filter)?))
}

/// The shapes of these charges.
///
/// # Errors
/// What the statement reports.
pub fn shapes(connection: &mut PgConnection, account: Id<Account>, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(Charge::shape).collect())
}

/// That `param` names a charge.
///
/// # Errors
/// [`Error::ReferenceNotFound`].
pub fn known(connection: &mut PgConnection, cause: &Cause, id: Id<Charge>, param: &str) -> Result<(), Error> {
    ids::in_parameter(id, param, |id| queries::find(connection, cause.account, id)).map(drop)
}

/// Locks the row that guards the money of a charge, as `param` names it, and reads it.
///
/// # Errors
/// [`Error::ReferenceNotFound`].
pub fn locked(
    connection: &mut PgConnection,
    cause: &Cause,
    id: Id<Charge>,
    param: &str,
) -> Result<Charge, Error> {
    ids::in_parameter(id, param, |id| queries::lock(connection, cause.account, id))
}

/// Locks the charge of a payment intent, whose row was locked before, and reads it.
///
/// # Errors
/// [`Error::Internal`] if there is none.
pub fn lock_of_intent(connection: &mut PgConnection, intent: &PaymentIntent) -> Result<Charge, Error> {
    let found = match intent.latest_charge_id {
        Some(id) => queries::lock(connection, intent.account_id, id)?,
        None => None,
    };
    found.ok_or_else(|| Error::Internal(format!("{} holds money without a charge", intent.id)))
}

/// The attempt to keep a payment intent: built, and written by the intent in one statement with itself.
///
/// # Errors
/// The network does not know the card.
pub fn attempt(
    cause: &Cause,
    intent: &PaymentIntent,
    method: &PaymentMethod,
) -> Result<(Charge, Option<BalanceTransaction>), Error> {
    let charge = Charge {
        customer_id: intent.customer_id,
        payment_intent_id: Some(intent.id),
        description: intent.description.clone(),
        metadata: intent.metadata.clone(),
        receipt_email: intent.receipt_email.clone(),
        shipping: intent.shipping.clone(),
        statement_descriptor: intent.statement_descriptor.clone(),
        statement_descriptor_suffix: intent.statement_descriptor_suffix.clone(),
        ..draft(cause, intent.amount, intent.currency, method)
    };
    let outcome = card_network::authorise(method.test_card()?);
    conclude(cause, charge, outcome, intent.captures_at_once())
}

/// Lets go what was held for longer than a hold lasts, one charge that belongs to no intent; `None`: there is none.
///
/// # Errors
/// What the statements report.
pub fn expire_one(connection: &mut PgConnection, now: DateTime<Utc>) -> Result<Option<Id<Charge>>, Error> {
    let Some(charge) = queries::lock_expired(connection, now - Duration::days(HOLD_DAYS))? else {
        return Ok(None);
    };
    let cause = Cause::of_the_service(charge.account_id, now);
    let charge = charge.released();
    queries::update_released(connection, &cause, &charge)?;
    Ok(Some(charge.id))
}

/// What comes before the call of the network: the card is found or kept, and the charge is whole but for its
/// outcome.
fn prepare(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreateCharge,
) -> Result<(Charge, PaymentMethod), Error> {
    let card = card_to_charge(connection, cause, create.source, create.customer)?;
    let charge = Charge {
        customer_id: create.customer,
        description: create.description,
        metadata: create.metadata,
        receipt_email: create.receipt_email.map(|Email(email)| email),
        shipping: create.shipping,
        statement_descriptor: create.statement_descriptor,
        statement_descriptor_suffix: create.statement_descriptor_suffix,
        ..draft(cause, create.amount, create.currency, &card)
    };
    Ok((charge, card))
}

/// A charge of this card of which nothing else is known.
fn draft(cause: &Cause, amount: Amount, currency: Currency, card: &PaymentMethod) -> Charge {
    Charge {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        status: Status::Authorised,
        amount,
        amount_captured: 0,
        amount_refunded: 0,
        currency,
        customer_id: None,
        payment_intent_id: None,
        payment_method_id: card.id,
        balance_transaction_id: None,
        decline_code: None,
        disputed: false,
        card: card.snapshot(),
        description: None,
        metadata: Metadata::default(),
        receipt_email: None,
        shipping: None,
        statement_descriptor: None,
        statement_descriptor_suffix: None,
        user_report: None,
        created_at: cause.now,
    }
}

/// What comes after the call of the network: the charge as it became and, if money moved, its row of the ledger.
fn conclude(
    cause: &Cause,
    charge: Charge,
    outcome: Outcome,
    capture: bool,
) -> Result<(Charge, Option<BalanceTransaction>), Error> {
    match outcome {
        Outcome::Approved if capture => {
            let (charge, movement) = charge.captured(cause, None, "amount")?;
            Ok((charge, Some(movement)))
        }
        Outcome::Approved => Ok((charge, None)),
        Outcome::Declined(decline) => {
            let decline_code = Some(decline.decline_code().to_owned());
            Ok((Charge { status: Status::Failed, decline_code, ..charge }, None))
        }
    }
}

/// The card that is meant: a source that comes along, or one that the customer keeps.
fn card_to_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    source: Option<Source>,
    customer: Option<Id<Customer>>,
) -> Result<PaymentMethod, Error> {
    let Some(customer) = customer else {
        return match source {
            Some(Source::New(card)) => payment_methods::create_from_card(connection, cause, card),
            Some(Source::Token(token)) => tokens::spend(connection, cause, token, "source"),
            Some(Source::Kept(card)) => Err(Error::invalid(
                "source",
                format!("{card} is kept by a customer: name the customer too, or use a token."),
            )),
            None => Err(Error::ParameterMissing("source".to_owned())),
        };
    };
    let customer = customers::active(connection, cause, customer, "customer")?;
    let card = match source {
        Some(Source::Kept(card)) => card,
        Some(Source::New(_) | Source::Token(_)) => {
            return Err(Error::invalid(
                "source",
                format!(
                    "Customer {} does not keep this card. Leave out `customer`, or add the card to the customer first.",
                    customer.id
                ),
            ));
        }
        None => customer.default_source_id.map(Id::renamed).ok_or_else(|| Error::NotAllowedNow {
            code: Some("missing"),
            message: "Cannot charge a customer that has no active card.".to_owned(),
            param: Some("card"),
        })?,
    };
    payment_methods::kept_by(connection, cause, customer.id, card, "source")
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
        let movement = balance::money_in(cause, cause.new_id(), self.id, amount, self.currency);
        let charge = Charge {
            status: Status::Captured,
            amount_captured: amount.minor(),
            balance_transaction_id: Some(movement.id),
            ..self
        };
        Ok((charge, movement))
    }

    /// This authorised charge with its hold let go.
    pub fn released(self) -> Charge {
        Charge { status: Status::Released, ..self }
    }

    /// The event of its beginning.
    pub fn first_event(&self) -> &'static str {
        if self.status == Status::Failed { "charge.failed" } else { "charge.succeeded" }
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

    /// Why it failed, if it did.
    pub fn decline(&self) -> Option<Decline> {
        self.decline_code.as_deref().and_then(Decline::parse)
    }

    pub fn shape(&self) -> Value {
        let decline = self.decline();
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
            "billing_details": self.card.billing_details.shape(),
            "calculated_statement_descriptor": self.statement_descriptor.as_deref().unwrap_or("ONCEPAY"),
            "captured": captured,
            "created": self.created_at.timestamp(),
            "currency": self.currency,
            "customer": self.customer_id,
            "description": self.description,
            "disputed": self.disputed,
            "failure_balance_transaction": null,
            "failure_code": decline.map(Decline::code),
            "failure_message": decline.map(Decline::message),
            "fraud_details": self.user_report.as_ref().map_or(json!({}), |report| json!({ "user_report": report })),
            "livemode": false,
            "metadata": self.metadata,
            "on_behalf_of": null,
            "outcome": outcome_shape(decline),
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
fn outcome_shape(decline: Option<Decline>) -> Value {
    let (network_status, seller_message, outcome_type) = match decline {
        None => ("approved_by_network", "Payment complete.".to_owned(), "authorized"),
        Some(decline) => (
            "declined_by_network",
            format!("The bank returned the decline code `{}`.", decline.decline_code()),
            "issuer_declined",
        ),
    };
    json!({
        "advice_code": null,
        "network_advice_code": null,
        "network_decline_code": null,
        "network_status": network_status,
        "reason": decline.map(Decline::decline_code),
        "risk_level": "normal",
        "risk_score": 0,
        "seller_message": seller_message,
        "type": outcome_type,
    })
}

//! Payment intents: the promise to pay an amount. Its charges are the attempts to keep it.
//!
//! The states and what they allow are in [`status`], what a caller may say of an intent is in `details.rs`, and how
//! the money is asked for in `attempt.rs`. Each verb locks the intent before it reads it, and its charge after it,
//! always in this order.

mod attempt;
mod details;
pub mod handlers;
mod queries;
pub mod status;

use chrono::{DateTime, Duration, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::payments::charges::{self, Charge, HOLD_DAYS};
use crate::payments::customers::{self};
use crate::schema::payment_intents;
use crate::secrets::random_text;
use crate::types::ids::{
    AccountId, ChargeId, CustomerId, PaymentIntentId, PaymentMethodId, RequestId, kinds,
};
use crate::types::text_column;
use crate::types::{Amount, Cause, Currency, EventType, Metadata, MetadataPatch, Page};
use crate::wire::ids;
use crate::wire::params::{self, patch_metadata};
use crate::wire::shared::Shipping;
use crate::wire::{List, Update};
pub use attempt::Failure;
use attempt::attempt;
use details::change;
pub use details::{Details, Method};
pub use status::{Status, Verb};

const WITHOUT_METHOD: &str = "You cannot confirm this PaymentIntent because it's missing a payment method. Update the \
     PaymentIntent with a payment method, or name one when you confirm it.";

/// A payment intent. Amounts are in minor units of its currency.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = payment_intents, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct PaymentIntent {
    pub account_id: AccountId,
    pub id: PaymentIntentId,
    pub request_id: RequestId,
    pub status: Status,
    pub amount: Amount,
    pub amount_received: i64,
    pub currency: Currency,
    pub customer_id: Option<CustomerId>,
    pub payment_method_id: Option<PaymentMethodId>,
    pub latest_charge_id: Option<ChargeId>,
    pub capture_method: CaptureMethod,
    pub confirmation_method: ConfirmationMethod,
    pub client_secret: String,
    pub setup_future_usage: Option<FutureUsage>,
    pub automatic_payment_methods: Option<Value>,
    pub payment_method_options: Value,
    pub next_action: Option<Value>,
    pub last_payment_error: Option<Value>,
    pub description: Option<String>,
    pub metadata: Metadata,
    pub receipt_email: Option<String>,
    pub shipping: Option<Shipping>,
    pub statement_descriptor: Option<String>,
    pub statement_descriptor_suffix: Option<String>,
    pub cancellation_reason: Option<CancellationReason>,
    pub canceled_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

text_column! {
    /// Whether a confirmation moves the money, or holds it for a capture.
    pub enum CaptureMethod {
        Automatic => "automatic",
        /// What Stripe calls a capture that may follow later without another call. A card is captured at once here.
        AutomaticAsync => "automatic_async",
        Manual => "manual",
    }
}

text_column! {
    /// Whether only the account's server may confirm. It is shown as it was asked for, and restricts nothing here.
    pub enum ConfirmationMethod {
        Automatic => "automatic",
        Manual => "manual",
    }
}

text_column! {
    /// That the customer keeps the payment method, and whether later payments find the cardholder there.
    pub enum FutureUsage {
        OffSession => "off_session",
        OnSession => "on_session",
    }
}

text_column! {
    /// Why a payment intent was canceled.
    pub enum CancellationReason {
        Abandoned => "abandoned",
        /// Its hold was over; no caller gives this reason.
        Automatic => "automatic",
        Duplicate => "duplicate",
        Fraudulent => "fraudulent",
        RequestedByCustomer => "requested_by_customer",
    }
}

/// What a payment intent is asked to be.
pub struct CreateIntent {
    pub amount: Amount,
    pub currency: Currency,
    pub confirmation_method: ConfirmationMethod,
    pub automatic_payment_methods: Option<Value>,
    pub details: Details,
    /// To be confirmed in the same call.
    pub confirm: Option<Confirmation>,
}

/// What an update says beyond the details.
pub struct UpdateIntent {
    pub amount: Option<i64>,
    pub currency: Option<Currency>,
    pub details: Details,
}

/// What a confirmation says beyond the details.
#[derive(Debug, Default)]
pub struct Confirmation {
    /// The cardholder is not there, so nobody can be asked.
    pub off_session: bool,
    pub error_on_requires_action: bool,
    pub return_url: Option<String>,
    /// The amount that the caller believes in.
    pub amount: Option<i64>,
    /// The secret that the payer knows the intent by.
    pub client_secret: Option<String>,
}

/// How much to capture, and what to say of it.
pub struct CaptureIntent {
    pub amount: Option<i64>,
    pub metadata: MetadataPatch,
    pub statement_descriptor: Update<String>,
    pub statement_descriptor_suffix: Update<String>,
}

/// Which intents a list holds.
#[derive(Debug, Default)]
pub struct Filter {
    pub customer: Option<CustomerId>,
}

/// Makes a payment intent, and confirms it if that is asked for too.
///
/// # Errors
/// An amount out of bounds, a customer or payment method that cannot be used, metadata beyond the limits; to be
/// confirmed without a payment method.
pub fn create(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreateIntent,
) -> Result<(PaymentIntent, Option<Failure>), Error> {
    let blank = blank(cause, &create)?;
    let (intent, method) = change(connection, cause, blank, create.details)?;
    let created = (EventType::PaymentIntentCreated, intent.object());
    match create.confirm {
        None => {
            queries::insert(connection, cause, &intent, None, vec![created])?;
            Ok((intent, None))
        }
        Some(confirmation) => {
            // Nothing remains of the intent, so the refusal does not show it.
            let method = method.ok_or_else(|| Error::UnexpectedState {
                message: WITHOUT_METHOD.to_owned(),
                payment_intent: None,
            })?;
            intent.check_return_url(&confirmation)?;
            let attempt = attempt(cause, intent, method, confirmation)?;
            let events = [vec![created], attempt.events()].concat();
            queries::insert(connection, cause, &attempt.intent, attempt.money(), events)?;
            attempt.follow_up(connection, cause)
        }
    }
}

/// A payment intent by its id. `client_secret` is what the payer knows it by, if the caller gives that too.
///
/// # Errors
/// [`Error::NotFound`], or the secret of another intent.
pub fn retrieve(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    client_secret: Option<&str>,
) -> Result<PaymentIntent, Error> {
    let intent = ids::in_path(id, |id| queries::find(connection, cause.account, id))?;
    intent.check_secret(client_secret)?;
    Ok(intent)
}

/// Changes a payment intent.
///
/// # Errors
/// [`Error::NotFound`]; a change that its status does not allow; what [`create`] refuses.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    update: UpdateIntent,
) -> Result<PaymentIntent, Error> {
    // Ends the race of an update with whatever else is done to the intent: the second waits, and begins from what
    // the first one left.
    let intent = lock(connection, cause, id)?;
    let about_money = update.amount.is_some() || update.currency.is_some() || update.details.is_about_money();
    intent.check(if about_money { Verb::UpdateMoney } else { Verb::Update })?;
    let is_new_price = update.amount.is_some() || update.currency.is_some();
    let currency = update.currency.unwrap_or(intent.currency);
    let amount = params::amount(update.amount.unwrap_or(intent.amount.minor()), currency)?;
    let (mut intent, _) =
        change(connection, cause, PaymentIntent { amount, currency, ..intent }, update.details)?;
    if is_new_price && intent.status == Status::RequiresAction {
        // What the cardholder was to confirm is no longer what is asked.
        intent = PaymentIntent { status: Status::RequiresConfirmation, next_action: None, ..intent };
    }
    queries::update(connection, cause, &intent, None, vec![])?;
    Ok(intent)
}

/// Makes an attempt to move the money.
///
/// # Errors
/// [`Error::NotFound`]; a status that does not allow it; no payment method, or one that cannot be used.
pub fn confirm(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    details: Details,
    confirmation: Confirmation,
) -> Result<(PaymentIntent, Option<Failure>), Error> {
    // Ends the race of two confirmations: the second waits, and then finds the intent no longer open.
    let stored = lock(connection, cause, id)?;
    stored.check(Verb::Confirm)?;
    stored.check_believed(&confirmation)?;
    stored.check_return_url(&confirmation)?;
    if let Some(customer) = stored.customer_id {
        // It may have been deleted since the intent was made.
        customers::active(connection, cause, customer, "customer")?;
    }
    let (intent, method) = change(connection, cause, stored.clone(), details)?;
    let method = match (method, intent.payment_method_id) {
        (Some(method), _) => method,
        (None, Some(id)) => intent.usable_method(connection, cause, id)?,
        (None, None) => return Err(stored.refuse(WITHOUT_METHOD.to_owned())),
    };
    let attempt = attempt(cause, intent, method, confirmation)?;
    queries::update(connection, cause, &attempt.intent, attempt.money(), attempt.events())?;
    attempt.follow_up(connection, cause)
}

/// Captures what is held, all of it or a part; the rest is let go.
///
/// # Errors
/// [`Error::NotFound`]; nothing is held; more than is held.
pub fn capture(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    capture: CaptureIntent,
) -> Result<PaymentIntent, Error> {
    // Ends the race of a capture with another, or with a cancellation: the second finds nothing held.
    let intent = lock(connection, cause, id)?;
    intent.check(Verb::Capture)?;
    let charge = lock_charge(connection, cause, &intent)?;
    charge.check_capturable(cause)?;
    const PARAM: &str = "amount_to_capture";
    let amount = capture.amount.map(|minor| params::part(minor, intent.currency, PARAM)).transpose()?;
    let (charge, movement) = charge.captured(cause, amount, PARAM)?;
    let intent = PaymentIntent {
        status: Status::Succeeded,
        amount_received: charge.amount_captured,
        metadata: patch_metadata(&intent.metadata, &capture.metadata)?,
        statement_descriptor: capture.statement_descriptor.applied_to(intent.statement_descriptor),
        statement_descriptor_suffix: capture
            .statement_descriptor_suffix
            .applied_to(intent.statement_descriptor_suffix),
        ..intent
    };
    queries::update_captured(connection, cause, &intent, &charge, &movement)?;
    charge.announce_dispute(connection, cause)?;
    Ok(intent)
}

/// Cancels a payment intent; what is held is let go.
///
/// # Errors
/// [`Error::NotFound`], or it has succeeded or was canceled before.
pub fn cancel(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    reason: Option<CancellationReason>,
) -> Result<PaymentIntent, Error> {
    // Ends the race of a cancellation with a confirmation or a capture: the second finds the intent decided.
    let intent = lock(connection, cause, id)?;
    intent.check(Verb::Cancel)?;
    if intent.status == Status::RequiresCapture {
        let charge = lock_charge(connection, cause, &intent)?.released();
        let intent = intent.canceled(cause.now, reason);
        queries::update_released(connection, cause, &intent, &charge, &[])?;
        return Ok(intent);
    }
    let intent = intent.canceled(cause.now, reason);
    queries::update(
        connection,
        cause,
        &intent,
        None,
        vec![(EventType::PaymentIntentCanceled, intent.object())],
    )?;
    Ok(intent)
}

/// A page of payment intents, the newest first.
///
/// # Errors
/// The cursor or the filter names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::PaymentIntent, Filter>,
) -> Result<Page<PaymentIntent>, Error> {
    list.load(connection, cause, |connection, page, filter| {
        queries::list(connection, cause.account, page, filter)
    })
}

/// The objects of these payment intents.
///
/// # Errors
/// What the statement reports.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(PaymentIntent::object).collect())
}

/// That `param` names a payment intent.
///
/// The charge that kept this intent, for a refund.
///
/// # Errors
/// No such intent, or no charge has moved its money.
pub fn charge_to_refund(
    connection: &mut PgConnection,
    cause: &Cause,
    id: PaymentIntentId,
) -> Result<ChargeId, Error> {
    let intent = ids::in_parameter(id, "payment_intent", |id| queries::find(connection, cause.account, id))?;
    intent.latest_charge_id.ok_or_else(|| Error::NotAllowedNow {
        code: None,
        message: format!("This PaymentIntent ({id}) does not have a successful charge to refund."),
        param: Some("payment_intent"),
    })
}

/// Cancels one intent whose hold has lasted longer than holds do; `None`: there is none. One that is just being
/// captured is left alone.
///
/// # Errors
/// What the statements report.
pub fn expire_one(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Option<PaymentIntentId>, Error> {
    let before = now - Duration::days(HOLD_DAYS);
    let Some(intent) = queries::lock_expired(connection, before)? else { return Ok(None) };
    let cause = Cause::of_the_service(intent.account_id, now);
    let charge = lock_charge(connection, &cause, &intent)?.released();
    let intent = intent.canceled(now, Some(CancellationReason::Automatic));
    queries::update_released(connection, &cause, &intent, &charge, &[EventType::ChargeExpired])?;
    Ok(Some(intent.id))
}

fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<PaymentIntent, Error> {
    ids::in_path(id, |id| queries::lock(connection, cause.account, id))
}

/// Locks the charge of an intent, whose row was locked before.
fn lock_charge(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
) -> Result<Charge, Error> {
    let charge = intent
        .latest_charge_id
        .ok_or_else(|| Error::Internal(format!("{} holds money without a charge", intent.id)))?;
    charges::lock_by_id(connection, cause, charge)
}

/// A new intent before its details.
fn blank(cause: &Cause, create: &CreateIntent) -> Result<PaymentIntent, Error> {
    Ok(PaymentIntent {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        status: Status::RequiresPaymentMethod,
        amount: create.amount,
        amount_received: 0,
        currency: create.currency,
        customer_id: None,
        payment_method_id: None,
        latest_charge_id: None,
        capture_method: CaptureMethod::AutomaticAsync,
        confirmation_method: create.confirmation_method,
        client_secret: random_text(12),
        setup_future_usage: None,
        automatic_payment_methods: create.automatic_payment_methods.clone(),
        payment_method_options: json!({ "card": { "request_three_d_secure": "automatic" } }),
        next_action: None,
        last_payment_error: None,
        description: None,
        metadata: Metadata::default(),
        receipt_email: None,
        shipping: None,
        statement_descriptor: None,
        statement_descriptor_suffix: None,
        cancellation_reason: None,
        canceled_at: None,
        created_at: cause.now,
    })
}

impl PaymentIntent {
    /// Automatic payment methods as they are shown: the default, where the caller said nothing of them.
    fn automatic_payment_methods(&self) -> Option<Value> {
        let said = self.automatic_payment_methods.as_ref()?;
        let is_default = said.as_object().is_some_and(Map::is_empty);
        Some(if is_default { json!({ "allow_redirects": "always", "enabled": true }) } else { said.clone() })
    }

    /// Checks that a payer who may be redirected can come back. A caller who said nothing of automatic payment methods
    /// is not asked for it, since only cards are taken here.
    fn check_return_url(&self, confirmation: &Confirmation) -> Result<(), Error> {
        let said = self.automatic_payment_methods.as_ref();
        let may_redirect =
            said.is_some_and(|said| said["enabled"] == true && said["allow_redirects"] == "always");
        if may_redirect && confirmation.return_url.is_none() {
            return Err(Error::invalid(
                "return_url",
                "This PaymentIntent has automatic payment methods, and some of them may redirect your customer, so you \
                 must provide a `return_url`. If you do not want any that redirect, create the PaymentIntent with \
                 `automatic_payment_methods[allow_redirects]=never`.",
            ));
        }
        Ok(())
    }

    /// Whether a confirmation moves the money, or only holds it.
    pub fn captures_at_once(&self) -> bool {
        self.capture_method != CaptureMethod::Manual
    }

    /// What each charge of this intent says.
    pub fn charge_details(&self) -> charges::Details {
        charges::Details {
            customer: self.customer_id,
            payment_intent: Some(self.id),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            receipt_email: self.receipt_email.clone(),
            shipping: self.shipping.clone(),
            statement_descriptor: self.statement_descriptor.clone(),
            statement_descriptor_suffix: self.statement_descriptor_suffix.clone(),
        }
    }

    /// As a payer's browser knows it.
    pub fn full_client_secret(&self) -> String {
        format!("{}_secret_{}", self.id, self.client_secret)
    }

    fn check(&self, verb: Verb) -> Result<(), Error> {
        if self.status.allows(verb) {
            return Ok(());
        }
        Err(self.refuse(format!(
            "You cannot {} this PaymentIntent because it has a status of {}.",
            verb.word(),
            self.status.as_str()
        )))
    }

    fn refuse(&self, message: String) -> Error {
        Error::UnexpectedState { message, payment_intent: Some(Box::new(self.object())) }
    }

    /// That the caller and this intent mean the same.
    fn check_believed(&self, confirmation: &Confirmation) -> Result<(), Error> {
        self.check_secret(confirmation.client_secret.as_deref())?;
        if confirmation.amount.is_some_and(|amount| amount != self.amount.minor()) {
            return Err(Error::invalid(
                "amount_to_confirm",
                format!(
                    "The amount of this PaymentIntent is {}, not what you want to confirm.",
                    self.amount.minor()
                ),
            ));
        }
        Ok(())
    }

    /// Checks that a secret, if one is given, is the one of this intent.
    fn check_secret(&self, secret: Option<&str>) -> Result<(), Error> {
        match secret {
            Some(secret) if secret != self.full_client_secret() => {
                Err(Error::invalid("client_secret", "This is not the client secret of this PaymentIntent."))
            }
            _ => Ok(()),
        }
    }

    fn canceled(self, now: DateTime<Utc>, reason: Option<CancellationReason>) -> Self {
        Self {
            status: Status::Canceled,
            next_action: None,
            canceled_at: Some(now),
            cancellation_reason: reason,
            ..self
        }
    }

    pub fn object(&self) -> Value {
        let capturable = if self.status == Status::RequiresCapture { self.amount.minor() } else { 0 };
        json!({
            "id": self.id,
            "object": "payment_intent",
            "allowed_payment_method_types": ["card"],
            "amount": self.amount,
            "amount_capturable": capturable,
            "amount_details": { "tip": {} },
            "amount_received": self.amount_received,
            "application": null,
            "application_fee_amount": null,
            "automatic_payment_methods": self.automatic_payment_methods(),
            "canceled_at": self.canceled_at.map(|time| time.timestamp()),
            "cancellation_reason": self.cancellation_reason,
            "capture_method": self.capture_method,
            "client_secret": self.full_client_secret(),
            "confirmation_method": self.confirmation_method,
            "created": self.created_at.timestamp(),
            "currency": self.currency,
            "customer": self.customer_id,
            "description": self.description,
            "last_payment_error": self.last_payment_error,
            "latest_charge": self.latest_charge_id,
            "livemode": false,
            "metadata": self.metadata,
            "next_action": self.next_action,
            "on_behalf_of": null,
            "payment_method": self.payment_method_id,
            "payment_method_configuration_details": null,
            "payment_method_options": self.payment_method_options,
            "payment_method_types": ["card"],
            "processing": null,
            "receipt_email": self.receipt_email,
            "review": null,
            "setup_future_usage": self.setup_future_usage,
            "shipping": self.shipping,
            "statement_descriptor": self.statement_descriptor,
            "statement_descriptor_suffix": self.statement_descriptor_suffix,
            "status": self.status,
            "transfer_data": null,
            "transfer_group": null,
        })
    }
}

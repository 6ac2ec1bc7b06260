//! Payment intents: the promise to pay an amount. Its charges are the attempts to keep it.
//!
//! The states and what they allow are in [`status`]. Each verb locks the intent before it reads it, and its charge
//! after it, always in this order.

pub mod handlers;
mod queries;
pub mod status;

use chrono::{DateTime, Duration, Utc};
use diesel::QueryResult;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::Account;
use crate::card_network::{self, Decline, simulation};
use crate::charges::{self, Charge, HOLD_DAYS};
use crate::customers::{self, Customer};
use crate::error::{Error, ErrorBody};
use crate::payment_methods::{self, CreatePaymentMethod, Named, PaymentMethod};
use crate::schema::payment_intents;
use crate::secrets::random_text;
use crate::types::cause::Request;
use crate::types::ids;
use crate::types::{Amount, Cause, Currency, Id, Kind, Metadata, MetadataPatch, Page, PageRequest};
use crate::wire::Update;
use crate::wire::params::{self, Email, patch_metadata};
use crate::wire::shared::Shipping;
pub use status::{Call, Status};

/// A payment intent. Amounts are in minor units of its currency.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = payment_intents, check_for_backend(Pg), treat_none_as_default_value = false)]
pub struct PaymentIntent {
    pub account_id: Id<Account>,
    pub id: Id<PaymentIntent>,
    pub request_id: Id<Request>,
    pub status: Status,
    pub amount: Amount,
    pub amount_received: i64,
    pub currency: Currency,
    pub customer_id: Option<Id<Customer>>,
    pub payment_method_id: Option<Id<PaymentMethod>>,
    pub latest_charge_id: Option<Id<Charge>>,
    pub capture_method: String,
    pub confirmation_method: String,
    pub client_secret: String,
    pub setup_future_usage: Option<String>,
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
    pub cancellation_reason: Option<String>,
    pub canceled_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

impl Kind for PaymentIntent {
    const PREFIX: &'static str = "pi";
    const NOUN: &'static str = "payment_intent";
}

/// What a payment intent is asked to be.
pub struct CreateIntent {
    pub amount: i64,
    pub currency: Currency,
    pub confirmation_method: String,
    pub automatic_payment_methods: Option<Value>,
    pub details: Details,
    /// To be confirmed in the same call.
    pub confirm: Option<Confirmation>,
}

/// What can be said of an intent when it is made and later.
pub struct Details {
    pub customer: Option<Id<Customer>>,
    pub method: Update<Method>,
    pub capture_method: Option<String>,
    pub setup_future_usage: Update<String>,
    pub payment_method_options: Option<Value>,
    pub description: Update<String>,
    pub metadata: MetadataPatch,
    pub receipt_email: Update<Email>,
    pub shipping: Update<Shipping>,
    pub statement_descriptor: Update<String>,
    pub statement_descriptor_suffix: Update<String>,
}

/// How a request names the payment method.
pub enum Method {
    Named(Named),
    /// `payment_method_data`
    New(Box<CreatePaymentMethod>),
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
    pub customer: Option<Id<Customer>>,
}

/// An attempt that failed. It is no error: it is committed, and its answer, a 402, is remembered.
#[derive(Debug)]
pub struct Failure {
    pub decline: Decline,
    /// None if the network was not even asked.
    pub charge: Option<Id<Charge>>,
    pub method: Value,
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
    let created = ("payment_intent.created", intent.shape());
    match create.confirm {
        None => {
            queries::insert(connection, cause, &intent, None, vec![created])?;
            Ok((intent, None))
        }
        Some(confirmation) => {
            let method = method.ok_or_else(|| intent.refuse_without_method())?;
            let attempt = attempt(cause, intent, method, confirmation)?;
            let events = [vec![created], attempt.events()].concat();
            queries::insert(connection, cause, &attempt.intent, attempt.money(), events)?;
            attempt.follow_up(connection, cause)
        }
    }
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
    intent.check(if about_money { Call::UpdateMoney } else { Call::Update })?;
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
    stored.check(Call::Confirm)?;
    stored.check_believed(&confirmation)?;
    if let Some(customer) = stored.customer_id {
        // It may have been deleted since the intent was made.
        customers::active(connection, cause, customer, "customer")?;
    }
    let (intent, method) = change(connection, cause, stored.clone(), details)?;
    let method = match (method, intent.payment_method_id) {
        (Some(method), _) => method,
        (None, Some(id)) => intent.usable_method(connection, cause, id)?,
        (None, None) => return Err(stored.refuse_without_method()),
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
    intent.check(Call::Capture)?;
    let charge = charges::lock_of_intent(connection, &intent)?;
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
    simulation::will_speak_of_charge(connection, cause, &charge)?;
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
    reason: Option<String>,
) -> Result<PaymentIntent, Error> {
    // Ends the race of a cancellation with a confirmation or a capture: the second finds the intent decided.
    let intent = lock(connection, cause, id)?;
    intent.check(Call::Cancel)?;
    if intent.status == Status::RequiresCapture {
        let charge = charges::lock_of_intent(connection, &intent)?.released();
        let intent = intent.canceled(cause.now, reason);
        queries::update_released(connection, cause, &intent, &charge, &[])?;
        return Ok(intent);
    }
    let intent = intent.canceled(cause.now, reason);
    queries::update(connection, cause, &intent, None, vec![("payment_intent.canceled", intent.shape())])?;
    Ok(intent)
}

/// Cancels one intent whose hold has lasted longer than holds do; `None`: there is none. One that is just being
/// captured is left alone.
///
/// # Errors
/// What the statements report.
pub fn expire_one(
    connection: &mut PgConnection,
    now: DateTime<Utc>,
) -> Result<Option<Id<PaymentIntent>>, Error> {
    let before = now - Duration::days(HOLD_DAYS);
    let Some(intent) = queries::lock_expired(connection, before)? else { return Ok(None) };
    let cause = Cause::of_the_service(intent.account_id, now);
    let charge = charges::lock_of_intent(connection, &intent)?.released();
    let intent = intent.canceled(now, Some("automatic".to_owned()));
    queries::update_released(connection, &cause, &intent, &charge, &["charge.expired"])?;
    Ok(Some(intent.id))
}

/// The charge that kept this intent, for a refund.
///
/// # Errors
/// No such intent, or no charge has moved its money.
pub fn charge_to_refund(
    connection: &mut PgConnection,
    cause: &Cause,
    id: Id<PaymentIntent>,
) -> Result<Id<Charge>, Error> {
    let intent = queries::find(connection, cause.account, id)?
        .ok_or_else(|| Error::no_such::<PaymentIntent>(&id.to_string(), "payment_intent"))?;
    intent.latest_charge_id.ok_or_else(|| Error::NotAllowedNow {
        code: None,
        message: format!("This PaymentIntent ({id}) does not have a successful charge to refund."),
        param: Some("payment_intent"),
    })
}

/// A payment intent by its id.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<PaymentIntent, Error> {
    ids::in_path(id, |id| queries::find(connection, cause.account, id))
}

/// That `param` names a payment intent.
///
/// # Errors
/// [`Error::ReferenceNotFound`].
pub fn known(
    connection: &mut PgConnection,
    cause: &Cause,
    id: Id<PaymentIntent>,
    param: &str,
) -> Result<(), Error> {
    let found = queries::find(connection, cause.account, id)?;
    found.map(drop).ok_or_else(|| Error::no_such::<PaymentIntent>(&id.to_string(), param))
}

/// A page of payment intents, the newest first.
///
/// # Errors
/// The cursor names no intent, or the filter no customer.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    page: &PageRequest,
    cursor: Option<Id<PaymentIntent>>,
    filter: &Filter,
) -> Result<Page<PaymentIntent>, Error> {
    if let Some(id) = cursor {
        known(connection, cause, id, page.cursor_name())?;
    }
    if let Some(customer) = filter.customer {
        customers::known(connection, cause, customer, "customer")?;
    }
    Ok(page.page(queries::list(connection, cause.account, page, filter)?))
}

/// The shapes of these payment intents.
///
/// # Errors
/// What the statement reports.
pub fn shapes(connection: &mut PgConnection, account: Id<Account>, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(PaymentIntent::shape).collect())
}

fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<PaymentIntent, Error> {
    ids::in_path(id, |id| queries::lock(connection, cause.account, id))
}

/// A new intent before its details.
fn blank(cause: &Cause, create: &CreateIntent) -> Result<PaymentIntent, Error> {
    Ok(PaymentIntent {
        account_id: cause.account,
        id: cause.new_id(),
        request_id: cause.request_id,
        status: Status::RequiresPaymentMethod,
        amount: params::amount(create.amount, create.currency)?,
        amount_received: 0,
        currency: create.currency,
        customer_id: None,
        payment_method_id: None,
        latest_charge_id: None,
        capture_method: "automatic_async".to_owned(),
        confirmation_method: create.confirmation_method.clone(),
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

/// The intent with these details, and the payment method if they name one.
fn change(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: PaymentIntent,
    details: Details,
) -> Result<(PaymentIntent, Option<PaymentMethod>), Error> {
    let customer_id = match details.customer {
        Some(customer) => Some(customers::active(connection, cause, customer, "customer")?.id),
        None => intent.customer_id,
    };
    let is_anothers_now = customer_id != intent.customer_id;
    let mut intent = PaymentIntent {
        customer_id,
        capture_method: details.capture_method.unwrap_or(intent.capture_method),
        setup_future_usage: details.setup_future_usage.applied_to(intent.setup_future_usage),
        payment_method_options: details.payment_method_options.unwrap_or(intent.payment_method_options),
        description: details.description.applied_to(intent.description),
        metadata: patch_metadata(&intent.metadata, &details.metadata)?,
        receipt_email: details.receipt_email.map(|Email(email)| email).applied_to(intent.receipt_email),
        shipping: details.shipping.applied_to(intent.shipping),
        statement_descriptor: details.statement_descriptor.applied_to(intent.statement_descriptor),
        statement_descriptor_suffix: details
            .statement_descriptor_suffix
            .applied_to(intent.statement_descriptor_suffix),
        ..intent
    };
    let method = match details.method {
        Update::Keep => {
            if let Some(id) = intent.payment_method_id.filter(|_| is_anothers_now) {
                intent.usable_method(connection, cause, id)?;
            }
            return Ok((intent, None));
        }
        Update::Unset => None,
        Update::Set(Method::Named(named)) => {
            Some(payment_methods::named(connection, cause, named, "payment_method")?)
        }
        Update::Set(Method::New(create)) => Some(payment_methods::create(connection, cause, *create)?),
    };
    if let Some(method) = &method {
        intent.check_method(method)?;
    }
    intent.payment_method_id = method.as_ref().map(|method| method.id);
    intent.next_action = None;
    intent.status =
        if method.is_some() { Status::RequiresConfirmation } else { Status::RequiresPaymentMethod };
    Ok((intent, method))
}

/// What came of a confirmation, before it is written.
struct Attempt {
    intent: PaymentIntent,
    method: PaymentMethod,
    charge: Option<Charge>,
    movement: Option<crate::balance::BalanceTransaction>,
    decline: Option<Decline>,
}

/// Asks the cardholder or the network, whoever is next. Nothing is written here.
fn attempt(
    cause: &Cause,
    intent: PaymentIntent,
    method: PaymentMethod,
    confirmation: Confirmation,
) -> Result<Attempt, Error> {
    let intent = PaymentIntent {
        payment_method_id: Some(method.id),
        next_action: None,
        last_payment_error: None,
        ..intent
    };
    if card_network::asks_the_cardholder(method.test_card()?) {
        return Ok(ask(cause, intent, method, confirmation));
    }
    let (charge, movement) = charges::attempt(cause, &intent, &method)?;
    let decline = charge.decline();
    let status = match (decline, &movement) {
        (Some(_), _) => Status::RequiresPaymentMethod,
        (None, None) => Status::RequiresCapture,
        (None, Some(_)) => Status::Succeeded,
    };
    let intent = PaymentIntent {
        status,
        amount_received: charge.amount_captured,
        latest_charge_id: Some(charge.id),
        ..intent
    };
    let attempt = Attempt { intent, method, charge: Some(charge), movement, decline };
    Ok(attempt.with_error())
}

/// The card wants its holder to confirm: that is a next action, or a failure where nobody can be asked.
fn ask(cause: &Cause, intent: PaymentIntent, method: PaymentMethod, confirmation: Confirmation) -> Attempt {
    let nobody_there = confirmation.off_session || confirmation.error_on_requires_action;
    if nobody_there {
        let intent = PaymentIntent { status: Status::RequiresPaymentMethod, ..intent };
        let decline = Some(Decline::AuthenticationRequired);
        return Attempt { intent, method, charge: None, movement: None, decline }.with_error();
    }
    let url = format!("{}/3d_secure/{}", cause.base_url, intent.full_client_secret());
    let next_action = json!({
        "type": "redirect_to_url",
        "redirect_to_url": { "return_url": confirmation.return_url, "url": url },
    });
    let intent = PaymentIntent { status: Status::RequiresAction, next_action: Some(next_action), ..intent };
    Attempt { intent, method, charge: None, movement: None, decline: None }
}

impl Attempt {
    /// A failed attempt leaves its error on the intent, and takes the payment method off it.
    fn with_error(mut self) -> Self {
        if let Some(failure) = self.failure() {
            let error = ErrorBody {
                charge: failure.charge.map(|charge| charge.to_string()),
                payment_method: Some(&failure.method),
                ..ErrorBody::decline(failure.decline)
            };
            self.intent.last_payment_error = serde_json::to_value(error).ok();
            self.intent.payment_method_id = None;
        }
        self
    }

    fn failure(&self) -> Option<Failure> {
        Some(Failure {
            decline: self.decline?,
            charge: self.charge.as_ref().map(|charge| charge.id),
            method: self.method.shape(),
        })
    }

    /// The charge and, if money moved, its row of the ledger.
    fn money(&self) -> Option<queries::Money<'_>> {
        self.charge.as_ref().map(|charge| (charge, self.movement.as_ref()))
    }

    /// What happened, in order.
    fn events(&self) -> Vec<(&'static str, Value)> {
        let charge = self.charge.iter().map(|charge| (charge.first_event(), charge.shape()));
        let intent = match (self.decline, self.intent.status) {
            (Some(_), _) => "payment_intent.payment_failed",
            (None, Status::RequiresAction) => "payment_intent.requires_action",
            (None, Status::RequiresCapture) => "payment_intent.amount_capturable_updated",
            (None, _) => "payment_intent.succeeded",
        };
        charge.chain([(intent, self.intent.shape())]).collect()
    }

    /// Gives the card to the customer if it is to be used again, which only a card that worked can be; and lets the
    /// network have its say.
    fn follow_up(
        self,
        connection: &mut PgConnection,
        cause: &Cause,
    ) -> Result<(PaymentIntent, Option<Failure>), Error> {
        let worked = matches!(self.intent.status, Status::Succeeded | Status::RequiresCapture);
        if let Some(customer) = self.intent.customer_id
            && worked
            && self.intent.setup_future_usage.is_some()
            && self.method.customer_id.is_none()
        {
            payment_methods::give(connection, cause, self.method.clone(), customer)?;
        }
        if let Some(charge) = &self.charge {
            simulation::will_speak_of_charge(connection, cause, charge)?;
        }
        let failure = self.failure();
        Ok((self.intent, failure))
    }
}

impl Details {
    /// Whether they say who pays, how, or when the money moves.
    fn is_about_money(&self) -> bool {
        self.customer.is_some()
            || !matches!(self.method, Update::Keep)
            || self.capture_method.is_some()
            || !matches!(self.setup_future_usage, Update::Keep)
            || self.payment_method_options.is_some()
    }
}

impl PaymentIntent {
    /// Whether a confirmation moves the money, or only holds it.
    pub fn captures_at_once(&self) -> bool {
        self.capture_method != "manual"
    }

    /// As a payer's browser knows it.
    pub fn full_client_secret(&self) -> String {
        format!("{}_secret_{}", self.id, self.client_secret)
    }

    fn check(&self, call: Call) -> Result<(), Error> {
        if self.status.allows(call) {
            return Ok(());
        }
        Err(self.refuse(format!(
            "You cannot {} this PaymentIntent because it has a status of {}.",
            call.verb(),
            self.status.as_str()
        )))
    }

    fn refuse(&self, message: String) -> Error {
        Error::UnexpectedState { message, payment_intent: Box::new(self.shape()) }
    }

    fn refuse_without_method(&self) -> Error {
        self.refuse(
            "You cannot confirm this PaymentIntent because it's missing a payment method. Update the PaymentIntent \
             with a payment method, or name one when you confirm it."
                .to_owned(),
        )
    }

    /// That the caller and this intent mean the same.
    fn check_believed(&self, confirmation: &Confirmation) -> Result<(), Error> {
        if confirmation.client_secret.as_ref().is_some_and(|secret| *secret != self.full_client_secret()) {
            return Err(Error::invalid(
                "client_secret",
                "This is not the client secret of this PaymentIntent.",
            ));
        }
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

    /// The payment method that this intent has, if it may be used.
    fn usable_method(
        &self,
        connection: &mut PgConnection,
        cause: &Cause,
        id: Id<PaymentMethod>,
    ) -> Result<PaymentMethod, Error> {
        let method = payment_methods::find(connection, cause, id)?
            .ok_or_else(|| Error::Internal(format!("{id} of {} is gone", self.id)))?;
        self.check_method(&method)?;
        Ok(method)
    }

    /// That this payment method may be used for this intent.
    fn check_method(&self, method: &PaymentMethod) -> Result<(), Error> {
        method.check_not_given_up()?;
        match (method.customer_id, self.customer_id) {
            (None, _) => Ok(()),
            (Some(owner), Some(customer)) if owner == customer => Ok(()),
            (Some(_), None) => Err(Error::invalid(
                "payment_method",
                "The payment method you provided is attached to a customer, so for security purposes you must name the \
                 customer in the request.",
            )),
            (Some(_), Some(_)) => Err(Error::invalid(
                "payment_method",
                format!(
                    "The payment method {} does not belong to the customer of this PaymentIntent.",
                    method.id
                ),
            )),
        }
    }

    fn canceled(self, now: DateTime<Utc>, reason: Option<String>) -> Self {
        Self {
            status: Status::Canceled,
            next_action: None,
            canceled_at: Some(now),
            cancellation_reason: reason,
            ..self
        }
    }

    pub fn shape(&self) -> Value {
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
            "automatic_payment_methods": self.automatic_payment_methods,
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

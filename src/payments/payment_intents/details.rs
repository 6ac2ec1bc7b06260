//! What a caller may say of an intent, when it is made and later; and which payment methods may be used for it.

use diesel::pg::PgConnection;
use serde_json::Value;

use super::{CaptureMethod, FutureUsage, PaymentIntent, Status};
use crate::error::Error;
use crate::payments::customers::{self};
use crate::payments::payment_methods::{self, CreatePaymentMethod, Named, PaymentMethod};
use crate::payments::tokens;
use crate::types::ids::{CustomerId, PaymentMethodId};
use crate::types::{Cause, MetadataPatch};
use crate::wire::Update;
use crate::wire::params::{Email, patch_metadata};
use crate::wire::shared::Shipping;

/// What can be said of an intent when it is made and later.
pub struct Details {
    pub customer: Option<CustomerId>,
    pub method: Update<Method>,
    pub capture_method: Option<CaptureMethod>,
    pub setup_future_usage: Update<FutureUsage>,
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

/// The intent with these details, and the payment method if they name one.
pub fn change(
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
            Some(payment_methods::unused(connection, cause, named, "payment_method")?)
        }
        Update::Set(Method::New(create)) => Some(tokens::create_method(connection, cause, *create)?),
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

impl Details {
    /// Whether they say who pays, how, or when the money moves.
    pub(super) fn is_about_money(&self) -> bool {
        self.customer.is_some()
            || !matches!(self.method, Update::Keep)
            || self.capture_method.is_some()
            || !matches!(self.setup_future_usage, Update::Keep)
            || self.payment_method_options.is_some()
    }
}

impl PaymentIntent {
    /// The payment method that this intent has, if it may be used.
    pub(super) fn usable_method(
        &self,
        connection: &mut PgConnection,
        cause: &Cause,
        id: PaymentMethodId,
    ) -> Result<PaymentMethod, Error> {
        let method = payment_methods::find(connection, cause, id)?
            .ok_or_else(|| Error::Internal(format!("{id} of {} is gone", self.id)))?;
        payment_methods::check_usable(connection, cause, &method)?;
        self.check_method(&method)?;
        Ok(method)
    }

    /// Checks that this payment method is nobody's, or of the customer of this intent.
    fn check_method(&self, method: &PaymentMethod) -> Result<(), Error> {
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
}

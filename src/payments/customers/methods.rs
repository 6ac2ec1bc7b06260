//! The payment methods of customers: made, attached and detached.

use diesel::pg::PgConnection;

use super::{active, queries};
use crate::error::Error;
use crate::payments::payment_methods::{self, CreatePaymentMethod, NewCard, PaymentMethod};
use crate::payments::tokens;
use crate::types::Cause;
use crate::types::EventType;
use crate::types::ids::{CustomerId, PaymentMethodId};

/// Makes a payment method, of a customer if one is named.
///
/// # Errors
/// A card that is refused, a token that is used up, metadata beyond the limits; a customer who may not keep it.
pub fn create_method(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreatePaymentMethod,
) -> Result<PaymentMethod, Error> {
    if let Some(customer) = create.details.customer {
        active(connection, cause, customer, "customer")?;
    }
    tokens::create_method(connection, cause, create)
}

/// Gives a payment method to a customer, who can then be charged by it again.
///
/// # Errors
/// [`Error::NotFound`]; a method of another customer, or one that was given up; a card that always declines.
pub fn attach(
    connection: &mut PgConnection,
    cause: &Cause,
    named: &str,
    customer: CustomerId,
) -> Result<PaymentMethod, Error> {
    let customer = active(connection, cause, customer, "customer")?;
    let method = match payment_methods::test_method(named) {
        Some(card) => payment_methods::create_from_card(connection, cause, NewCard::Named(card))?,
        None => {
            let method = payment_methods::retrieve(connection, cause, named)?;
            payment_methods::check_usable(connection, cause, &method)?;
            method
        }
    };
    payment_methods::attach_to(connection, cause, method, customer.id)
}

/// Takes a payment method from its customer, for good.
///
/// # Errors
/// [`Error::NotFound`], or it is no customer's.
pub fn detach(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<PaymentMethod, Error> {
    let not_attached = || {
        Error::not_allowed(
            "payment_method_unexpected_state",
            "The payment method you provided is not attached to a customer so detachment is impossible.",
        )
    };
    let found = payment_methods::retrieve(connection, cause, id)?;
    let customer = found.customer_id.ok_or_else(not_attached)?;
    // The customer is locked before the method, as everywhere: it may have this one as a default.
    forget_default(connection, cause, customer, found.id)?;
    // Ends the race of two detachments: the second waits, and then finds it no customer's.
    let method = payment_methods::lock(connection, cause, id)?;
    if method.customer_id != Some(customer) {
        return Err(not_attached());
    }
    Ok(payment_methods::store_detached(connection, cause, method)?)
}

/// Makes sure that a payment method which is about to be detached is no default of its customer.
fn forget_default(
    connection: &mut PgConnection,
    cause: &Cause,
    customer: CustomerId,
    method: PaymentMethodId,
) -> Result<(), Error> {
    let Some(previous) = queries::lock(connection, cause.account, customer)? else { return Ok(()) };
    let mut customer = previous.clone();
    let defaults = [&mut customer.default_source_id, &mut customer.default_payment_method_id];
    let mut changed = false;
    for default in defaults {
        changed |= default.take_if(|default| *default == method).is_some();
    }
    if changed {
        // Of a customer who is deleted there is nothing more to tell.
        let event = customer.deleted_at.is_none().then_some(EventType::CustomerUpdated);
        queries::update(connection, cause, &previous, &customer, event)?;
    }
    Ok(())
}

//! An attempt to keep the promise of an intent: who is asked, what came of it, and what follows from that.

use diesel::pg::PgConnection;
use serde_json::{Value, json};

use super::{Confirmation, PaymentIntent, Status, queries};
use crate::card_network::{self, Decline};
use crate::error::{Error, ErrorBody};
use crate::payments::balance::BalanceTransaction;
use crate::payments::charges::{self, Charge};
use crate::payments::payment_methods::{self, PaymentMethod};
use crate::types::Cause;
use crate::types::EventType;
use crate::types::ids::ChargeId;

/// What came of a confirmation, before it is written.
pub struct Attempt {
    pub intent: PaymentIntent,
    method: PaymentMethod,
    charge: Option<Charge>,
    movement: Option<BalanceTransaction>,
    failure: Option<Failure>,
}

/// An attempt that failed. It is no error: it is committed, and its answer, a 402, is remembered.
#[derive(Debug)]
pub struct Failure {
    pub decline: Decline,
    /// None if the network was not even asked.
    pub charge: Option<ChargeId>,
    pub method: Value,
}

/// Asks the cardholder or the network, whoever is next. Nothing is written here.
pub fn attempt(
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
    let price = (intent.amount, intent.currency);
    let capture = intent.captures_at_once();
    let (charge, movement) = charges::attempt(cause, price, &method, intent.charge_details(), capture)?;
    let decline = charge.decline;
    let intent = PaymentIntent {
        status: if movement.is_some() { Status::Succeeded } else { Status::RequiresCapture },
        amount_received: charge.amount_captured,
        latest_charge_id: Some(charge.id),
        ..intent
    };
    let attempt = Attempt { intent, method, charge: Some(charge), movement, failure: None };
    Ok(match decline {
        None => attempt,
        Some(decline) => attempt.failed(decline),
    })
}

/// The card wants its holder to confirm: that is a next action, or a failure where nobody can be asked.
fn ask(cause: &Cause, intent: PaymentIntent, method: PaymentMethod, confirmation: Confirmation) -> Attempt {
    let nobody_there = confirmation.off_session || confirmation.error_on_requires_action;
    if nobody_there {
        let attempt = Attempt { intent, method, charge: None, movement: None, failure: None };
        return attempt.failed(Decline::AuthenticationRequired);
    }
    let url = format!("{}/3d_secure/{}", cause.base_url, intent.full_client_secret());
    let next_action = json!({
        "type": "redirect_to_url",
        "redirect_to_url": { "return_url": confirmation.return_url, "url": url },
    });
    let intent = PaymentIntent { status: Status::RequiresAction, next_action: Some(next_action), ..intent };
    Attempt { intent, method, charge: None, movement: None, failure: None }
}

impl Attempt {
    /// The charge and, if money moved, its row of the ledger.
    pub fn money(&self) -> Option<queries::Money<'_>> {
        self.charge.as_ref().map(|charge| (charge, self.movement.as_ref()))
    }

    /// What happened, in order.
    pub fn events(&self) -> Vec<(EventType, Value)> {
        let charge = self.charge.iter().map(|charge| (charge.first_event(), charge.object()));
        let intent = match (&self.failure, self.intent.status) {
            (Some(_), _) => EventType::PaymentIntentPaymentFailed,
            (None, Status::RequiresAction) => EventType::PaymentIntentRequiresAction,
            (None, Status::RequiresCapture) => EventType::PaymentIntentAmountCapturableUpdated,
            (None, _) => EventType::PaymentIntentSucceeded,
        };
        charge.chain([(intent, self.intent.object())]).collect()
    }

    /// Gives the card to the customer if it is to be used again, which only a card that worked can be; and lets the
    /// network have its say.
    pub fn follow_up(
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
            payment_methods::attach_to(connection, cause, self.method.clone(), customer)?;
        }
        if let Some(charge) = &self.charge {
            charge.announce_dispute(connection, cause)?;
        }
        Ok((self.intent, self.failure))
    }

    /// This attempt as one that failed: it leaves its error on the intent, and takes the payment method off it.
    fn failed(mut self, decline: Decline) -> Self {
        let failure = Failure {
            decline,
            charge: self.charge.as_ref().map(|charge| charge.id),
            method: self.method.object(),
        };
        let error = ErrorBody {
            charge: failure.charge.map(|charge| charge.to_string()),
            payment_method: Some(&failure.method),
            ..decline.error_body()
        };
        self.intent = PaymentIntent {
            status: Status::RequiresPaymentMethod,
            payment_method_id: None,
            last_payment_error: serde_json::to_value(error).ok(),
            ..self.intent
        };
        self.failure = Some(failure);
        self
    }
}

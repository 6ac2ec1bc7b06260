//! The simulated card network: pure functions from a test card to its outcome, without I/O or state.
//!
//! A real network would be an HTTP call, which no transaction can roll back. So a charge has one function before the
//! call and one after it, and only [`authorise`] would move out of the transaction.
//!
//! The cards are Stripe's test cards (docs.stripe.com/testing). Every other number is refused, so no real card is ever
//! charged. No full number is stored, logged or sent back.

mod notification;
pub mod simulation;

use chrono::{DateTime, Datelike, Utc};

use crate::error::{Error, ErrorBody, ErrorType, Retry, doc_url};
use crate::types::text_column;
pub use notification::{
    DisputeNotice, DisputeReason, Envelope, Notification, RefundNotice, Verdict, VerdictNotice,
};

/// A test card. Objects store its `name` in place of its number.
#[derive(Debug, PartialEq, Eq)]
pub struct TestCard {
    /// The name, as in `tok_NAME` and `pm_card_NAME`.
    pub name: &'static str,
    number: &'static str,
    pub brand: &'static str,
    pub funding: &'static str,
    pub country: &'static str,
    pub behaviour: Behaviour,
}

/// What happens to the charges of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Succeeds,
    /// Every charge is declined, and the card cannot be saved.
    Declines(Decline),
    /// Every charge is declined, but the card can be saved.
    SavesThenDeclines(Decline),
    /// The cardholder must confirm. A charge without a payment intent cannot ask for that, so it is declined.
    Authenticates,
    /// The cardholder must confirm, and the charge is then declined.
    AuthenticatesThenDeclines(Decline),
    /// The charge succeeds, and the cardholder disputes it. An inquiry moves no money yet.
    Disputes {
        reason: DisputeReason,
        inquiry: bool,
    },
    /// The charge succeeds, and its refund stays pending for a while.
    RefundsLate,
    /// The charge succeeds, and its refund first succeeds and later fails.
    RefundFails,
}

text_column! {
    /// Why the issuer declined, by its decline code in Stripe's words (docs.stripe.com/declines/codes).
    pub enum Decline {
        Generic => "generic_decline",
        InsufficientFunds => "insufficient_funds",
        LostCard => "lost_card",
        StolenCard => "stolen_card",
        VelocityExceeded => "card_velocity_exceeded",
        ExpiredCard => "expired_card",
        IncorrectCvc => "incorrect_cvc",
        ProcessingError => "processing_error",
        AuthenticationRequired => "authentication_required",
    }
}

/// Why a card is not accepted; nothing of it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The number is not a card number.
    Number,
    ExpiryMonth,
    ExpiryYear,
    Cvc,
    /// The number is not a test card's, so it may be that of a real card.
    LiveCard,
    /// The issuer does not let the customer save the card.
    Declined(Decline),
}

/// The network's answer to a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authorisation {
    Approved,
    Declined(Decline),
}

/// A card as a caller typed it; it has no `Debug`, because its number must not reach a log.
pub struct TypedCard {
    pub number: String,
    pub expiry_month: i64,
    pub expiry_year: i64,
    pub cvc: Option<String>,
}

/// Asks the issuer to authorise a charge of `card`.
pub fn authorise(card: &TestCard) -> Authorisation {
    match card.behaviour {
        Behaviour::Succeeds
        | Behaviour::Disputes { .. }
        | Behaviour::RefundsLate
        | Behaviour::RefundFails => Authorisation::Approved,
        Behaviour::Declines(decline) | Behaviour::SavesThenDeclines(decline) => {
            Authorisation::Declined(decline)
        }
        Behaviour::Authenticates | Behaviour::AuthenticatesThenDeclines(_) => {
            Authorisation::Declined(Decline::AuthenticationRequired)
        }
    }
}

/// Whether the cardholder must confirm before the issuer is asked (3-D Secure).
pub fn asks_the_cardholder(card: &TestCard) -> bool {
    matches!(card.behaviour, Behaviour::Authenticates | Behaviour::AuthenticatesThenDeclines(_))
}

/// Whether a refund to this card settles at once; if not, the network reports its outcome later.
pub fn refunds_at_once(card: &TestCard) -> bool {
    card.behaviour != Behaviour::RefundsLate
}

/// Checks that the issuer lets a customer save this card.
///
/// # Errors
/// [`Refusal::Declined`] with the decline that a first charge would get.
pub fn save(card: &TestCard) -> Result<(), Refusal> {
    match card.behaviour {
        Behaviour::Declines(decline) => Err(Refusal::Declined(decline)),
        _ => Ok(()),
    }
}

/// Finds the test card that a caller typed.
///
/// # Errors
/// The number, month, year or security code is not valid, or the number is not a test card's.
pub fn accept(typed: &TypedCard, now: DateTime<Utc>) -> Result<&'static TestCard, Refusal> {
    let number: String = typed.number.chars().filter(|character| !matches!(character, ' ' | '-')).collect();
    let plausible = (12..=19).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    if !plausible || !luhn::valid(&number) {
        return Err(Refusal::Number);
    }
    check_expiry(typed.expiry_month, full_year(typed.expiry_year), now)?;
    if let Some(cvc) = &typed.cvc
        && (!(3..=4).contains(&cvc.len()) || !cvc.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Err(Refusal::Cvc);
    }
    CARDS.iter().find(|card| card.number == number).ok_or(Refusal::LiveCard)
}

/// Checks that a card has not expired; it is valid to the end of its month.
///
/// # Errors
/// The month does not exist, or the date is in the past or more than 50 years away.
pub fn check_expiry(month: i64, year: i64, now: DateTime<Utc>) -> Result<(), Refusal> {
    if !(1..=12).contains(&month) {
        return Err(Refusal::ExpiryMonth);
    }
    let (this_year, this_month) = (i64::from(now.year()), i64::from(now.month()));
    if (year, month) < (this_year, this_month) || year > this_year + 50 {
        return Err(Refusal::ExpiryYear);
    }
    Ok(())
}

/// Completes a year of two digits: `27` is 2027.
pub fn full_year(year: i64) -> i64 {
    if (0..100).contains(&year) { 2000 + year } else { year }
}

/// Finds the card of `tok_NAME` and `pm_card_NAME`; Stripe lists cards that decline with and without `visa_`.
pub fn by_name(name: &str) -> Option<&'static TestCard> {
    CARDS.iter().find(|card| card.name == name || card.name.strip_prefix("visa_") == Some(name))
}

impl TestCard {
    /// The last four digits, the only ones that may be shown.
    pub fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }
}

impl Decline {
    /// The error code: a decline has its own where the cardholder or a retry can mend it.
    pub fn code(self) -> &'static str {
        match self {
            Decline::ExpiredCard
            | Decline::IncorrectCvc
            | Decline::ProcessingError
            | Decline::AuthenticationRequired => self.as_str(),
            _ => "card_declined",
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Decline::InsufficientFunds => "Your card has insufficient funds.",
            Decline::ExpiredCard => "Your card has expired.",
            Decline::IncorrectCvc => "Your card's security code is incorrect.",
            Decline::ProcessingError => {
                "An error occurred while processing your card. Try again in a little bit."
            }
            Decline::VelocityExceeded => {
                "Your card was declined for making repeated attempts too frequently or exceeding its amount limit."
            }
            Decline::AuthenticationRequired => {
                "Your card was declined. This transaction requires authentication."
            }
            Decline::Generic | Decline::LostCard | Decline::StolenCard => "Your card was declined.",
        }
    }
}

impl Decline {
    /// The error of a declined payment.
    ///
    /// The decline is committed and remembered, so another attempt needs another key.
    pub fn error_body(self) -> ErrorBody<'static> {
        ErrorBody {
            error_type: ErrorType::CardError,
            code: Some(self.code()),
            decline_code: Some(self.as_str()),
            message: self.message(),
            param: None,
            doc_url: doc_url(self.code()),
            charge: None,
            payment_intent: None,
            payment_method: None,
            retry: Retry::NewKey,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::CardRefused {
            code: refusal.code(),
            decline_code: refusal.decline_code(),
            message: refusal.message(),
            param: refusal.param(),
        }
    }
}

impl Refusal {
    pub fn code(self) -> &'static str {
        match self {
            Refusal::Number => "incorrect_number",
            Refusal::ExpiryMonth => "invalid_expiry_month",
            Refusal::ExpiryYear => "invalid_expiry_year",
            Refusal::Cvc => "invalid_cvc",
            Refusal::LiveCard => "card_declined",
            Refusal::Declined(decline) => decline.code(),
        }
    }

    pub fn decline_code(self) -> Option<&'static str> {
        match self {
            Refusal::LiveCard => Some("test_mode_live_card"),
            Refusal::Declined(decline) => Some(decline.as_str()),
            _ => None,
        }
    }

    /// The parameter of the part of the card that is wrong.
    pub fn param(self) -> Option<&'static str> {
        match self {
            Refusal::Number | Refusal::LiveCard => Some("number"),
            Refusal::ExpiryMonth => Some("exp_month"),
            Refusal::ExpiryYear => Some("exp_year"),
            Refusal::Cvc => Some("cvc"),
            Refusal::Declined(_) => None,
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Refusal::Number => "Your card number is incorrect.",
            Refusal::ExpiryMonth => "Your card's expiration month is invalid.",
            Refusal::ExpiryYear => "Your card's expiration year is invalid.",
            Refusal::Cvc => "Your card's security code is invalid.",
            Refusal::LiveCard => {
                "Your card was declined. This service accepts test cards only, and this number is not one of them."
            }
            Refusal::Declined(decline) => decline.message(),
        }
    }
}

const fn card(
    number: &'static str,
    name: &'static str,
    brand: &'static str,
    funding: &'static str,
    country: &'static str,
    behaviour: Behaviour,
) -> TestCard {
    TestCard { name, number, brand, funding, country, behaviour }
}

const fn visa(number: &'static str, name: &'static str, behaviour: Behaviour) -> TestCard {
    card(number, name, "visa", "credit", "US", behaviour)
}

/// All test cards.
#[rustfmt::skip]
pub static CARDS: &[TestCard] = &[
    visa("4242424242424242", "visa", Behaviour::Succeeds),
    card("4000056655665556", "visa_debit", "visa", "debit", "US", Behaviour::Succeeds),
    card("5555555555554444", "mastercard", "mastercard", "credit", "US", Behaviour::Succeeds),
    card("378282246310005", "amex", "amex", "credit", "US", Behaviour::Succeeds),
    card("6011111111111117", "discover", "discover", "credit", "US", Behaviour::Succeeds),
    card("3056930009020004", "diners", "diners", "credit", "US", Behaviour::Succeeds),
    card("3566002020360505", "jcb", "jcb", "credit", "JP", Behaviour::Succeeds),
    card("6200000000000005", "unionpay", "unionpay", "credit", "CN", Behaviour::Succeeds),
    visa("4000000000000002", "visa_chargeDeclined", Behaviour::Declines(Decline::Generic)),
    visa("4000000000009995", "visa_chargeDeclinedInsufficientFunds", Behaviour::Declines(Decline::InsufficientFunds)),
    visa("4000000000009987", "visa_chargeDeclinedLostCard", Behaviour::Declines(Decline::LostCard)),
    visa("4000000000009979", "visa_chargeDeclinedStolenCard", Behaviour::Declines(Decline::StolenCard)),
    visa("4000000000006975", "visa_chargeDeclinedVelocityLimitExceeded", Behaviour::Declines(Decline::VelocityExceeded)),
    visa("4000000000000069", "chargeDeclinedExpiredCard", Behaviour::Declines(Decline::ExpiredCard)),
    visa("4000000000000127", "chargeDeclinedIncorrectCvc", Behaviour::Declines(Decline::IncorrectCvc)),
    visa("4000000000000119", "chargeDeclinedProcessingError", Behaviour::Declines(Decline::ProcessingError)),
    visa("4000000000000341", "chargeCustomerFail", Behaviour::SavesThenDeclines(Decline::Generic)),
    visa("4000002500003155", "authenticationRequired", Behaviour::Authenticates),
    visa("4000002760003184", "authenticationRequiredAlways", Behaviour::Authenticates),
    visa("4000000000003220", "threeDSecure2Required", Behaviour::Authenticates),
    visa("4000008400001629", "threeDSecureRequiredChargeDeclined", Behaviour::AuthenticatesThenDeclines(Decline::Generic)),
    visa("4000000000000259", "createDispute", Behaviour::Disputes { reason: DisputeReason::Fraudulent, inquiry: false }),
    visa("4000000000001976", "createDisputeInquiry", Behaviour::Disputes { reason: DisputeReason::Fraudulent, inquiry: true }),
    visa("4000000000002685", "createDisputeProductNotReceived", Behaviour::Disputes { reason: DisputeReason::ProductNotReceived, inquiry: false }),
    visa("4000000000007726", "pendingRefund", Behaviour::RefundsLate),
    visa("4000000000005126", "refundFail", Behaviour::RefundFails),
];

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap()
    }

    fn typed(number: &str) -> TypedCard {
        TypedCard {
            number: number.to_owned(),
            expiry_month: 12,
            expiry_year: 2034,
            cvc: Some("123".to_owned()),
        }
    }

    #[test]
    fn every_test_card_is_taken_by_its_number_and_by_its_name() {
        for card in CARDS {
            assert_eq!(accept(&typed(card.number), now()), Ok(card));
            assert_eq!(by_name(card.name), Some(card));
        }
        let mut names: Vec<&str> = CARDS.iter().map(|card| card.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CARDS.len());
    }

    #[test]
    fn a_number_may_be_typed_in_groups() {
        assert_eq!(accept(&typed("4242 4242 4242 4242"), now()).unwrap().name, "visa");
        assert_eq!(accept(&typed("4242-4242-4242-4242"), now()).unwrap().last4(), "4242");
    }

    #[test]
    fn a_card_that_is_no_test_card_is_refused() {
        assert_eq!(accept(&typed("4242424242424241"), now()), Err(Refusal::Number));
        assert_eq!(accept(&typed("4111111111111111"), now()), Err(Refusal::LiveCard));
        for number in ["", "abc", "4242", "42424242424242424242424242", "４２４２４２４２４２４２４２４２"]
        {
            assert_eq!(accept(&typed(number), now()), Err(Refusal::Number), "{number}");
        }
    }

    #[test]
    fn a_card_expires_after_its_month() {
        let expiring = |expiry_month, expiry_year| {
            accept(&TypedCard { expiry_month, expiry_year, ..typed("4242424242424242") }, now())
                .map(|card| card.name)
        };
        assert_eq!(expiring(11, 2026), Ok("visa"));
        assert_eq!(expiring(11, 26), Ok("visa"));
        assert_eq!(expiring(10, 2026), Err(Refusal::ExpiryYear));
        assert_eq!(expiring(13, 2030), Err(Refusal::ExpiryMonth));
        assert_eq!(expiring(0, 2030), Err(Refusal::ExpiryMonth));
        assert_eq!(expiring(1, i64::MAX), Err(Refusal::ExpiryYear));
        assert_eq!(expiring(1, i64::MIN), Err(Refusal::ExpiryYear));
    }

    #[test]
    fn a_security_code_has_three_or_four_digits() {
        for (cvc, refused) in [("123", false), ("1234", false), ("12", true), ("12345", true), ("12a", true)]
        {
            let card = TypedCard { cvc: Some(cvc.to_owned()), ..typed("4242424242424242") };
            assert_eq!(accept(&card, now()).is_err(), refused, "{cvc}");
        }
    }

    #[test]
    fn a_card_that_always_declines_cannot_be_saved_but_for_one() {
        assert_eq!(save(by_name("visa_chargeDeclined").unwrap()), Err(Refusal::Declined(Decline::Generic)));
        assert_eq!(by_name("chargeDeclined"), by_name("visa_chargeDeclined"));
        assert_eq!(save(by_name("chargeCustomerFail").unwrap()), Ok(()));
        assert_eq!(
            authorise(by_name("chargeCustomerFail").unwrap()),
            Authorisation::Declined(Decline::Generic)
        );
    }

    proptest! {
        #[test]
        fn nothing_typed_panics(number in ".{0,24}", expiry_month in any::<i64>(), expiry_year in any::<i64>(), cvc in prop::option::of(".{0,6}")) {
            let _ = accept(&TypedCard { number, expiry_month, expiry_year, cvc }, now());
        }
    }
}

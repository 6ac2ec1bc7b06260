//! The routes of payment intents, and their parameters.

use actix_web::web::{self, Path};
use diesel::pg::PgConnection;
use serde_json::{Value, json};

use super::{
    CancellationReason, CaptureIntent, CaptureMethod, Confirmation, ConfirmationMethod, CreateIntent,
    Details, Failure, Filter, FutureUsage, Method, PaymentIntent, UpdateIntent,
};
use crate::answers;
use crate::error::{Error, ErrorBody, quoted};
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::charges::handlers::descriptor;
use crate::payments::payment_intents;
use crate::types::ids::kinds;
use crate::types::{Cause, MetadataPatch};
use crate::wire::{Expand, FromParameter, List, Parameter, Parameters, Params, Update};

const PATH: &str = "/v1/payment_intents";

/// The reasons that a caller can give.
const CANCELLATION_REASONS: [CancellationReason; 4] = [
    CancellationReason::Abandoned,
    CancellationReason::Duplicate,
    CancellationReason::Fraudulent,
    CancellationReason::RequestedByCustomer,
];

/// What changes nothing about a card payment here: data for tax authorities and card networks, Stripe's own checks for
/// fraud, and how Stripe's libraries in a browser behave.
const WITHOUT_EFFECT: [&str; 7] = [
    "amount_details",
    "level3",
    "mandate_data",
    "payment_details",
    "payment_method_configuration",
    "radar_options",
    "use_stripe_sdk",
];

/// The same within `payment_method_options[card]`.
const CARD_OPTIONS_WITHOUT_EFFECT: [&str; 12] = [
    "mandate_options",
    "moto",
    "network",
    "request_decremental_authorization",
    "request_extended_authorization",
    "request_incremental_authorization",
    "request_multicapture",
    "request_overcapture",
    "request_partial_authorization",
    "require_cvc_recollection",
    "statement_descriptor_suffix_kana",
    "statement_descriptor_suffix_kanji",
];

/// What would change when the money moves, what is kept of the card, or whether its holder is asked.
const CARD_OPTIONS_UNSUPPORTED: [&str; 4] =
    ["capture_method", "cvc_token", "setup_future_usage", "three_d_secure"];

/// Other methods of payment, whose options say nothing about a card.
const OTHER_METHODS: [&str; 50] = [
    "acss_debit",
    "affirm",
    "afterpay_clearpay",
    "alipay",
    "alma",
    "amazon_pay",
    "au_becs_debit",
    "bacs_debit",
    "bancontact",
    "billie",
    "blik",
    "boleto",
    "card_present",
    "cashapp",
    "crypto",
    "customer_balance",
    "eps",
    "fpx",
    "giropay",
    "grabpay",
    "ideal",
    "interac_present",
    "kakao_pay",
    "klarna",
    "konbini",
    "kr_card",
    "link",
    "mb_way",
    "mobilepay",
    "multibanco",
    "naver_pay",
    "nz_bank_account",
    "oxxo",
    "p24",
    "pay_by_bank",
    "payco",
    "paynow",
    "paypal",
    "pix",
    "promptpay",
    "revolut_pay",
    "samsung_pay",
    "satispay",
    "sepa_debit",
    "sofort",
    "swish",
    "twint",
    "us_bank_account",
    "wechat_pay",
    "zip",
];

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/payment_intents/{intent}", || web::to(retrieve)),
        Route::post("/v1/payment_intents/{intent}", Policy::KEYED, || web::to(update)),
        Route::post("/v1/payment_intents/{intent}/confirm", Policy::KEYED, || web::to(confirm)),
        Route::post("/v1/payment_intents/{intent}/capture", Policy::KEYED, || web::to(capture)),
        Route::post("/v1/payment_intents/{intent}/cancel", Policy::KEYED, || web::to(cancel)),
    ]
}

impl Parameters for CreateIntent {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (amount, currency) = params.price()?;
        let automatic =
            params.take::<Automatic>("automatic_payment_methods")?.map(|Automatic(object)| object);
        let named_types = params.has("payment_method_types") || params.has("allowed_payment_method_types");
        if named_types && automatic.is_some() {
            return Err(Error::invalid(
                "payment_method_types",
                "You cannot use both `automatic_payment_methods` and `payment_method_types`.",
            ));
        }
        let confirmation_method = params.one_of("confirmation_method", ConfirmationMethod::ALL)?;
        let is_confirmed = params.take("confirm")?.unwrap_or(false);
        for name in ["off_session", "error_on_requires_action", "return_url"] {
            if !is_confirmed && params.has(name) {
                return Err(Error::invalid(name, format!("`{name}` can only be used with `confirm=true`.")));
            }
        }
        let confirm = if is_confirmed { Some(confirmation(params)?) } else { None };
        Ok(Self {
            amount,
            currency,
            confirmation_method: confirmation_method.unwrap_or(ConfirmationMethod::Automatic),
            // Empty: the caller says nothing of methods, and Stripe then enables the automatic ones.
            automatic_payment_methods: automatic.or_else(|| (!named_types).then(|| json!({}))),
            details: Details::read(params)?,
            confirm,
        })
    }
}

struct RetrieveIntent {
    client_secret: Option<String>,
}

impl Parameters for RetrieveIntent {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { client_secret: params.take("client_secret")? })
    }
}

impl Parameters for UpdateIntent {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            amount: params.take("amount")?,
            currency: params.take("currency")?,
            details: Details::read(params)?,
        })
    }
}

struct ConfirmIntent {
    details: Details,
    confirmation: Confirmation,
}

impl Parameters for ConfirmIntent {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let amount = params.take("amount_to_confirm")?;
        let client_secret = params.take("client_secret")?;
        let confirmation = Confirmation { amount, client_secret, ..confirmation(params)? };
        Ok(Self { details: Details::of_payment(params)?, confirmation })
    }
}

impl Parameters for CaptureIntent {
    fn read(params: &mut Params) -> Result<Self, Error> {
        if params.take("final_capture")? == Some(false) {
            return Err(Error::invalid(
                "final_capture",
                "Here an amount is captured once: leave this out or true.",
            ));
        }
        params.take_without_effect(&["amount_details", "payment_details"]);
        Ok(Self {
            amount: params.take("amount_to_capture")?,
            metadata: params.metadata()?,
            statement_descriptor: descriptor_update(params, "statement_descriptor")?,
            statement_descriptor_suffix: descriptor_update(params, "statement_descriptor_suffix")?,
        })
    }
}

struct CancelIntent {
    reason: Option<CancellationReason>,
}

impl Parameters for CancelIntent {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { reason: params.one_of("cancellation_reason", &CANCELLATION_REASONS)? })
    }
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { customer: params.reference("customer")? })
    }
}

impl Details {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            customer: params.take("customer")?,
            description: params.update("description")?,
            metadata: params.metadata()?,
            statement_descriptor: descriptor_update(params, "statement_descriptor")?,
            statement_descriptor_suffix: descriptor_update(params, "statement_descriptor_suffix")?,
            ..Self::of_payment(params)?
        })
    }

    /// What can still be said when an intent is confirmed: how it is paid, and where goods and receipt go.
    fn of_payment(params: &mut Params) -> Result<Self, Error> {
        params.take_without_effect(&WITHOUT_EFFECT);
        let excluded: Option<Vec<String>> = params.take("excluded_payment_method_types")?;
        if excluded.iter().flatten().any(|kind| kind == "card") {
            return Err(Error::invalid(
                "excluded_payment_method_types",
                "Cards cannot be excluded: they are the only payment methods here.",
            ));
        }
        for name in ["payment_method_types", "allowed_payment_method_types"] {
            let types: Option<Vec<String>> = params.take(name)?;
            if let Some(other) = types.iter().flatten().find(|kind| *kind != "card") {
                return Err(Error::invalid(
                    name,
                    format!(
                        "The payment method type \"{}\" is not supported here, only card is.",
                        quoted(other)
                    ),
                ));
            }
        }
        let named = params.update("payment_method")?.map(Method::Named);
        let data = params.take("payment_method_data")?.map(|create| Method::New(Box::new(create)));
        let method = match (named, data) {
            (named, None) => named,
            (Update::Keep, Some(data)) => Update::Set(data),
            (_, Some(_)) => {
                return Err(Error::invalid(
                    "payment_method_data",
                    "You cannot use both `payment_method` and `payment_method_data`.",
                ));
            }
        };
        let options = params.take::<MethodOptions>("payment_method_options")?;
        Ok(Self {
            customer: None,
            method,
            capture_method: params.one_of("capture_method", CaptureMethod::ALL)?,
            setup_future_usage: params.update_one_of("setup_future_usage", FutureUsage::ALL)?,
            payment_method_options: options.map(|MethodOptions(object)| object),
            description: Update::Keep,
            metadata: MetadataPatch::Keep,
            receipt_email: params.update("receipt_email")?,
            shipping: params.update("shipping")?,
            statement_descriptor: Update::Keep,
            statement_descriptor_suffix: Update::Keep,
        })
    }
}

/// How to confirm, as `confirm` and a `create` that confirms have it.
fn confirmation(params: &mut Params) -> Result<Confirmation, Error> {
    Ok(Confirmation {
        off_session: params.take("off_session")?.is_some_and(|OffSession(off)| off),
        error_on_requires_action: params.take("error_on_requires_action")?.unwrap_or(false),
        return_url: params.take("return_url")?,
        ..Confirmation::default()
    })
}

/// `true`, `false`, or one of the texts that mean `true`.
struct OffSession(bool);

impl FromParameter for OffSession {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        if matches!(parameter.value.as_str(), Some("one_off" | "recurring")) {
            return Ok(Self(true));
        }
        bool::from_parameter(parameter).map(Self)
    }
}

/// `automatic_payment_methods`, as it is shown again.
struct Automatic(Value);

impl FromParameter for Automatic {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let enabled: bool = params.need("enabled")?;
        let redirects = params.one_of("allow_redirects", &["always", "never"])?;
        params.finish()?;
        let redirects = redirects.unwrap_or("always");
        Ok(Self(json!({ "allow_redirects": redirects, "enabled": enabled })))
    }
}

/// `payment_method_options`, of which only `card` is known, as it is shown again.
struct MethodOptions(Value);

impl FromParameter for MethodOptions {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let mut secure = None;
        if let Some(mut card) = params.nested("card")? {
            secure = card.one_of("request_three_d_secure", &["any", "automatic", "challenge"])?;
            card.take_without_effect(&CARD_OPTIONS_WITHOUT_EFFECT);
            if let Some(mut installments) = card.nested("installments")? {
                // Without a plan nothing is paid in parts.
                installments.take_without_effect(&["enabled"]);
                installments.refuse_unsupported(&["plan"])?;
                installments.finish()?;
            }
            card.refuse_unsupported(&CARD_OPTIONS_UNSUPPORTED)?;
            card.finish()?;
        }
        params.take_without_effect(&OTHER_METHODS);
        params.finish()?;
        let secure = secure.unwrap_or("automatic");
        Ok(Self(json!({ "card": { "request_three_d_secure": secure } })))
    }
}

fn descriptor_update(params: &mut Params, name: &str) -> Result<Update<String>, Error> {
    let is_there = params.has(name);
    Ok(match descriptor(params, name)? {
        Some(text) => Update::Set(text),
        None if is_there => Update::Unset,
        None => Update::Keep,
    })
}

async fn create(tx: Tx, body: Payload<CreateIntent>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let (intent, failure) = payment_intents::create(connection, cause, create)?;
        match failure {
            None => answers::created(connection, cause, PATH, intent.object(), &expand),
            Some(failure) => answer_failed(connection, cause, &intent, &failure, &expand),
        }
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<RetrieveIntent>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (RetrieveIntent { client_secret }, expand) = query.parse()?;
        let intent = payment_intents::retrieve(connection, cause, &id, client_secret.as_deref())?;
        answers::found(connection, cause, intent.object(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateIntent>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let intent = payment_intents::update(connection, cause, &id, update)?;
        answers::found(connection, cause, intent.object(), &expand)
    })
    .await
}

async fn confirm(tx: Tx, id: Path<String>, body: Payload<ConfirmIntent>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (ConfirmIntent { details, confirmation }, expand) = body.parse()?;
        let (intent, failure) = payment_intents::confirm(connection, cause, &id, details, confirmation)?;
        match failure {
            None => answers::found(connection, cause, intent.object(), &expand),
            Some(failure) => answer_failed(connection, cause, &intent, &failure, &expand),
        }
    })
    .await
}

async fn capture(tx: Tx, id: Path<String>, body: Payload<CaptureIntent>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (capture, expand) = body.parse()?;
        let intent = payment_intents::capture(connection, cause, &id, capture)?;
        answers::found(connection, cause, intent.object(), &expand)
    })
    .await
}

async fn cancel(tx: Tx, id: Path<String>, body: Payload<CancelIntent>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (cancel, expand) = body.parse()?;
        let intent = payment_intents::cancel(connection, cause, &id, cancel.reason)?;
        answers::found(connection, cause, intent.object(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::PaymentIntent, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = payment_intents::list(connection, cause, &list)?;
        let objects = page.map(|intent| intent.object());
        answers::listed(connection, cause, (PATH, "payment_intent"), objects, &expand)
    })
    .await
}

/// 402: the attempt is committed and remembered, and the caller is shown the intent as it stands now.
fn answer_failed(
    connection: &mut PgConnection,
    cause: &Cause,
    intent: &PaymentIntent,
    failure: &Failure,
    expand: &Expand,
) -> Result<Answer, Error> {
    let mut object = intent.object();
    answers::expand_one(connection, cause.account, expand, &mut object)?;
    let error = ErrorBody {
        charge: failure.charge.map(|charge| charge.to_string()),
        payment_intent: Some(&object),
        payment_method: Some(&failure.method),
        ..failure.decline.error_body()
    };
    Ok(answers::declined(&error))
}

//! Everything that can go wrong in a request, and the answer to it.
//!
//! [`Error::row`] is a table: the HTTP status, type, code and advice on the key for each variant. No other module knows the
//! HTTP statuses of errors. Types and codes are Stripe's (docs.stripe.com/api/errors). Those about the key follow the IETF
//! draft `idempotency-key-header` or are this service's own.
//!
//! An `Err` leaves nothing behind: the transaction is rolled back, and the key can be used again. So a declined payment is
//! not an `Error`. It is an answer that is committed and remembered.

mod lost;
mod quoted;

use serde::Serialize;
use serde_json::Value;

use crate::types::Kind;
use crate::types::money::AmountError;
pub use lost::is_lost;
pub use quoted::quoted;

/// Why a request was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No route has this path.
    #[error("Unrecognized request URL ({method}: {path}).")]
    RouteUnknown { method: String, path: String },
    /// Stripe has this route, and this service does not.
    #[error(
        "{path} is part of Stripe's API, but this service does not support it. Its docs/wire.md lists what it supports."
    )]
    RouteUnsupported { path: String },
    /// The path exists, but not with this method.
    #[error("{method} is not allowed on {path}. Allowed: {allow}.")]
    MethodNotAllowed { method: String, path: String, allow: String },

    /// The request came under a name that is not this server's.
    #[error(
        "The host '{0}' is not allowed. While the well-known demo key works, this server answers only requests for \
         localhost and loopback addresses, and from pages there. Start it with --allow-host NAME to add a name."
    )]
    HostRefused(String),

    /// Neither `Authorization: Bearer` nor Basic.
    #[error(
        "You did not provide an API key. Send it as the header `Authorization: Bearer YOUR_KEY`, \
         or as the user name of HTTP Basic with an empty password (`curl -u YOUR_KEY:`)."
    )]
    CredentialsMissing,
    /// No account has this key, or it was revoked.
    #[error(
        "Invalid API Key provided: {0}. (The demo key is shown when the server starts; `target/release/oncepay api-key \
         create`, run where the server runs, makes others.)"
    )]
    CredentialsUnknown(String),
    /// The key is a publishable one, which Stripe issues for browsers.
    #[error(
        "{0} is a publishable API key. Such keys collect a payer's card in a browser or an app, and this service does \
         not support that. Send a secret key (sk_…) from your server."
    )]
    CredentialsPublishable(String),
    /// `Stripe-Account` or `Stripe-Context`: ignoring them would charge the wrong account, so the request is refused.
    #[error("The header {0} is not supported: this service has no connected accounts.")]
    ConnectedAccount(&'static str),
    /// A header that may stand once came more than once, so it is unknown which value the caller means.
    #[error("The header {0} was sent more than once. Send it once.")]
    HeaderRepeated(&'static str),

    /// A mutation without an `Idempotency-Key`.
    #[error(
        "This request changes something, so it needs the header Idempotency-Key. Its value identifies the operation: \
         use the id of an order, or a random value that you store. Send the same value if you send the request again. \
         (The server's option --require-idempotency-key false makes the header optional.)"
    )]
    KeyRequired,
    /// The value of the header is not a valid key.
    #[error("The header Idempotency-Key {0}.")]
    KeyInvalid(String),
    /// The key has already answered a different request.
    ///
    /// The status depends on `to_an_sdk`, because official SDKs look at the error's type only if the status is 400.
    #[error(
        "Keys for idempotent requests can only be used with the same request they were first used with. \
         Use another key than '{key}' if you mean a different request. This key was first used by request {first}."
    )]
    KeyReused { key: String, first: String, to_an_sdk: bool },
    /// The look-up of a key found nothing. The caller may have lost an answer, so the message says what to do.
    #[error(
        "No such idempotency key: '{0}'. Either no request with this key has committed, or the key has expired. The \
         request may still be on its way. If you lost its answer, send the same request again with the same key."
    )]
    KeyUnknown(String),
    /// The first request with this key is still running.
    #[error(
        "A request with the Idempotency-Key '{0}' is still running. Send it again in a second, with the same key."
    )]
    KeyInUse(String),

    /// The signature of a notification is missing or wrong.
    #[error("The header Stripe-Signature {0}.")]
    SignatureRefused(String),

    /// The body is neither JSON nor a form, or it is compressed.
    #[error("{0}")]
    MediaTypeUnsupported(String),
    /// The body is larger than the limit.
    #[error("The body is larger than {limit_kib} KiB.")]
    BodyTooLarge { limit_kib: usize },
    /// The body did not arrive in time.
    #[error("The body did not arrive within {limit_seconds} seconds.")]
    BodyTooSlow { limit_seconds: u64 },
    /// The body or query is broken JSON or a broken form, or has NUL, invalid UTF-8, a repeated member or too deep nesting.
    #[error("{0}")]
    Malformed(String),

    #[error("Missing required param: {0}.")]
    ParameterMissing(String),
    #[error("Received unknown parameter: {0}")]
    ParameterUnknown(String),
    /// Stripe has this parameter, and this service does not support it.
    #[error("The parameter {0} is part of Stripe's API, but this service does not support it.")]
    ParameterUnsupported(String),
    #[error("{message}")]
    ParameterInvalid { param: String, code: Option<&'static str>, message: String },
    #[error("{error}.")]
    AmountInvalid { param: String, error: AmountError },

    /// The account has no object with the id in the path.
    #[error("No such {noun}: '{id}'")]
    NotFound { noun: &'static str, id: String, param: &'static str },
    /// The account has no object with the id in a parameter.
    #[error("No such {noun}: '{id}'")]
    ReferenceNotFound { noun: &'static str, id: String, param: String },

    /// The card is not valid or cannot be saved, and nothing was stored.
    #[error("{message}")]
    CardRefused {
        code: &'static str,
        decline_code: Option<&'static str>,
        message: &'static str,
        param: Option<&'static str>,
    },
    /// The state of the object does not allow the call.
    #[error("{message}")]
    NotAllowedNow { code: Option<&'static str>, message: String, param: Option<&'static str> },

    /// The status of a payment intent does not allow the call; the answer shows the intent.
    #[error("{message}")]
    UnexpectedState { message: String, payment_intent: Option<Box<Value>> },

    /// Another request held a lock on a row for too long, or the two waited for each other.
    #[error("Another request is changing the same object. Send this one again, with the same key.")]
    LockTimeout,
    /// The database could not be reached in time, and the request did nothing.
    #[error(
        "The service cannot reach its database, and this attempt did nothing. Send the request again, with the same \
 key if it had one: an earlier attempt may have done it."
    )]
    Unavailable(String),
    /// The database has no room left: a full disk, no memory, no free connection. This attempt did nothing.
    #[error(
        "The service has no room for this request just now, and this attempt did nothing. Send the request again, with the \
         same key if it had one."
    )]
    NoRoom(String),
    /// The connection broke around COMMIT.
    #[error("{}", if *.keyed {
        "The outcome of this request is not known. Send it again with the same Idempotency-Key: it will be done only once."
    } else {
        "The outcome of this request is not known, and it had no Idempotency-Key. Look at the object before you \
         send it again."
    })]
    OutcomeUnknown { keyed: bool, detail: String },
    /// The service failed; the text is for the log only.
    #[error(
        "Something went wrong on our side, and this attempt did nothing. Send the request again, with the same key if it had one."
    )]
    Internal(String),
}

/// What the caller should do with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Send the same request again with the same key.
    SameKey,
    /// The key already has its answer; another attempt needs another key.
    NewKey,
    /// The same request will fail again; the key is still unused.
    FixRequest,
}

/// The type of an error: Stripe has these four, and SDKs know no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum ErrorType {
    ApiError,
    CardError,
    IdempotencyError,
    InvalidRequestError,
}

impl From<ErrorType> for &'static str {
    fn from(error_type: ErrorType) -> Self {
        match error_type {
            ErrorType::ApiError => "api_error",
            ErrorType::CardError => "card_error",
            ErrorType::IdempotencyError => "idempotency_error",
            ErrorType::InvalidRequestError => "invalid_request_error",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub status: u16,
    pub error_type: ErrorType,
    pub code: Option<&'static str>,
    pub retry: Retry,
}

/// The value of `error` in the body of an answer.
#[derive(Debug, Serialize)]
pub struct ErrorBody<'a> {
    #[serde(rename = "type")]
    pub error_type: ErrorType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decline_code: Option<&'a str>,
    pub message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<&'a str>,
    /// The address of Stripe's page about the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_intent: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_method: Option<&'a Value>,
    pub retry: Retry,
}

impl ErrorBody<'_> {
    /// `{"error": …}`
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&serde_json::json!({ "error": self })).expect("text and enums always serialize")
    }
}

/// The address of Stripe's page about a code; `None` for this service's own codes.
pub fn doc_url(code: &str) -> Option<String> {
    let own = code.starts_with("idempotency_key")
        || matches!(code, "missing" | "payment_method_unexpected_state" | "signature_invalid");
    (!own).then(|| format!("https://docs.stripe.com/error-codes#{}", code.replace('_', "-")))
}

impl Error {
    /// The status, type, code and advice of this error.
    pub fn row(&self) -> Row {
        use ErrorType::{ApiError, CardError, IdempotencyError, InvalidRequestError};
        use Retry::{FixRequest, NewKey, SameKey};
        let (status, error_type, code, retry) = match self {
            Error::RouteUnknown { .. } => (404, InvalidRequestError, None, FixRequest),
            Error::RouteUnsupported { .. } => (404, InvalidRequestError, None, FixRequest),
            Error::MethodNotAllowed { .. } => (405, InvalidRequestError, None, FixRequest),
            Error::HostRefused(_) => (403, InvalidRequestError, None, FixRequest),
            Error::CredentialsMissing => (401, InvalidRequestError, None, FixRequest),
            Error::CredentialsUnknown(_) => (401, InvalidRequestError, None, FixRequest),
            Error::CredentialsPublishable(_) => (401, InvalidRequestError, None, FixRequest),
            Error::ConnectedAccount(_) => (400, InvalidRequestError, None, FixRequest),
            Error::HeaderRepeated(_) => (400, InvalidRequestError, None, FixRequest),
            Error::KeyRequired => (400, InvalidRequestError, Some("idempotency_key_required"), FixRequest),
            Error::KeyInvalid(_) => (400, InvalidRequestError, Some("idempotency_key_invalid"), FixRequest),
            Error::KeyReused { to_an_sdk: false, .. } => {
                (422, IdempotencyError, Some("idempotency_key_reused"), NewKey)
            }
            Error::KeyReused { to_an_sdk: true, .. } => {
                (400, IdempotencyError, Some("idempotency_key_reused"), NewKey)
            }
            Error::KeyUnknown(_) => (404, InvalidRequestError, Some("resource_missing"), FixRequest),
            Error::KeyInUse(_) => (409, InvalidRequestError, Some("idempotency_key_in_use"), SameKey),
            Error::SignatureRefused(_) => (400, InvalidRequestError, Some("signature_invalid"), FixRequest),
            Error::MediaTypeUnsupported(_) => (415, InvalidRequestError, None, FixRequest),
            Error::BodyTooLarge { .. } => (413, InvalidRequestError, None, FixRequest),
            Error::BodyTooSlow { .. } => (408, InvalidRequestError, None, FixRequest),
            Error::Malformed(_) => (400, InvalidRequestError, None, FixRequest),
            Error::ParameterMissing(_) => (400, InvalidRequestError, Some("parameter_missing"), FixRequest),
            Error::ParameterUnknown(_) | Error::ParameterUnsupported(_) => {
                (400, InvalidRequestError, Some("parameter_unknown"), FixRequest)
            }
            Error::ParameterInvalid { code, .. } => (400, InvalidRequestError, *code, FixRequest),
            Error::AmountInvalid { error, .. } => (400, InvalidRequestError, amount_code(*error), FixRequest),
            Error::NotFound { .. } => (404, InvalidRequestError, Some("resource_missing"), FixRequest),
            Error::ReferenceNotFound { .. } => {
                (400, InvalidRequestError, Some("resource_missing"), FixRequest)
            }
            Error::CardRefused { code, .. } => (402, CardError, Some(*code), FixRequest),
            Error::NotAllowedNow { code, .. } => (400, InvalidRequestError, *code, FixRequest),
            Error::UnexpectedState { .. } => {
                (400, InvalidRequestError, Some("payment_intent_unexpected_state"), FixRequest)
            }
            Error::LockTimeout => (409, InvalidRequestError, Some("lock_timeout"), SameKey),
            Error::Unavailable(_) | Error::NoRoom(_) => (503, ApiError, None, SameKey),
            Error::OutcomeUnknown { keyed: true, .. } => (503, ApiError, None, SameKey),
            Error::OutcomeUnknown { keyed: false, .. } => (503, ApiError, None, FixRequest),
            Error::Internal(_) => (500, ApiError, None, SameKey),
        };
        Row { status, error_type, code, retry }
    }

    /// The error of a path whose id names no `K` of the account.
    pub fn not_found<K: Kind>(id: &str) -> Self {
        Error::NotFound { noun: K::NOUN, id: quoted(id), param: K::PATH_PARAM }
    }

    /// The error of a parameter whose id names no `K` of the account.
    pub fn no_such<K: Kind>(id: &str, param: &str) -> Self {
        Error::ReferenceNotFound { noun: K::NOUN, id: quoted(id), param: param.to_owned() }
    }

    /// The error of a parameter with an invalid value, without a code.
    pub fn invalid(param: &str, message: impl Into<String>) -> Self {
        Error::ParameterInvalid { param: param.to_owned(), code: None, message: message.into() }
    }

    /// The error of a call that the state of an object does not allow.
    pub fn not_allowed(code: &'static str, message: impl Into<String>) -> Self {
        Error::NotAllowedNow { code: Some(code), message: message.into(), param: None }
    }

    /// The code or, if there is none, the type.
    pub fn name(&self) -> &'static str {
        let row = self.row();
        row.code.unwrap_or(row.error_type.into())
    }

    /// The details that only the log may show.
    pub fn internals(&self) -> Option<&str> {
        match self {
            Error::Internal(detail)
            | Error::Unavailable(detail)
            | Error::NoRoom(detail)
            | Error::OutcomeUnknown { detail, .. } => Some(detail),
            _ => None,
        }
    }

    /// The text of a log line about an error in the background, which no answer shows.
    pub fn for_log(&self) -> &str {
        self.internals().unwrap_or("refused")
    }

    /// The body of the answer, as JSON.
    pub fn body(&self) -> Vec<u8> {
        let row = self.row();
        let decline_code = match self {
            Error::CardRefused { decline_code, .. } => *decline_code,
            _ => None,
        };
        let payment_intent = match self {
            Error::UnexpectedState { payment_intent, .. } => payment_intent.as_deref(),
            _ => None,
        };
        ErrorBody {
            error_type: row.error_type,
            code: row.code,
            decline_code,
            message: &self.to_string(),
            param: self.param(),
            doc_url: row.code.and_then(doc_url),
            charge: None,
            payment_intent,
            payment_method: None,
            retry: row.retry,
        }
        .to_json()
    }

    fn param(&self) -> Option<&str> {
        match self {
            Error::ParameterMissing(param)
            | Error::ParameterUnknown(param)
            | Error::ParameterUnsupported(param)
            | Error::ParameterInvalid { param, .. }
            | Error::AmountInvalid { param, .. }
            | Error::ReferenceNotFound { param, .. } => Some(param),
            Error::NotFound { param, .. } | Error::CardRefused { param: Some(param), .. } => Some(param),
            Error::NotAllowedNow { param, .. } => *param,
            _ => None,
        }
    }
}

fn amount_code(error: AmountError) -> Option<&'static str> {
    match error {
        AmountError::TooLarge(_) => Some("amount_too_large"),
        AmountError::TooSmall(_) => Some("amount_too_small"),
        AmountError::LastDigit(_) => Some("invalid_amount"),
        AmountError::NotPositive | AmountError::Fraction(_) => Some("parameter_invalid_integer"),
    }
}

impl From<diesel::result::Error> for Error {
    /// Lost connections, lock timeouts and statement timeouts have variants of their own; every other error is internal.
    ///
    /// A rule that expects a certain violation catches it next to the insert.
    fn from(error: diesel::result::Error) -> Self {
        use diesel::result::DatabaseErrorKind::{SerializationFailure, Unknown};
        use diesel::result::Error::DatabaseError;
        match &error {
            _ if is_lost(&error) => Error::Unavailable(error.to_string()),
            DatabaseError(SerializationFailure, _) => Error::LockTimeout,
            // diesel has no kinds for these two, so they are recognised by their texts. src/db/mod.rs asks the server for
            // English messages.
            DatabaseError(Unknown, info)
                if info.message().contains("due to lock timeout")
                    || info.message().contains("deadlock detected") =>
            {
                Error::LockTimeout
            }
            DatabaseError(Unknown, info) if info.message().contains("due to statement timeout") => {
                Error::Unavailable(error.to_string())
            }
            DatabaseError(Unknown, info) if lost::has_no_room(info.message()) => {
                Error::NoRoom(error.to_string())
            }
            _ => Error::Internal(error.to_string()),
        }
    }
}

#[cfg(test)]
pub use tests::one_of_each;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Currency;

    /// One of each variant. The match below makes a new variant a compile error until it is listed here.
    pub fn one_of_each() -> Vec<Error> {
        let text = || "x".to_owned();
        let usd = Currency::parse("usd").unwrap();
        let all = vec![
            Error::RouteUnknown { method: text(), path: text() },
            Error::RouteUnsupported { path: text() },
            Error::MethodNotAllowed { method: text(), path: text(), allow: "GET".to_owned() },
            Error::HostRefused(text()),
            Error::CredentialsMissing,
            Error::CredentialsUnknown(text()),
            Error::CredentialsPublishable(text()),
            Error::ConnectedAccount("Stripe-Account"),
            Error::HeaderRepeated("Authorization"),
            Error::KeyRequired,
            Error::KeyInvalid(text()),
            Error::KeyReused { key: text(), first: text(), to_an_sdk: false },
            Error::KeyReused { key: text(), first: text(), to_an_sdk: true },
            Error::KeyUnknown(text()),
            Error::KeyInUse(text()),
            Error::SignatureRefused(text()),
            Error::MediaTypeUnsupported(text()),
            Error::BodyTooLarge { limit_kib: 1 },
            Error::BodyTooSlow { limit_seconds: 1 },
            Error::Malformed(text()),
            Error::ParameterMissing(text()),
            Error::ParameterUnknown(text()),
            Error::ParameterUnsupported(text()),
            Error::ParameterInvalid { param: text(), code: None, message: text() },
            Error::AmountInvalid { param: text(), error: AmountError::TooSmall(usd) },
            Error::NotFound { noun: "charge", id: text(), param: "id" },
            Error::ReferenceNotFound { noun: "charge", id: text(), param: text() },
            Error::CardRefused { code: "incorrect_number", decline_code: None, message: "x", param: None },
            Error::NotAllowedNow { code: None, message: text(), param: None },
            Error::UnexpectedState { message: text(), payment_intent: None },
            Error::LockTimeout,
            Error::Unavailable(text()),
            Error::NoRoom(text()),
            Error::OutcomeUnknown { keyed: true, detail: text() },
            Error::OutcomeUnknown { keyed: false, detail: text() },
            Error::Internal(text()),
        ];
        for error in &all {
            match error {
                Error::RouteUnknown { .. }
                | Error::RouteUnsupported { .. }
                | Error::MethodNotAllowed { .. }
                | Error::HostRefused(_)
                | Error::CredentialsMissing
                | Error::CredentialsUnknown(_)
                | Error::CredentialsPublishable(_)
                | Error::ConnectedAccount(_)
                | Error::HeaderRepeated(_)
                | Error::KeyRequired
                | Error::KeyInvalid(_)
                | Error::KeyUnknown(_)
                | Error::KeyReused { .. }
                | Error::KeyInUse(_)
                | Error::SignatureRefused(_)
                | Error::MediaTypeUnsupported(_)
                | Error::BodyTooLarge { .. }
                | Error::BodyTooSlow { .. }
                | Error::Malformed(_)
                | Error::ParameterMissing(_)
                | Error::ParameterUnknown(_)
                | Error::ParameterUnsupported(_)
                | Error::ParameterInvalid { .. }
                | Error::AmountInvalid { .. }
                | Error::NotFound { .. }
                | Error::ReferenceNotFound { .. }
                | Error::CardRefused { .. }
                | Error::NotAllowedNow { .. }
                | Error::UnexpectedState { .. }
                | Error::LockTimeout
                | Error::Unavailable(_)
                | Error::NoRoom(_)
                | Error::OutcomeUnknown { .. }
                | Error::Internal(_) => {}
            }
        }
        all
    }

    #[test]
    fn advice_follows_the_status() {
        for error in one_of_each() {
            let row = error.row();
            let expected = match row.status {
                409 | 429 | 500 => Retry::SameKey,
                503 if matches!(error, Error::OutcomeUnknown { keyed: false, .. }) => Retry::FixRequest,
                503 => Retry::SameKey,
                _ if row.error_type == ErrorType::IdempotencyError => Retry::NewKey,
                _ => Retry::FixRequest,
            };
            assert_eq!(row.retry, expected, "{error:?}");
        }
    }

    #[test]
    fn only_faults_of_ours_are_5xx_and_what_they_say_stays_inside() {
        for error in one_of_each() {
            assert_eq!(error.row().status >= 500, error.internals().is_some(), "{error:?}");
            assert_eq!(error.row().status >= 500, error.row().error_type == ErrorType::ApiError, "{error:?}");
        }
        let told = String::from_utf8(Error::Internal("password=hunter2".to_owned()).body()).unwrap();
        assert!(!told.contains("hunter2"));
    }
}

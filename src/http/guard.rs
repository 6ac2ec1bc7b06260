//! The middleware around each handler, which checks a request before it needs the database.
//!
//! It checks in the order of the contract, and puts the call and the parsed body into the request's extensions for the
//! handler's extractors. The checks that need the database are in [`crate::idempotency::execute`], which runs when the
//! handler runs its transaction.

use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::middleware::Next;
use actix_web::web::BytesMut;
use serde_json::{Map, Value};

use super::State;
use super::body::{self, Body, MediaType};
use super::look_up::Caller;
use super::route::{Admit, Policy};
use super::trace::Trace;
use super::transaction::Admitted;
use crate::auth::Credentials;
use crate::error::Error;
use crate::idempotency::fingerprint::Parts;
use crate::idempotency::{Call, Claim, Fingerprint, Key, KeySource, Outcome, key};
use crate::wire::{form, signature};

/// Passes a request to its handler, or answers it with an error.
///
/// # Errors
/// The middleware itself returns none: a refusal is an answer.
pub async fn guard(
    policy: Option<Policy>,
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    let state = request.app_data::<State>().cloned().expect("src/app/mod.rs sets the state");
    let trace =
        request.extensions().get::<Trace>().cloned().expect("src/app/mod.rs wraps every route in the trace");
    match admit(&state, &trace, policy, &mut request).await {
        Ok((admitted, body)) => {
            request.extensions_mut().insert(admitted);
            request.extensions_mut().insert(body);
        }
        Err(error) => {
            let outcome = match error {
                Error::KeyRequired => Some(Outcome::Missing),
                Error::KeyInvalid(_) => Some(Outcome::Invalid),
                _ => None,
            };
            if let Some(outcome) = outcome {
                state.metrics.outcome(outcome);
                trace.outcome(outcome);
            }
            return Ok(request.error_response(error));
        }
    }
    let answer = next.call(request).await?;
    if policy.is_some() && answer.status().is_success() && !trace.has_committed() {
        let error =
            Error::Internal("a mutating route answered without committing its transaction".to_owned());
        // The trace finds the error in the answer, and logs it with the id of the request.
        return Ok(ServiceResponse::from_err(error, answer.into_parts().0));
    }
    Ok(answer)
}

/// Checks headers, credentials, key, media type, size and syntax, in this order.
async fn admit(
    state: &State,
    trace: &Trace,
    policy: Option<Policy>,
    request: &mut ServiceRequest,
) -> Result<(Admitted, Body), Error> {
    check_headers(request.headers())?;
    if let Some(Policy::Signed { lifetime, admit }) = policy {
        return admit_notification(state, trace, (lifetime, admit), request).await;
    }
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let credentials = Credentials::of(authorization)?;
    let keyed = match policy {
        Some(Policy::Keyed { lifetime, secret }) => Some((key(state, request)?, lifetime, secret)),
        _ => None,
    };
    let is_post = *request.method() == Method::POST;
    let (media_type, bytes) = if is_post {
        (body::media_type(request.headers())?, body::read(request).await?)
    } else {
        (MediaType::Form, BytesMut::new())
    };
    // The query is a matter of syntax, so it is checked after the size of the body.
    let query = form::pairs(request.query_string().as_bytes())?;
    let parameters = if is_post { media_type.parse(&bytes)? } else { form::tree(query.clone())? };
    let claim = keyed.and_then(|(key, lifetime, secret)| {
        key.map(|key| Claim {
            source: KeySource::Api,
            key,
            fingerprint: fingerprint(state, request, &query, media_type, &parameters),
            lifetime: lifetime.unwrap_or(state.key_lifetime),
            secret,
            from_an_sdk: request.headers().contains_key("Stripe-Version"),
        })
    });
    let stray = match &*query {
        [(name, _), ..] if is_post => Some(name.clone()),
        _ => None,
    };
    let call = call(trace, request, claim);
    let admitted = Admitted { caller: Caller::Holder(credentials), call, writes: policy.is_some() };
    let is_json = media_type == MediaType::Json;
    let body = Body { parameters: members(parameters)?, is_json, stray, directory: state.directory };
    Ok((admitted, body))
}

/// Headers by which a caller acts for another account.
const OF_OTHER_ACCOUNTS: [&str; 2] = ["Stripe-Account", "Stripe-Context"];

/// Headers that are read as one value. Of two the first would count, and whoever looked at the request on its way may
/// have gone by the second. actix itself refuses two of Host, Content-Length and Transfer-Encoding, and the idempotency
/// key is judged with its syntax, in [`Key::of`].
const SINGLE_HEADERS: [&str; 6] =
    ["Authorization", "Content-Encoding", "Content-Type", "Origin", signature::HEADER, "Stripe-Version"];

/// Refuses headers whose meaning is ambiguous, or that this service would have to ignore.
fn check_headers(headers: &HeaderMap) -> Result<(), Error> {
    if let Some(name) = SINGLE_HEADERS.into_iter().find(|name| headers.get_all(*name).nth(1).is_some()) {
        return Err(Error::HeaderRepeated(name));
    }
    match OF_OTHER_ACCOUNTS.into_iter().find(|name| headers.contains_key(*name)) {
        Some(name) => Err(Error::ConnectedAccount(name)),
        None => Ok(()),
    }
}

/// Checks a signed notification, whose id is the key.
///
/// The signature replaces the credentials. It covers the body, so it is checked after the body has been read.
async fn admit_notification(
    state: &State,
    trace: &Trace,
    (lifetime, admit): (std::time::Duration, Admit),
    request: &mut ServiceRequest,
) -> Result<(Admitted, Body), Error> {
    let media_type = body::media_type(request.headers())?;
    if media_type != MediaType::Json {
        return Err(Error::MediaTypeUnsupported("Notifications are application/json.".to_owned()));
    }
    let bytes = body::read(request).await?;
    let (account, key, parameters) = admit(request.request(), &bytes, trace.now())?;
    let claim = Claim {
        source: KeySource::Network,
        key,
        fingerprint: fingerprint(state, request, &[], media_type, &parameters),
        lifetime,
        secret: false,
        from_an_sdk: false,
    };
    let call = call(trace, request, Some(claim));
    let admitted = Admitted { caller: Caller::Notifier(account), call, writes: true };
    let parameters = members(parameters)?;
    Ok((admitted, Body { parameters, is_json: true, stray: None, directory: state.directory }))
}

fn call(trace: &Trace, request: &ServiceRequest, claim: Option<Claim>) -> Call {
    let connection = request.connection_info();
    Call {
        request_id: trace.request_id(),
        now: trace.now(),
        base_url: format!("{}://{}", connection.scheme(), connection.host()),
        claim,
    }
}

fn fingerprint(
    state: &State,
    request: &ServiceRequest,
    query: &[(String, String)],
    media_type: MediaType,
    body: &Value,
) -> Fingerprint {
    let (method, path) = (request.method().as_str(), request.path());
    let parts = Parts { method, path, query, media_type: media_type.as_str(), body };
    Fingerprint::of(parts, &state.engine.secrets)
}

/// Reads the key of a request; `None` if it has none and the settings allow that.
fn key(state: &State, request: &ServiceRequest) -> Result<Option<Key>, Error> {
    let values = request.headers().get_all(key::HEADER).map(|value| value.as_bytes());
    let key = Key::of(values).map_err(|error| Error::KeyInvalid(error.to_string()))?;
    if key.is_none() && state.key_is_required {
        return Err(Error::KeyRequired);
    }
    Ok(key)
}

fn members(parameters: Value) -> Result<Map<String, Value>, Error> {
    match parameters {
        Value::Object(members) => Ok(members),
        _ => Err(Error::Malformed("The body must be a JSON object.".to_owned())),
    }
}

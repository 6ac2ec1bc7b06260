//! The middleware: a thin shell around a handler. It reads all that can be judged without the database, in the
//! order of the contract, and leaves a [`Call`] and the parsed body for the handler's extractors. What needs the
//! database happens in [`super::execute`], when the handler runs its transaction.

use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::web::BytesMut;
use serde_json::{Map, Value};

use super::fingerprint::Parts;
use super::{Call, Claim, Fingerprint, Key, Outcome, Policy, Source};
use crate::app::State;
use crate::auth::Credentials;
use crate::error::Error;
use crate::logs::Trace;
use crate::wire::body::{self, Body};
use crate::wire::form;

/// Lets a request through to its handler, or answers it.
///
/// # Errors
/// Never: what is refused is an answer.
pub async fn guard(
    policy: Option<Policy>,
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, actix_web::Error> {
    let state = request.app_data::<State>().cloned().expect("app.rs gives the app its state");
    let trace = request.extensions().get::<Trace>().cloned().expect("app.rs traces every request");
    match admit(&state, &trace, policy, &mut request).await {
        Ok((call, body)) => {
            request.extensions_mut().insert(call);
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

/// Credentials, key, media type, size, syntax: in this order, and before a connection is taken.
async fn admit(
    state: &State,
    trace: &Trace,
    policy: Option<Policy>,
    request: &mut ServiceRequest,
) -> Result<(Call, Body), Error> {
    if request.headers().contains_key("Stripe-Account") {
        return Err(Error::ConnectedAccount);
    }
    let credentials = Credentials::of(request.headers())?;
    let keyed = match policy {
        Some(Policy::Keyed { lifetime, secret }) => Some((key(state, request)?, lifetime, secret)),
        _ => None,
    };
    let is_post = *request.method() == Method::POST;
    let (media_type, bytes) = if is_post {
        (body::media_type(request.headers())?, body::read(request).await?)
    } else {
        (body::MediaType::Form, BytesMut::new())
    };
    // The query comes after the limits of the body, since it is a matter of syntax too.
    let query = form::pairs(request.query_string().as_bytes())?;
    let parameters = if is_post { media_type.parse(&bytes)? } else { form::tree(query.clone())? };
    let claim = keyed.and_then(|(key, lifetime, secret)| {
        key.map(|key| Claim {
            source: Source::Api,
            key,
            fingerprint: Fingerprint::of(
                Parts {
                    method: request.method().as_str(),
                    path: request.path(),
                    query: &query,
                    media_type: media_type.as_str(),
                    body: &parameters,
                },
                &state.secrets,
            ),
            lifetime: lifetime.unwrap_or(state.key_lifetime),
            secret,
            from_an_sdk: request.headers().contains_key("Stripe-Version"),
        })
    });
    let stray = match &*query {
        [(name, _), ..] if is_post => Some(name.clone()),
        _ => None,
    };
    let base_url = {
        let connection = request.connection_info();
        format!("{}://{}", connection.scheme(), connection.host())
    };
    let call = Call {
        request_id: trace.request_id(),
        now: trace.now(),
        credentials,
        base_url,
        writes: policy.is_some(),
        claim,
    };
    let body = Body { parameters: members(parameters)?, is_json: media_type == body::MediaType::Json, stray };
    Ok((call, body))
}

/// The key of a request that needs one.
fn key(state: &State, request: &ServiceRequest) -> Result<Option<Key>, Error> {
    let key = Key::of(request.headers()).map_err(Error::KeyInvalid)?;
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

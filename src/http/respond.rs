//! Turns answers and errors into HTTP responses.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, Responder, ResponseError};

use crate::error::{Error, Retry};
use crate::idempotency::Answer;

impl Responder for Answer {
    type Body = actix_web::body::BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = HttpResponse::build(status);
        answer.insert_header((header::CONTENT_TYPE, self.content_type));
        if let Some(location) = self.location {
            answer.insert_header((header::LOCATION, location));
        }
        if let Some(original) = self.original {
            answer.insert_header(("Idempotent-Replayed", "true"));
            answer.insert_header(("Original-Request", original.to_string()));
        }
        if status.is_client_error() {
            // This failure is remembered, so the same key would get the same answer.
            answer.insert_header(("Stripe-Should-Retry", "false"));
        }
        answer.body(self.body)
    }
}

impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.row().status).expect("the table has valid statuses")
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status_code());
        answer.content_type("application/json");
        let is_retried = self.row().retry == Retry::SameKey;
        answer.insert_header(("Stripe-Should-Retry", is_retried.to_string()));
        if is_retried {
            // The Node SDK retries on another connection and leaves this one open, which keeps its process alive.
            answer.force_close();
        }
        match self {
            Error::CredentialsMissing | Error::CredentialsUnknown(_) | Error::CredentialsPublishable(_) => {
                answer.insert_header((header::WWW_AUTHENTICATE, r#"Bearer realm="oncepay""#));
            }
            Error::MethodNotAllowed { allow, .. } => {
                answer.insert_header((header::ALLOW, allow.as_str()));
            }
            Error::KeyInUse(_) | Error::Unavailable(_) | Error::OutcomeUnknown { keyed: true, .. } => {
                answer.insert_header((header::RETRY_AFTER, "1"));
            }
            Error::NoRoom(_) => {
                answer.insert_header((header::RETRY_AFTER, "5"));
            }
            // The rest of the body will not be read, so the connection cannot be used again.
            Error::BodyTooLarge { .. } | Error::BodyTooSlow { .. } => {
                answer.force_close();
            }
            _ => {}
        }
        answer.body(self.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_agrees_with_the_body() {
        for error in crate::error::one_of_each() {
            let answer = error.error_response();
            let body: serde_json::Value = serde_json::from_slice(&error.body()).unwrap();
            let header = answer.headers().get("Stripe-Should-Retry").unwrap().to_str().unwrap();
            assert_eq!(header == "true", body["error"]["retry"] == "same_key", "{error:?}");
            assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
        }
    }
}

//! An answer as it is sent and stored: status, `Content-Type`, `Location` and the body's bytes. Nothing else of a
//! response is remembered: `Date` and `Request-Id` are of each delivery, and cookies this service has none.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, Responder};

use crate::types::Id;
use crate::types::cause::Request;

/// What a closure in [`crate::db::Tx::run`] returns: the answer, rendered while the transaction is open, so that
/// the bytes that are stored are the bytes that are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    /// The path of what was created.
    pub location: Option<String>,
    pub body: Vec<u8>,
    /// The request that got this answer first, if this is a replay.
    pub original: Option<Id<Request>>,
}

impl Answer {
    /// A JSON answer.
    pub fn json(status: u16, body: &impl serde::Serialize) -> Self {
        Self::new(status, serde_json::to_vec(body).expect("shapes of the wire always serialize"))
    }

    /// An answer whose JSON is already written.
    pub fn new(status: u16, body: Vec<u8>) -> Self {
        Self { status, content_type: "application/json".to_owned(), location: None, body, original: None }
    }

    /// Names the path of what was created.
    pub fn at(self, location: String) -> Self {
        Self { location: Some(location), ..self }
    }
}

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
            // A remembered failure: the same key gives the same answer for ever.
            answer.insert_header(("Stripe-Should-Retry", "false"));
        }
        answer.body(self.body)
    }
}

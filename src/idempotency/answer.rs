//! An answer as it is sent and stored: status, `Content-Type`, `Location` and the body's bytes.
//!
//! Nothing else of a response is remembered. Each delivery has its own `Date` and `Request-Id`, and this service sends no
//! cookies.

use crate::types::ids::RequestId;

/// The answer to a request.
///
/// It is rendered while the transaction is open, so the bytes that are stored are the bytes that are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    /// The path of the created object.
    pub location: Option<String>,
    pub body: Vec<u8>,
    /// The request that first got this answer, if this is a replay.
    pub original: Option<RequestId>,
}

impl Answer {
    /// Writes `body` as JSON.
    pub fn json(status: u16, body: &impl serde::Serialize) -> Self {
        Self::new(status, serde_json::to_vec(body).expect("objects of the wire always serialize"))
    }

    /// Takes a body that is JSON already.
    pub fn new(status: u16, body: Vec<u8>) -> Self {
        Self { status, content_type: "application/json".to_owned(), location: None, body, original: None }
    }

    /// The id of the object that the answer shows: what was created or found, or the charge that was declined.
    pub fn object_id(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Shown<'a> {
            #[serde(borrow)]
            id: Option<&'a str>,
            #[serde(borrow)]
            error: Option<Failed<'a>>,
        }
        #[derive(serde::Deserialize)]
        struct Failed<'a> {
            #[serde(borrow)]
            charge: Option<&'a str>,
        }
        let shown: Shown<'_> = serde_json::from_slice(&self.body).ok()?;
        shown.id.or(shown.error.and_then(|error| error.charge)).map(str::to_owned)
    }

    /// Names the path of what was created.
    pub fn at(self, location: String) -> Self {
        Self { location: Some(location), ..self }
    }
}

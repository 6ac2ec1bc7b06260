//! `GET /v1/idempotency_keys/{key}`: what became of a request whose answer was lost.

use actix_web::{HttpRequest, web};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::answers;
use crate::error::{Error, quoted};
use crate::http::{Db, Payload, Route};
use crate::idempotency::record::{self, Known};
use crate::idempotency::{Answer, Key};
use crate::wire::Nothing;

const PATH: &str = "/v1/idempotency_keys/";

pub fn routes() -> Vec<Route> {
    // A key may hold a slash.
    vec![Route::get("/v1/idempotency_keys/{key:.+}", || web::to(retrieve))]
}

/// `completed`, `in_progress`, or 404. A 404 never means "use a new key": the request may be on its way.
async fn retrieve(db: Db, request: HttpRequest, query: Payload<Nothing>) -> Result<Answer, Error> {
    let path = request.path().strip_prefix(PATH).unwrap_or_default();
    let text: Vec<u8> = percent_decode_str(path).collect();
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let unknown = Error::KeyUnknown(quoted(&String::from_utf8_lossy(&text)));
        // What can be no key was never one; PostgreSQL would not even take NUL for text.
        let Ok(key) = Key::exactly(text) else { return Err(unknown) };
        let known = record::known(connection, cause, &key)?.ok_or(unknown)?;
        answers::found(connection, cause, object(&key, &known), &expand)
    })
    .await
}

fn object(key: &Key, known: &Known) -> Value {
    let (status, record) = match known {
        Known::Completed(record) => ("completed", Some(record)),
        Known::InProgress => ("in_progress", None),
    };
    json!({
        "object": "idempotency_key",
        "key": key.as_str(),
        "livemode": false,
        "status": status,
        "status_code": record.map(|record| record.status),
        "request_id": record.map(|record| record.request_id),
        "created": record.map(|record| record.created_at.timestamp()),
        "expires": record.map(|record| record.expires_at.timestamp()),
    })
}

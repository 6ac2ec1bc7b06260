//! `GET /v1/idempotency_keys/{key}`: tells a caller who lost an answer whether the request was done.

use actix_web::{HttpRequest, web};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::answers;
use crate::error::{Error, quoted};
use crate::http::{Db, Payload, Route};
use crate::idempotency::record::{self, KeyState};
use crate::idempotency::{Answer, Key};
use crate::wire::Nothing;

const PATH: &str = "/v1/idempotency_keys/";

pub fn routes() -> Vec<Route> {
    // A key may contain slashes.
    vec![Route::get("/v1/idempotency_keys/{key:.+}", || web::to(retrieve))]
}

/// Answers `completed`, `in_progress` or 404; a 404 never means "use a new key", because the request may still arrive.
async fn retrieve(db: Db, request: HttpRequest, query: Payload<Nothing>) -> Result<Answer, Error> {
    let path = request.path().strip_prefix(PATH).unwrap_or_default();
    let text: Vec<u8> = percent_decode_str(path).collect();
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let unknown = Error::KeyUnknown(quoted(&String::from_utf8_lossy(&text)));
        // No record can have an invalid key, and PostgreSQL would refuse a text with NUL.
        let Ok(key) = Key::exactly(text) else { return Err(unknown) };
        let state = record::state_of_key(connection, cause, &key)?.ok_or(unknown)?;
        answers::found(connection, cause, object(&key, &state), &expand)
    })
    .await
}

fn object(key: &Key, state: &KeyState) -> Value {
    let (status, record) = match state {
        KeyState::Completed(record) => ("completed", Some(record)),
        KeyState::InProgress => ("in_progress", None),
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

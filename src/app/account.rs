//! `GET /v1/account`: the account of the API key. Integrations read it when they start.

use actix_web::web::{self, Path};
use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use serde_json::{Value, json};

use crate::answers;
use crate::auth::queries;
use crate::error::Error;
use crate::http::{Db, Payload, Route};
use crate::idempotency::Answer;
use crate::payments::charges::STATEMENT_DESCRIPTOR;
use crate::types::Cause;
use crate::types::ids::{AccountId, kinds};
use crate::wire::{Nothing, ids};

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/account", || web::to(retrieve)),
        Route::get("/v1/accounts/{account}", || web::to(retrieve_by_id)),
    ]
}

async fn retrieve(db: Db, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let account = own(connection, cause)?;
        answers::found(connection, cause, account, &expand)
    })
    .await
}

/// Answers like [`retrieve`]; any id but the caller's own is 404.
async fn retrieve_by_id(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let is_own = |id: AccountId| Ok((id == cause.account).then_some(()));
        ids::in_path::<kinds::Account, ()>(&id, is_own)?;
        let account = own(connection, cause)?;
        answers::found(connection, cause, account, &expand)
    })
    .await
}

fn own(connection: &mut PgConnection, cause: &Cause) -> Result<Value, Error> {
    let (name, created_at) = queries::name_and_age(connection, cause.account)?;
    Ok(object(cause.account, &name, created_at))
}

/// An account with every capability of this service. Integrations would take fewer for an unfinished set-up.
fn object(id: AccountId, name: &str, created_at: DateTime<Utc>) -> Value {
    json!({
        "id": id,
        "object": "account",
        "business_profile": {
            "mcc": null,
            "name": name,
            "product_description": null,
            "support_address": null,
            "support_email": null,
            "support_phone": null,
            "support_url": null,
            "url": null,
        },
        "business_type": null,
        "capabilities": { "card_payments": "active" },
        "charges_enabled": true,
        "controller": { "type": "account" },
        "country": "US",
        "created": created_at.timestamp(),
        "default_currency": "usd",
        "details_submitted": true,
        "email": null,
        "livemode": false,
        "metadata": {},
        "payouts_enabled": true,
        "settings": {
            "bacs_debit_payments": { "display_name": null, "service_user_number": null },
            "branding": { "icon": null, "logo": null, "primary_color": null, "secondary_color": null },
            "card_issuing": { "tos_acceptance": { "date": null, "ip": null } },
            "card_payments": {
                "decline_on": { "avs_failure": false, "cvc_failure": false },
                "statement_descriptor_prefix": null,
                "statement_descriptor_prefix_kana": null,
                "statement_descriptor_prefix_kanji": null,
            },
            "dashboard": { "display_name": name, "timezone": "Etc/UTC" },
            "payments": {
                "statement_descriptor": STATEMENT_DESCRIPTOR,
                "statement_descriptor_kana": null,
                "statement_descriptor_kanji": null,
            },
            "payouts": {
                "debit_negative_balances": true,
                "schedule": { "delay_days": 0, "interval": "manual" },
                "statement_descriptor": null,
            },
            "sepa_debit_payments": {},
        },
        "type": "standard",
    })
}

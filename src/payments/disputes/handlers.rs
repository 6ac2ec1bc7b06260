//! The routes of disputes, and their parameters.

use actix_web::web::{self, Path};

use super::{Filter, UpdateDispute};
use crate::answers;
use crate::error::Error;
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::disputes;
use crate::types::Page;
use crate::types::ids::kinds;
use crate::wire::{List, Nothing, Parameters, Params, Update};

const PATH: &str = "/v1/disputes";

/// The kinds of evidence, as Stripe names them.
pub const EVIDENCE: [&str; 27] = [
    "access_activity_log",
    "billing_address",
    "cancellation_policy",
    "cancellation_policy_disclosure",
    "cancellation_rebuttal",
    "customer_communication",
    "customer_email_address",
    "customer_name",
    "customer_purchase_ip",
    "customer_signature",
    "duplicate_charge_documentation",
    "duplicate_charge_explanation",
    "duplicate_charge_id",
    "product_description",
    "receipt",
    "refund_policy",
    "refund_policy_disclosure",
    "refund_refusal_explanation",
    "service_date",
    "service_documentation",
    "shipping_address",
    "shipping_carrier",
    "shipping_date",
    "shipping_documentation",
    "shipping_tracking_number",
    "uncategorized_file",
    "uncategorized_text",
];

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::get("/v1/disputes/{dispute}", || web::to(retrieve)),
        Route::post("/v1/disputes/{dispute}", Policy::KEYED, || web::to(update)),
        Route::post("/v1/disputes/{dispute}/close", Policy::KEYED, || web::to(close)),
    ]
}

impl Parameters for UpdateDispute {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let mut evidence = Vec::new();
        if let Some(mut given) = params.nested("evidence")? {
            for name in EVIDENCE {
                match given.update::<String>(name)? {
                    Update::Keep => {}
                    Update::Unset => evidence.push((name.to_owned(), None)),
                    Update::Set(text) => evidence.push((name.to_owned(), Some(text))),
                }
            }
            given.finish()?;
        }
        Ok(Self { evidence, submit: params.take("submit")?, metadata: params.metadata()? })
    }
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { charge: params.reference("charge")?, payment_intent: params.reference("payment_intent")? })
    }
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let dispute = disputes::retrieve(connection, cause, &id)?;
        let object = disputes::rendered(connection, cause.account, &[dispute])?.remove(0);
        answers::found(connection, cause, object, &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateDispute>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let dispute = disputes::update(connection, cause, &id, update)?;
        let object = disputes::rendered(connection, cause.account, &[dispute])?.remove(0);
        answers::found(connection, cause, object, &expand)
    })
    .await
}

async fn close(tx: Tx, id: Path<String>, body: Payload<Nothing>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (_, expand) = body.parse()?;
        let dispute = disputes::close(connection, cause, &id)?;
        let object = disputes::rendered(connection, cause.account, &[dispute])?.remove(0);
        answers::found(connection, cause, object, &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::Dispute, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = disputes::list(connection, cause, &list)?;
        let rows = disputes::rendered(connection, cause.account, &page.rows)?;
        answers::listed(connection, cause, (PATH, "dispute"), Page { rows, has_more: page.has_more }, &expand)
    })
    .await
}

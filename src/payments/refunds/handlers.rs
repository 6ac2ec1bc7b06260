//! The routes of refunds, and their parameters.

use actix_web::web::{self, Path};

use super::{CreateRefund, Filter, Reason, Refunded};
use crate::answers;
use crate::error::Error;
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::{charges, refunds};
use crate::types::MetadataPatch;
use crate::types::ids::kinds;
use crate::wire::{List, Nothing, Parameters, Params};

const PATH: &str = "/v1/refunds";

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/refunds/{refund}", || web::to(retrieve)),
        Route::post("/v1/refunds/{refund}", Policy::KEYED, || web::to(update)),
        Route::get("/v1/charges/{charge}/refunds", || web::to(list_of_charge)),
    ]
}

impl Parameters for CreateRefund {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let of = match (params.take("charge")?, params.take("payment_intent")?) {
            (Some(charge), None) => Refunded::Charge(charge),
            (None, Some(intent)) => Refunded::Intent(intent),
            (Some(_), Some(_)) => {
                return Err(Error::invalid("charge", "Name the `charge` or the `payment_intent`, not both."));
            }
            (None, None) => {
                return Err(Error::ParameterInvalid {
                    param: "charge".to_owned(),
                    code: Some("parameter_missing"),
                    message:
                        "One of the following params should be provided for this request: payment_intent \
                              or charge."
                            .to_owned(),
                });
            }
        };
        // Stripe writes to this address only about refunds that need more than a card.
        params.take_without_effect(&["instructions_email"]);
        let reason = params.one_of("reason", Reason::ALL)?;
        Ok(Self { of, amount: params.take("amount")?, reason, metadata: params.new_metadata()? })
    }
}

struct UpdateRefund {
    metadata: MetadataPatch,
}

impl Parameters for UpdateRefund {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { metadata: params.metadata()? })
    }
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { charge: params.reference("charge")?, payment_intent: params.reference("payment_intent")? })
    }
}

async fn create(tx: Tx, body: Payload<CreateRefund>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let refund = refunds::create(connection, cause, create)?;
        answers::created(connection, cause, PATH, refund.object(), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let refund = refunds::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, refund.object(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateRefund>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let refund = refunds::update(connection, cause, &id, &update.metadata)?;
        answers::found(connection, cause, refund.object(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::Refund, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = refunds::list(connection, cause, &list)?;
        let objects = page.map(|refund| refund.object());
        answers::listed(connection, cause, (PATH, "refund"), objects, &expand)
    })
    .await
}

/// Where the list of refunds within a charge goes on.
async fn list_of_charge(
    db: Db,
    id: Path<String>,
    query: Payload<List<kinds::Refund, Nothing>>,
) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let charge = charges::retrieve(connection, cause, &id)?.id;
        let page = list.load(connection, cause, |connection, page, _| {
            refunds::of_charge(connection, cause, page, charge)
        })?;
        let path = format!("/v1/charges/{charge}/refunds");
        let objects = page.map(|refund| refund.object());
        answers::listed(connection, cause, (&path, "refund"), objects, &expand)
    })
    .await
}

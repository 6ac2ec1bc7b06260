use actix_web::web::{self, Path};

use super::{CreateRefund, Filter, Refund, Refunded};
use crate::app::Route;
use crate::db::{Db, Tx};
use crate::error::Error;
use crate::idempotency::{Answer, Policy};
use crate::refunds;
use crate::types::{Id, MetadataPatch, PageRequest};
use crate::wire::{self, Nothing, Parameters, Params, Payload};

const PATH: &str = "/v1/refunds";

const REASONS: [&str; 3] = ["duplicate", "fraudulent", "requested_by_customer"];

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/refunds/{refund}", || web::to(retrieve)),
        Route::post("/v1/refunds/{refund}", Policy::KEYED, || web::to(update)),
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
        let reason = params.one_of("reason", &REASONS)?;
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

struct ListRefunds {
    page: PageRequest,
    cursor: Option<Id<Refund>>,
    filter: Filter,
}

impl Parameters for ListRefunds {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (page, cursor) = params.page()?;
        let filter =
            Filter { charge: params.take("charge")?, payment_intent: params.take("payment_intent")? };
        Ok(Self { page, cursor, filter })
    }
}

async fn create(tx: Tx, body: Payload<CreateRefund>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let refund = refunds::create(connection, cause, create)?;
        wire::created(connection, cause, PATH, refund.shape(), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let refund = refunds::retrieve(connection, cause, &id)?;
        wire::found(connection, cause, refund.shape(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateRefund>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let refund = refunds::update(connection, cause, &id, &update.metadata)?;
        wire::found(connection, cause, refund.shape(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<ListRefunds>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = refunds::list(connection, cause, &list.page, list.cursor, &list.filter)?;
        let shapes = page.map(|refund| refund.shape());
        wire::listed(connection, cause, (PATH, "refund"), shapes, &expand)
    })
    .await
}

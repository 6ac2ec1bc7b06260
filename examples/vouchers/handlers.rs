//! The routes of vouchers.

use actix_web::web::{self, Path};
use oncepay::answers;
use oncepay::error::Error;
use oncepay::http::{Db, Payload, Policy, Route, Tx};
use oncepay::idempotency::Answer;
use oncepay::wire::{Nothing, Parameters, Params};

use super as vouchers;
use super::CreateVoucher;

const PATH: &str = "/v1/vouchers";

pub fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/vouchers/{voucher}", || web::to(retrieve)),
        Route::post("/v1/vouchers/{voucher}/redeem", Policy::KEYED, || web::to(redeem)),
    ]
}

impl Parameters for CreateVoucher {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (amount, currency) = params.price()?;
        Ok(Self { amount, currency })
    }
}

async fn create(tx: Tx, body: Payload<CreateVoucher>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let voucher = vouchers::create(connection, cause, create)?;
        answers::created(connection, cause, PATH, voucher.object(), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let voucher = vouchers::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, voucher.object(), &expand)
    })
    .await
}

async fn redeem(tx: Tx, id: Path<String>, body: Payload<Nothing>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (_, expand) = body.parse()?;
        let voucher = vouchers::redeem(connection, cause, &id)?;
        answers::found(connection, cause, voucher.object(), &expand)
    })
    .await
}

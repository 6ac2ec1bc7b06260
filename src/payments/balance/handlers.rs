//! The routes of the balance and its ledger, and their parameters.

use actix_web::web::{self, Path};

use super::{Filter, MovedBy, Movement};
use crate::answers;
use crate::error::{Error, quoted};
use crate::http::{Db, Payload, Route};
use crate::idempotency::Answer;
use crate::payments::balance;
use crate::types::Kind;
use crate::types::ids::kinds;
use crate::wire::{List, Nothing, Parameters, Params};

const PATH: &str = "/v1/balance_transactions";

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/balance", || web::to(retrieve_balance)),
        Route::get(PATH, || web::to(list)),
        Route::get("/v1/balance_transactions/{transaction}", || web::to(retrieve)),
    ]
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        // Nothing is ever paid out, so whatever payout is named, there is none.
        if let Some(id) = params.take::<String>("payout")? {
            let (id, param) = (quoted(&id), "payout".to_owned());
            return Err(Error::ReferenceNotFound { noun: "payout", id, param });
        }
        Ok(Self {
            currency: params.take("currency")?,
            movements: params.take::<String>("type")?.map(|wire_type| Movement::of_type(&wire_type)),
            moved_by: moved_by(params)?,
        })
    }
}

/// What moved the money: the id of a charge, a refund or a dispute.
fn moved_by(params: &mut Params) -> Result<Option<MovedBy>, Error> {
    if params.text_begins("source", kinds::Refund::PREFIX) {
        return Ok(params.reference("source")?.map(MovedBy::Refund));
    }
    if params.text_begins("source", kinds::Dispute::PREFIX) {
        return Ok(params.reference("source")?.map(MovedBy::Dispute));
    }
    Ok(params.reference("source")?.map(MovedBy::Charge))
}

async fn retrieve_balance(db: Db, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let balance = balance::balance(connection, cause)?;
        answers::found(connection, cause, balance, &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::BalanceTransaction, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = balance::list(connection, cause, &list)?;
        let objects = page.map(|transaction| transaction.object());
        answers::listed(connection, cause, (PATH, "balance_transaction"), objects, &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let transaction = balance::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, transaction.object(), &expand)
    })
    .await
}

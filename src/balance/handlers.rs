use actix_web::web::{self, Path};

use super::{BalanceTransaction, Filter, Movement, Source};
use crate::app::Route;
use crate::balance;
use crate::charges::Charge;
use crate::db::Db;
use crate::error::{Error, quoted};
use crate::idempotency::Answer;
use crate::types::{Id, PageRequest};
use crate::wire::{self, FromParameter, Nothing, Parameter, Parameters, Params, Payload};

const PATH: &str = "/v1/balance_transactions";

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/balance", || web::to(retrieve_balance)),
        Route::get(PATH, || web::to(list)),
        Route::get("/v1/balance_transactions/{transaction}", || web::to(retrieve)),
    ]
}

struct ListTransactions {
    page: PageRequest,
    cursor: Option<Id<BalanceTransaction>>,
    filter: Filter,
}

impl Parameters for ListTransactions {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (page, cursor) = params.page()?;
        // Nothing is ever paid out, so whatever payout is named, there is none.
        if let Some(id) = params.take::<String>("payout")? {
            let (id, param) = (quoted(&id), "payout".to_owned());
            return Err(Error::ReferenceNotFound { noun: "payout", id, param });
        }
        let filter = Filter {
            currency: params.take("currency")?,
            movements: params.take::<String>("type")?.map(|wire_type| Movement::of_type(&wire_type)),
            source: params.take("source")?,
        };
        Ok(Self { page, cursor, filter })
    }
}

impl FromParameter for Source {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let text = parameter.value.as_str().ok_or_else(|| parameter.wrong("string"))?;
        let charge = Id::parse(text).map(Source::Charge);
        charge
            .or_else(|| Id::parse(text).map(Source::Refund))
            .ok_or_else(|| Error::no_such::<Charge>(text, &parameter.name))
    }
}

async fn retrieve_balance(db: Db, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let balance = balance::balance(connection, cause)?;
        wire::found(connection, cause, balance, &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<ListTransactions>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = balance::list(connection, cause, &list.page, list.cursor, &list.filter)?;
        let shapes = page.map(|transaction| transaction.shape());
        wire::listed(connection, cause, (PATH, "balance_transaction"), shapes, &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let transaction = balance::retrieve(connection, cause, &id)?;
        wire::found(connection, cause, transaction.shape(), &expand)
    })
    .await
}

//! The routes of customers, and their parameters.

use actix_web::web::{self, Path};

use super::{Details, Filter};
use crate::answers;
use crate::error::Error;
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::customers;
use crate::payments::tokens::Source;
use crate::types::ids::kinds;
use crate::wire::{List, Nothing, Parameters, Params, Update};

const PATH: &str = "/v1/customers";

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/customers/{customer}", || web::to(retrieve)),
        Route::post("/v1/customers/{customer}", Policy::KEYED, || web::to(update)),
        Route::delete("/v1/customers/{customer}", Policy::Unkeyed, || web::to(delete)),
    ]
}

struct CreateCustomer(Details);

impl Parameters for CreateCustomer {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let source = params.take("source")?;
        let payment_method = params.take("payment_method")?;
        let details = details(params, source)?;
        Ok(Self(Details { payment_method, ..details }))
    }
}

struct UpdateCustomer(Details);

impl Parameters for UpdateCustomer {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let source: Option<Source> = params.take("source")?;
        // An older name of the same parameter, which some callers still use.
        let card: Option<Source> = params.take("card")?;
        if source.is_some() && card.is_some() {
            return Err(Error::invalid("card", "You cannot use both `source` and `card`."));
        }
        let default_source = params.take("default_source")?;
        let details = details(params, source.or(card))?;
        Ok(Self(Details { default_source, ..details }))
    }
}

/// What can be said of a customer both when it is made and later.
fn details(params: &mut Params, source: Option<Source>) -> Result<Details, Error> {
    Ok(Details {
        address: params.update("address")?,
        description: params.update("description")?,
        email: params.update("email")?,
        name: params.update("name")?,
        phone: params.update("phone")?,
        preferred_locales: params.update("preferred_locales")?,
        shipping: params.update("shipping")?,
        metadata: params.metadata()?,
        source,
        default_source: None,
        payment_method: None,
        default_payment_method: match params.nested("invoice_settings")? {
            None => Update::Keep,
            Some(mut settings) => {
                let default = settings.update("default_payment_method")?;
                settings.finish()?;
                default
            }
        },
    })
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { email: params.take("email")? })
    }
}

async fn create(tx: Tx, body: Payload<CreateCustomer>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (CreateCustomer(details), expand) = body.parse()?;
        let customer = customers::create(connection, cause, details)?;
        answers::created(connection, cause, PATH, customer.object(), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let customer = customers::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, customer.object(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateCustomer>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (UpdateCustomer(details), expand) = body.parse()?;
        let customer = customers::update(connection, cause, &id, details)?;
        answers::found(connection, cause, customer.object(), &expand)
    })
    .await
}

async fn delete(tx: Tx, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let customer = customers::delete(connection, cause, &id)?;
        answers::found(connection, cause, customer.object(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::Customer, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = customers::list(connection, cause, &list)?;
        let objects = page.map(|customer| customer.object());
        answers::listed(connection, cause, (PATH, "customer"), objects, &expand)
    })
    .await
}

use actix_web::web::{self, Path};

use super::{Customer, Details};
use crate::app::Route;
use crate::customers;
use crate::db::{Db, Tx};
use crate::error::Error;
use crate::idempotency::{Answer, Policy};
use crate::payment_methods::{self, PaymentMethod};
use crate::tokens::Source;
use crate::types::{Id, PageRequest};
use crate::wire::{self, FromParameter, Nothing, Parameter, Parameters, Params, Payload, Update};

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
                let default = settings.update("default_payment_method")?.map(|MethodId(id)| id);
                settings.finish()?;
                default
            }
        },
    })
}

/// The id of a payment method, by either of its names.
struct MethodId(Id<PaymentMethod>);

impl FromParameter for MethodId {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let text = parameter.value.as_str().ok_or_else(|| parameter.wrong("string"))?;
        payment_methods::parse_id(text)
            .map(Self)
            .ok_or_else(|| Error::no_such::<PaymentMethod>(text, &parameter.name))
    }
}

struct ListCustomers {
    page: PageRequest,
    cursor: Option<Id<Customer>>,
    email: Option<String>,
}

impl Parameters for ListCustomers {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let (page, cursor) = params.page()?;
        Ok(Self { page, cursor, email: params.take("email")? })
    }
}

async fn create(tx: Tx, body: Payload<CreateCustomer>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (CreateCustomer(details), expand) = body.parse()?;
        let customer = customers::create(connection, cause, details)?;
        wire::created(connection, cause, PATH, customer.shape(), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let customer = customers::retrieve(connection, cause, &id)?;
        wire::found(connection, cause, customer.shape(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdateCustomer>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (UpdateCustomer(details), expand) = body.parse()?;
        let customer = customers::update(connection, cause, &id, details)?;
        wire::found(connection, cause, customer.shape(), &expand)
    })
    .await
}

async fn delete(tx: Tx, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let customer = customers::delete(connection, cause, &id)?;
        wire::found(connection, cause, customer.shape(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<ListCustomers>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = customers::list(connection, cause, &list.page, list.cursor, list.email.as_deref())?;
        let shapes = page.map(|customer| customer.shape());
        wire::listed(connection, cause, (PATH, "customer"), shapes, &expand)
    })
    .await
}

//! The routes of payment methods, and their parameters.

use actix_web::web::{self, Path};

use super::new_card::{ExpiryPart, typed};
use super::{
    BillingDetailsPatch, CardOrToken, CreatePaymentMethod, Filter, Named, NewCard, NewDetails, PaymentMethod,
    UpdatePaymentMethod,
};
use crate::answers;
use crate::card_network;
use crate::error::{Error, quoted};
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::customers;
use crate::payments::payment_methods;
use crate::types::Page;
use crate::types::ids::{CustomerId, TokenId, kinds};
use crate::wire::{FromParameter, List, Nothing, Parameter, Parameters, Params};

const PATH: &str = "/v1/payment_methods";

pub fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, || web::to(list)),
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/payment_methods/{method}", || web::to(retrieve)),
        Route::post("/v1/payment_methods/{method}", Policy::KEYED, || web::to(update)),
        Route::post("/v1/payment_methods/{method}/attach", Policy::KEYED, || web::to(attach)),
        Route::post("/v1/payment_methods/{method}/detach", Policy::KEYED, || web::to(detach)),
        Route::get("/v1/customers/{customer}/payment_methods", || web::to(list_of_customer)),
        Route::get("/v1/customers/{customer}/payment_methods/{method}", || web::to(retrieve_of_customer)),
        Route::get("/v1/customers/{customer}/sources", || web::to(list_sources)),
    ]
}

/// What changes nothing about a card payment here: what pages of Stripe may show, and Stripe's own checks for fraud.
const WITHOUT_EFFECT: [&str; 2] = ["allow_redisplay", "radar_options"];

/// The same within `card`: which of several networks a card with two brands prefers.
const OF_CARDS_WITHOUT_EFFECT: [&str; 1] = ["networks"];

impl Parameters for CreatePaymentMethod {
    fn read(params: &mut Params) -> Result<Self, Error> {
        if params.has("payment_method") {
            return Err(Error::ParameterUnsupported("payment_method".to_owned()));
        }
        let create = Self::data(params)?;
        let details = NewDetails { customer: params.take("customer")?, ..create.details };
        Ok(Self { details, ..create })
    }
}

impl CreatePaymentMethod {
    /// What `payment_method_data` of a payment intent has too.
    pub fn data(params: &mut Params) -> Result<Self, Error> {
        params.take_without_effect(&WITHOUT_EFFECT);
        kind(params)?;
        Ok(Self {
            card: params.need("card")?,
            details: NewDetails {
                billing_details: params.take("billing_details")?.unwrap_or_default(),
                metadata: params.new_metadata()?,
                customer: None,
            },
        })
    }
}

/// `payment_method_data[…]`
impl FromParameter for CreatePaymentMethod {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let create = Self::data(&mut params)?;
        params.finish()?;
        Ok(create)
    }
}

impl FromParameter for CardOrToken {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let mut params = Params::from_parameter(parameter)?;
        let param = params.name_of("token");
        params.take_without_effect(&OF_CARDS_WITHOUT_EFFECT);
        let card = match params.take::<String>("token")? {
            Some(token) => match TokenId::parse(&token) {
                Some(id) => Self::Token { id, param },
                None => {
                    let card = token.strip_prefix("tok_").and_then(card_network::by_name);
                    let unknown = || Error::no_such::<kinds::Token>(&token, &param);
                    Self::Card(NewCard::Named(card.ok_or_else(unknown)?))
                }
            },
            None => Self::Card(NewCard::Typed(typed(&mut params)?, Box::default())),
        };
        params.finish()?;
        Ok(card)
    }
}

impl Parameters for UpdatePaymentMethod {
    fn read(params: &mut Params) -> Result<Self, Error> {
        let billing_details = params.take("billing_details")?.unwrap_or(BillingDetailsPatch::KEEP);
        let (mut expiry_month, mut expiry_year) = (None, None);
        if let Some(mut card) = params.nested("card")? {
            expiry_month = card.take("exp_month")?.map(|ExpiryPart(month)| month);
            expiry_year = card.take("exp_year")?.map(|ExpiryPart(year)| year);
            card.take_without_effect(&OF_CARDS_WITHOUT_EFFECT);
            card.finish()?;
        }
        params.take_without_effect(&["allow_redisplay"]);
        Ok(Self { billing_details, expiry_month, expiry_year, metadata: params.metadata()? })
    }
}

impl FromParameter for Named {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let text = parameter.value.as_str().ok_or_else(|| parameter.wrong("string"))?;
        let test = payment_methods::test_method(text).map(Named::Test);
        test.or_else(|| payment_methods::parse_id(text).map(Named::Existing))
            .ok_or_else(|| Error::no_such::<kinds::PaymentMethod>(text, &parameter.name))
    }
}

struct AttachPaymentMethod {
    customer: CustomerId,
}

impl Parameters for AttachPaymentMethod {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { customer: params.need("customer")? })
    }
}

impl Parameters for Filter {
    fn read(params: &mut Params) -> Result<Self, Error> {
        kind(params)?;
        Ok(Self { customer: params.reference("customer")? })
    }
}

/// The filter of a list under a customer, whose path says whose methods it holds.
struct OfCustomer;

impl Parameters for OfCustomer {
    fn read(params: &mut Params) -> Result<Self, Error> {
        kind(params).map(|()| Self)
    }
}

/// The parameter `type`, which can only be `card`.
fn kind(params: &mut Params) -> Result<(), Error> {
    let name = params.name_of("type");
    match params.take::<String>("type")? {
        Some(kind) if kind != "card" => Err(Error::invalid(
            &name,
            format!("Invalid type: {}. The only type of payment method here is card.", quoted(&kind)),
        )),
        _ => Ok(()),
    }
}

async fn create(tx: Tx, body: Payload<CreatePaymentMethod>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let method = customers::create_method(connection, cause, create)?;
        answers::created(connection, cause, PATH, method.object(), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let method = payment_methods::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, method.object(), &expand)
    })
    .await
}

async fn update(tx: Tx, id: Path<String>, body: Payload<UpdatePaymentMethod>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (update, expand) = body.parse()?;
        let method = payment_methods::update(connection, cause, &id, update)?;
        answers::found(connection, cause, method.object(), &expand)
    })
    .await
}

async fn attach(tx: Tx, id: Path<String>, body: Payload<AttachPaymentMethod>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (attach, expand) = body.parse()?;
        let method = customers::attach(connection, cause, &id, attach.customer)?;
        answers::found(connection, cause, method.object(), &expand)
    })
    .await
}

async fn detach(tx: Tx, id: Path<String>, body: Payload<Nothing>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (_, expand) = body.parse()?;
        let method = customers::detach(connection, cause, &id)?;
        answers::found(connection, cause, method.object(), &expand)
    })
    .await
}

async fn list(db: Db, query: Payload<List<kinds::PaymentMethod, Filter>>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let page = payment_methods::list(connection, cause, &list)?;
        answers::listed(connection, cause, (PATH, "payment_method"), objects(page), &expand)
    })
    .await
}

async fn list_of_customer(
    db: Db,
    id: Path<String>,
    query: Payload<List<kinds::PaymentMethod, OfCustomer>>,
) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let customer = customers::retrieve(connection, cause, &id)?.id;
        let page = list.load(connection, cause, |connection, page, _| {
            payment_methods::of_customer(connection, cause, page, customer)
        })?;
        let path = format!("/v1/customers/{customer}/payment_methods");
        answers::listed(connection, cause, (&path, "payment_method"), objects(page), &expand)
    })
    .await
}

/// The filter of a customer's sources: all of them are cards.
struct Sources;

impl Parameters for Sources {
    fn read(params: &mut Params) -> Result<Self, Error> {
        params.one_of("object", &["card"]).map(|_| Self)
    }
}

/// The cards of a customer as the older API names them.
async fn list_sources(
    db: Db,
    id: Path<String>,
    query: Payload<List<kinds::Card, Sources>>,
) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (list, expand) = query.parse()?;
        let customer = customers::retrieve(connection, cause, &id)?.id;
        let page = list.load(connection, cause, |connection, page, _| {
            payment_methods::of_customer(connection, cause, page, customer)
        })?;
        let path = format!("/v1/customers/{customer}/sources");
        let objects = page.map(|method| method.source_object());
        answers::listed(connection, cause, (&path, "card"), objects, &expand)
    })
    .await
}

async fn retrieve_of_customer(
    db: Db,
    ids: Path<(String, String)>,
    query: Payload<Nothing>,
) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let (customer, id) = &*ids;
        let customer = customers::retrieve(connection, cause, customer)?.id;
        let method = payment_methods::retrieve(connection, cause, id)?;
        if method.customer_id != Some(customer) {
            return Err(Error::not_found::<kinds::PaymentMethod>(id));
        }
        answers::found(connection, cause, method.object(), &expand)
    })
    .await
}

fn objects(page: Page<PaymentMethod>) -> Page<serde_json::Value> {
    page.map(|method| method.object())
}

//! The routes of tokens, and their parameters.

use actix_web::web::{self, Path};

use crate::answers;
use crate::error::Error;
use crate::http::{Db, Payload, Policy, Route, Tx};
use crate::idempotency::Answer;
use crate::payments::payment_methods::NewCard;
use crate::payments::tokens;
use crate::wire::{Nothing, Parameters, Params};

const PATH: &str = "/v1/tokens";

pub fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Policy::KEYED, || web::to(create)),
        Route::get("/v1/tokens/{token}", || web::to(retrieve)),
    ]
}

struct CreateToken {
    card: NewCard,
}

impl Parameters for CreateToken {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self { card: params.need("card")? })
    }
}

async fn create(tx: Tx, body: Payload<CreateToken>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        let (create, expand) = body.parse()?;
        let (token, card) = tokens::create(connection, cause, create.card)?;
        answers::created(connection, cause, PATH, token.object(&card), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let (token, card) = tokens::retrieve(connection, cause, &id)?;
        answers::found(connection, cause, token.object(&card), &expand)
    })
    .await
}

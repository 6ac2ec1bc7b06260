use actix_web::web::{self, Path};

use crate::app::Route;
use crate::db::{Db, Tx};
use crate::error::Error;
use crate::idempotency::{Answer, Policy};
use crate::payment_methods::NewCard;
use crate::tokens;
use crate::wire::{self, Nothing, Parameters, Params, Payload};

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
        wire::created(connection, cause, PATH, token.shape(&card), &expand)
    })
    .await
}

async fn retrieve(db: Db, id: Path<String>, query: Payload<Nothing>) -> Result<Answer, Error> {
    db.read(move |connection, cause| {
        let (_, expand) = query.parse()?;
        let (token, card) = tokens::retrieve(connection, cause, &id)?;
        wire::found(connection, cause, token.shape(&card), &expand)
    })
    .await
}

//! The routes for monitoring: metrics (`/metrics`), whether the process is alive (`/healthz`), and whether the database
//! answers (`/readyz`). They need no credentials and read no tables.

use actix_web::{HttpRequest, HttpResponse, guard, web};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;

use super::not_allowed;
use crate::error::Error;
use crate::http::State;

pub fn mount(config: &mut web::ServiceConfig) {
    for (path, route) in [
        ("/metrics", web::route().to(metrics)),
        ("/healthz", web::route().to(healthz)),
        ("/readyz", web::route().to(readyz)),
    ] {
        let route = route.guard(guard::Any(guard::Get()).or(guard::Head()));
        config.service(web::resource(path).route(route).default_service(not_allowed("GET, HEAD".to_owned())));
    }
}

async fn metrics(request: HttpRequest) -> Result<HttpResponse, Error> {
    let state = state(&request)?;
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(state.metrics.text()))
}

async fn healthz() -> &'static str {
    "ok\n"
}

/// Answers 200 if the database answers, else 503.
async fn readyz(request: HttpRequest) -> Result<&'static str, Error> {
    let state = state(&request)?;
    let database = state.engine.database.clone();
    state
        .engine
        .database
        .run(move |connection| {
            database.with_reconnect(connection, |connection| {
                diesel::select(sql::<Bool>("true")).get_result::<bool>(connection)
            })
        })
        .await??;
    Ok("ok\n")
}

fn state(request: &HttpRequest) -> Result<State, Error> {
    request.app_data::<State>().cloned().ok_or_else(|| Error::Internal("the app has no state".to_owned()))
}

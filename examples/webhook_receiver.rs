//! Receives webhooks: verifies, answers fast, takes each event once. Start it with
//! `WEBHOOK_SECRET=whsec_… cargo run --example webhook_receiver`. The endpoint is `http://127.0.0.1:4242/hook`; the
//! variable `PORT` chooses another port.

use std::{collections::HashSet, sync::Mutex};

use actix_web::web::{Bytes, Data, post};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use hmac::{Hmac, KeyInit, Mac};

pub struct Receiver {
    pub secret: String,               // the service showed it when the endpoint was made
    pub seen: Mutex<HashSet<String>>, // in production: a table, written in the transaction of what the event causes
}

pub async fn receive(receiver: Data<Receiver>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let header = request.headers().get("Stripe-Signature").and_then(|header| header.to_str().ok());
    if !is_genuine(header.unwrap_or_default(), &receiver.secret, &body) {
        return HttpResponse::BadRequest().finish();
    }
    let event: serde_json::Value = serde_json::from_slice(&body).expect("what is signed is JSON");
    if receiver.seen.lock().unwrap().insert(event["id"].to_string()) {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        println!("{} {}", text(&event["type"]), text(&event["data"]["object"]["id"])); // put long work into a queue
    }
    HttpResponse::Ok().finish()
}

fn is_genuine(header: &str, secret: &str, body: &[u8]) -> bool {
    let parts = |name| header.split(',').filter_map(move |part| part.strip_prefix(name));
    let now = chrono::Utc::now().timestamp();
    let is_recent = |time: &&str| time.parse().is_ok_and(|time: i64| now.abs_diff(time) <= 300);
    let Some(time) = parts("t=").next().filter(is_recent) else { return false };
    let mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("any length will do");
    let mac = mac.chain_update(format!("{time}.")).chain_update(body);
    parts("v1=").filter_map(|sent| hex::decode(sent).ok()).any(|sent| mac.clone().verify_slice(&sent).is_ok())
}

#[actix_web::main]
pub async fn main() -> std::io::Result<()> {
    let secret = std::env::var("WEBHOOK_SECRET")
        .expect("WEBHOOK_SECRET should be the secret that was shown when the endpoint was made");
    let port = std::env::var("PORT").map_or(4242, |port| port.parse().expect("PORT should be a number"));
    let receiver = Data::new(Receiver { secret, seen: Mutex::default() });
    let app = move || App::new().app_data(receiver.clone()).route("/hook", post().to(receive));
    HttpServer::new(app).bind(("127.0.0.1", port))?.run().await
}

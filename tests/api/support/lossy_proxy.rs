//! A proxy that loses requests and answers, as networks do.

use std::collections::HashMap;
use std::io::{Result, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Raw;
use super::listener::Listener;
use super::message::Message;

/// How long the proxy waits for either side.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    /// The server never sees it.
    RequestLost,
    /// The server answers, and the client never sees the answer.
    AnswerLost,
    /// The client's connection ends as soon as the server has the request.
    CutOff,
}

/// A request that the proxy met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub key: String,
    pub fate: Fate,
    /// The status of the server's answer, if it was asked.
    pub status: Option<u16>,
    pub is_replay: bool,
}

/// The requests that the proxy met, in the order of their answers.
pub type Journal = Arc<Mutex<Vec<Passage>>>;

/// How often the proxy has met each key.
type Met = Mutex<HashMap<String, usize>>;

/// A running proxy. Dropping it stops it.
pub struct LossyProxy {
    pub address: SocketAddr,
    _listener: Listener,
}

impl LossyProxy {
    /// Starts a proxy before `server`. `fate` decides over the first, second, … request with the same idempotency key.
    /// A request without a key is delivered.
    pub fn start(
        server: SocketAddr,
        journal: &Journal,
        fate: impl Fn(usize) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let (journal, met) = (Arc::clone(journal), Met::default());
        let listener = Listener::start(move |client| {
            // An error ends the connection, which the client notices.
            let _ = serve(&client, server, &journal, &met, &fate);
        });
        Self { address: listener.address, _listener: listener }
    }
}

fn serve(
    client: &TcpStream,
    server: SocketAddr,
    journal: &Journal,
    met: &Met,
    fate: impl Fn(usize) -> Fate,
) -> Result<()> {
    let mut requests = Raw::over(client.try_clone()?);
    while let Some(request) = requests.message(PATIENCE) {
        let key = request.header("Idempotency-Key").map(str::to_owned).or_else(|| id(&request));
        let key = key.unwrap_or_default();
        let fate = if key.is_empty() { Fate::Delivered } else { fate(meet(met, &key)) };
        let mut passage = Passage { key, fate, status: None, is_replay: false };
        if fate == Fate::RequestLost {
            journal.lock().unwrap().push(passage);
            return client.shutdown(Shutdown::Both);
        }
        let mut upstream = TcpStream::connect(server)?;
        upstream.write_all(&request.bytes)?;
        if fate == Fate::CutOff {
            client.shutdown(Shutdown::Both)?;
        }
        let Some(answer) = Raw::over(upstream).message(PATIENCE) else { break };
        passage.status = answer.status();
        passage.is_replay = answer.header("Idempotent-Replayed").is_some();
        journal.lock().unwrap().push(passage);
        match fate {
            Fate::Delivered => { client }.write_all(&answer.bytes)?,
            _ => return client.shutdown(Shutdown::Both),
        }
    }
    Ok(())
}

/// Counts a request with this key, and returns how often the proxy has met the key.
fn meet(met: &Met, key: &str) -> usize {
    let mut met = met.lock().unwrap();
    let times = met.entry(key.to_owned()).or_default();
    *times += 1;
    *times
}

/// The id of a notification, which is its key.
fn id(request: &Message) -> Option<String> {
    request.header("Stripe-Signature")?;
    let body: serde_json::Value = serde_json::from_slice(request.body()).ok()?;
    Some(body["id"].as_str()?.to_owned())
}

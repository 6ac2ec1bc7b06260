//! A receiver of webhooks: a small real server that stores every request, and answers as the test decides.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::listener::Listener;
use super::{Raw, TestApp};

/// How a receiver answers.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// With this status, and with the text `answer`.
    Answer(u16),
    /// 200, after a while.
    Slow(Duration),
    /// 301, to this URL.
    Redirect(String),
    /// It closes the connection without an answer.
    Close,
    /// It never answers, and keeps the connection open.
    Never,
    /// 200, with an endless body.
    Endless,
}

/// A request that was received.
#[derive(Debug, Clone)]
pub struct Received {
    pub at: Instant,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// The server. Dropping it refuses new connections; those that are open may finish.
pub struct Receiver {
    pub address: SocketAddr,
    inside: Arc<Inside>,
    _listener: Listener,
}

struct Inside {
    received: Mutex<Vec<Received>>,
    /// How often each event came.
    times: Mutex<HashMap<String, usize>>,
    /// The answer to an event that came for the nth time, counted from 1.
    behaviour: Mutex<Box<dyn Fn(usize) -> Behaviour + Send>>,
    written: AtomicUsize,
}

impl Receiver {
    pub fn start(behaviour: impl Fn(usize) -> Behaviour + Send + 'static) -> Self {
        let inside = Arc::new(Inside {
            received: Mutex::default(),
            times: Mutex::default(),
            behaviour: Mutex::new(Box::new(behaviour)),
            written: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&inside);
        let listener = Listener::start(move |stream| shared.attend(stream));
        Self { address: listener.address, inside, _listener: listener }
    }

    /// A receiver that takes everything.
    pub fn good() -> Self {
        Self::start(|_| Behaviour::Answer(200))
    }

    /// Answers differently from now on.
    pub fn behave(&self, behaviour: impl Fn(usize) -> Behaviour + Send + 'static) {
        *self.inside.behaviour.lock().unwrap() = Box::new(behaviour);
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Makes an endpoint for events of these types, separated by commas, and returns its id and its secret.
    pub async fn subscribe(&self, app: &TestApp, types: &str) -> (String, String) {
        let types: String = types.split(',').map(|name| format!("&enabled_events[]={name}")).collect();
        let made =
            app.submit("/v1/webhook_endpoints", &format!("url={}{types}", self.url())).await.expect(201);
        (made.id().to_owned(), made.body["secret"].as_str().unwrap().to_owned())
    }

    pub fn received(&self) -> Vec<Received> {
        self.inside.received.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.inside.received.lock().unwrap().len()
    }

    /// The number of bytes of endless answers that could be written.
    pub fn written(&self) -> usize {
        self.inside.written.load(Ordering::SeqCst)
    }
}

impl Inside {
    /// One connection, request after request.
    fn attend(&self, mut stream: TcpStream) {
        stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut requests = Raw::over(stream.try_clone().unwrap());
        while let Some(request) = requests.message(Duration::from_secs(60)) {
            let body = request.body().to_vec();
            let received = Received { at: Instant::now(), headers: request.headers, body };
            let times = {
                let id = received.event_id();
                self.received.lock().unwrap().push(received);
                let mut times = self.times.lock().unwrap();
                *times.entry(id).and_modify(|times| *times += 1).or_insert(1)
            };
            let behaviour = (self.behaviour.lock().unwrap())(times);
            if self.answer(&mut stream, &behaviour).is_none() {
                break;
            }
        }
    }

    /// `None`: the connection is over.
    fn answer(&self, stream: &mut TcpStream, behaviour: &Behaviour) -> Option<()> {
        let mut send = |text: &str| stream.write_all(text.as_bytes()).ok();
        match behaviour {
            Behaviour::Answer(status) => {
                send(&format!("HTTP/1.1 {status} So\r\nContent-Length: 6\r\n\r\nanswer"))
            }
            Behaviour::Slow(time) => {
                std::thread::sleep(*time);
                send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer")
            }
            Behaviour::Redirect(to) => {
                send(&format!("HTTP/1.1 301 So\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"))
            }
            Behaviour::Close => None,
            Behaviour::Never => {
                // Until the other side gives up.
                let _ = stream.read(&mut [0]);
                None
            }
            Behaviour::Endless => {
                send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
                while stream.write_all("\0é".repeat(1000).as_bytes()).is_ok() {
                    self.written.fetch_add(3000, Ordering::SeqCst);
                }
                None
            }
        }
    }
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("what is sent is JSON")
    }

    pub fn event_id(&self) -> String {
        self.json()["id"].as_str().expect("an event has an id").to_owned()
    }

    pub fn signature(&self) -> &str {
        self.header("Stripe-Signature")
    }

    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("headers are text")
    }

    /// The time that was signed.
    pub fn signed_at(&self) -> i64 {
        let time = self.signature().split(',').next().and_then(|part| part.strip_prefix("t="));
        time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("no time: {}", self.signature()))
    }

    /// The signatures of the header, in their order.
    pub fn signatures(&self) -> Vec<&str> {
        let signature =
            |part| str::strip_prefix(part, "v1=").unwrap_or_else(|| panic!("{}", self.signature()));
        self.signature().split(',').skip(1).map(signature).collect()
    }

    /// The expected signature, computed from the documentation and not by the code of the server.
    pub fn signature_of(&self, secret: &str) -> String {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&[format!("{}.", self.signed_at()).as_bytes(), &self.body].concat());
        hex::encode(mac.finalize().into_bytes())
    }

    /// Checks that it is signed with these secrets, in this order, and with no other.
    #[track_caller]
    pub fn assert_signed(&self, secrets: &[&str]) {
        let expected: Vec<String> = secrets.iter().map(|secret| self.signature_of(secret)).collect();
        assert_eq!(self.signatures(), expected);
    }
}

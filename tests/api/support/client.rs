//! Calling the server, as SDKs do and as they do not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

/// A client of HTTP. The library chooses no implementation of TLS for all of its users, so the tests name theirs.
pub fn http() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// A request that is being put together.
pub struct Call {
    request: reqwest::RequestBuilder,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub bytes: Vec<u8>,
    /// The body as JSON, or null.
    pub body: Value,
}

impl Call {
    pub fn new(client: &reqwest::Client, method: Method, url: String, api_key: &str) -> Self {
        let request = client.request(method, url).header("Authorization", format!("Bearer {api_key}"));
        Self { request }
    }

    pub fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    pub fn header(self, name: &str, value: &str) -> Self {
        Self { request: self.request.header(name, value) }
    }

    /// A form, already written: `amount=100&currency=usd`.
    pub fn form(self, body: &str) -> Self {
        let typed = self.header("Content-Type", "application/x-www-form-urlencoded");
        Self { request: typed.request.body(body.to_owned()) }
    }

    pub fn json(self, body: &Value) -> Self {
        Self { request: self.request.json(body) }
    }

    pub fn body(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.header("Content-Type", content_type).bytes(body)
    }

    /// A body of which no header speaks.
    pub fn bytes(self, body: impl Into<Vec<u8>>) -> Self {
        let body: Vec<u8> = body.into();
        Self { request: self.request.body(body) }
    }

    pub async fn send(self) -> Reply {
        self.try_send().await.expect("the server answers")
    }

    /// As `send`, for a server that may be gone.
    pub async fn try_send(self) -> Result<Reply, reqwest::Error> {
        let response = self.request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(Reply { status, headers, bytes, body })
    }
}

impl Reply {
    /// Reads an answer as it came over the wire, with a `Content-Length`.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            (name.parse::<reqwest::header::HeaderName>().unwrap(), value.parse().unwrap())
        });
        Self {
            status: status.unwrap_or_else(|| panic!("no status: {text:?}")),
            headers: headers.collect(),
            bytes: body.as_bytes().to_vec(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are text"))
    }

    pub fn is_replay(&self) -> bool {
        self.header("Idempotent-Replayed") == Some("true")
    }

    /// The id of the object.
    #[track_caller]
    pub fn id(&self) -> &str {
        self.body["id"].as_str().unwrap_or_else(|| panic!("no id in {self:?}"))
    }

    /// The code of the error, or the empty text.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or("")
    }

    /// The parameter of the error, or the empty text.
    pub fn param(&self) -> &str {
        self.body["error"]["param"].as_str().unwrap_or("")
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }

    /// An error of this status and code, with the advice that belongs to it in body and header.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Self {
        let reply = self.expect(status);
        assert_eq!(reply.code(), code, "{}", reply.body);
        assert!(reply.body["error"]["type"].is_string(), "{}", reply.body);
        let retries = reply.header("Stripe-Should-Retry") == Some("true");
        assert_eq!(retries, reply.body["error"]["retry"] == "same_key", "{reply:?}");
        reply
    }
}

/// Sends bytes as they are and reads until the server closes, or for `patience`.
pub fn raw_request(address: SocketAddr, bytes: &[u8], patience: Duration) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(patience)).unwrap();
    stream.write_all(bytes).expect("the server reads");
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a request of which each header is given as bytes, as no client library would, and reads the answer.
/// `Content-Length` is added unless it is given.
#[track_caller]
pub fn raw_call(address: SocketAddr, line: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Reply {
    let mut bytes = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    if !headers.iter().any(|(name, _)| *name == "Content-Length") {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(&[b"\r\n", body].concat());
    Reply::parse(&raw_request(address, &bytes, Duration::from_secs(20)))
}

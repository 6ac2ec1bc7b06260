//! A client of the server, which can also send what no SDK would.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::message::Message;

/// A builder of HTTP clients. The library chooses no implementation of TLS for its users, so the tests name theirs.
pub fn http() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// A request that is being built.
pub struct Call {
    request: reqwest::RequestBuilder,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
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

    /// A body without a `Content-Type`.
    pub fn bytes(self, body: impl Into<Vec<u8>>) -> Self {
        let body: Vec<u8> = body.into();
        Self { request: self.request.body(body) }
    }

    pub async fn send(self) -> Reply {
        self.try_send().await.expect("the server answers")
    }

    /// Like `send`, for a server that may be gone.
    pub async fn try_send(self) -> Result<Reply, reqwest::Error> {
        let response = self.request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        Ok(Reply::new(status, headers, bytes))
    }
}

impl From<Message> for Reply {
    #[track_caller]
    fn from(message: Message) -> Self {
        let status = message.status().unwrap_or_else(|| panic!("no status: {}", message.first_line));
        let bytes = message.body().to_vec();
        Self::new(status, message.headers, bytes)
    }
}

impl Reply {
    fn new(status: u16, headers: HeaderMap, bytes: Vec<u8>) -> Self {
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Self { status, headers, bytes, body }
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

    /// Checks that the answer is the JSON error of the contract with this status.
    #[track_caller]
    pub fn expect_any_error(self, status: u16) -> Self {
        let reply = self.expect(status);
        let error = &reply.body["error"];
        assert!(error["type"].is_string() && error["message"].is_string(), "{reply:?}");
        assert!(reply.header("Request-Id").is_some(), "{reply:?}");
        reply
    }

    /// Checks that the answer is an error of this status and code, and that body and header give the same advice.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Self {
        let reply = self.expect_any_error(status);
        assert_eq!(reply.code(), code, "{}", reply.body);
        let retries = reply.header("Stripe-Should-Retry") == Some("true");
        assert_eq!(retries, reply.body["error"]["retry"] == "same_key", "{reply:?}");
        reply
    }
}

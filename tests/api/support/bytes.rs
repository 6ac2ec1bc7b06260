//! Requests as bytes, valid but for the parts that a test spoils.

use super::{CHARGE, Raw, Reply, TestApp, TestDatabase, fresh_key};

pub const FORM: &str = "application/x-www-form-urlencoded";

/// A request as bytes, complete and valid but for the parts that the test spoils.
#[derive(Clone)]
pub struct Bytes {
    method: String,
    target: Vec<u8>,
    headers: Vec<Vec<u8>>,
    pub body: Vec<u8>,
}

impl Bytes {
    /// A request with nothing but a host.
    pub fn new(method: &str, target: impl AsRef<[u8]>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.as_ref().to_vec(),
            headers: vec![b"Host: x".to_vec()],
            body: Vec::new(),
        }
    }

    pub fn get(app: &TestApp, target: impl AsRef<[u8]>) -> Self {
        Self::new("GET", target).bearer(&app.database.api_key)
    }

    /// A charge, with a key of its own.
    pub fn post(app: &TestApp, media_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::post_as(&app.database.api_key, media_type, body)
    }

    pub fn post_as(api_key: &str, media_type: &str, body: impl AsRef<[u8]>) -> Self {
        let request = Self::new("POST", "/v1/charges").bearer(api_key).key(fresh_key());
        request.header(format!("Content-Type: {media_type}")).body(body)
    }

    /// With this API key.
    pub fn bearer(self, api_key: &str) -> Self {
        self.header(format!("Authorization: Bearer {api_key}"))
    }

    /// With this idempotency key, and with no other.
    pub fn key(self, key: impl AsRef<[u8]>) -> Self {
        self.without("Idempotency-Key").header([b"Idempotency-Key: ", key.as_ref()].concat())
    }

    /// With this body, and its length.
    pub fn body(self, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        Self { body: body.to_vec(), ..self.header(format!("Content-Length: {}", body.len())) }
    }

    pub fn header(mut self, line: impl Into<Vec<u8>>) -> Self {
        self.headers.push(line.into());
        self
    }

    /// Without the header of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|line| !line.starts_with(name.as_bytes()));
        self
    }

    pub fn method(self, method: &str) -> Self {
        Self { method: method.to_owned(), ..self }
    }

    pub fn target(self, target: impl AsRef<[u8]>) -> Self {
        Self { target: target.as_ref().to_vec(), ..self }
    }

    pub fn write(&self) -> Vec<u8> {
        self.write_as("HTTP/1.1")
    }

    pub fn write_as(&self, version: &str) -> Vec<u8> {
        let first = [self.method.as_bytes(), b" ", &self.target, b" ", version.as_bytes(), b"\r\n"].concat();
        let headers = self.headers.iter().flat_map(|line| [line.as_slice(), b"\r\n"].concat());
        first.into_iter().chain(headers).chain(*b"\r\n").chain(self.body.iter().copied()).collect()
    }

    #[track_caller]
    pub fn send(&self, app: &TestApp) -> Option<Reply> {
        let mut connection = Raw::connect(app.address);
        connection.send(&self.write());
        let reply = connection.answer_to(&self.method)?;
        connection.expect_end();
        Some(reply)
    }

    /// Checks that the answer is the JSON error with this status.
    #[track_caller]
    pub fn is_refused(&self, app: &TestApp, status: u16) -> Reply {
        let shown: String = String::from_utf8_lossy(&self.write()).chars().take(600).collect();
        let reply = self.send(app).unwrap_or_else(|| panic!("no answer to {shown}"));
        assert_eq!(reply.status, status, "{shown}\n\n{reply:?}");
        reply.expect_any_error(status)
    }

    /// Checks that HTTP itself refuses this, with an error of any form or by closing.
    #[track_caller]
    pub fn is_refused_by_http(&self, app: &TestApp) {
        if let Some(reply) = self.send(app) {
            assert!((400..500).contains(&reply.status) || reply.status == 505, "{reply:?}");
        }
    }
}

/// The number of rows in the database, so that a test can check that nothing was written.
pub struct Unchanged<'a> {
    app: &'a TestApp,
    before: Vec<i64>,
}

impl<'a> Unchanged<'a> {
    pub fn watch(app: &'a TestApp) -> Self {
        Self { app, before: rows(&app.database) }
    }

    /// Checks that nothing was written since, and that the server still serves.
    #[track_caller]
    pub fn check(self) {
        assert_eq!(rows(&self.app.database), self.before, "something was written");
        let reply = Bytes::post(self.app, FORM, CHARGE).send(self.app).expect("the server goes on");
        assert_eq!(reply.status, 201, "{}", reply.body);
    }
}

fn rows(database: &TestDatabase) -> Vec<i64> {
    let tables = [
        "charges",
        "refunds",
        "customers",
        "tokens",
        "payment_methods",
        "balance_transactions",
        "events",
        "idempotency_records",
    ];
    tables.iter().map(|table| database.count(table)).collect()
}

//! Requests as bytes, in order but for what a test spoils.

use super::{Raw, RawReply, TestApp, TestDatabase, fresh_key};

pub const FORM: &str = "application/x-www-form-urlencoded";

/// A charge that is right, as a form.
pub const CHARGE: &[u8] = b"amount=1000&currency=usd&source=tok_visa";

/// A request as bytes, complete and in order but for what the test spoils.
pub struct Bytes {
    pub method: &'static str,
    pub target: Vec<u8>,
    pub headers: Vec<Vec<u8>>,
    pub body: Vec<u8>,
}

impl Bytes {
    pub fn get(app: &TestApp, target: &[u8]) -> Self {
        let authorization = format!("Authorization: Bearer {}", app.database.api_key);
        Self {
            method: "GET",
            target: target.to_vec(),
            headers: vec![b"Host: x".to_vec(), authorization.into_bytes()],
            body: Vec::new(),
        }
    }

    pub fn post(app: &TestApp, media_type: &str, body: &[u8]) -> Self {
        let request = Self { method: "POST", body: body.to_vec(), ..Self::get(app, b"/v1/charges") };
        request
            .header(format!("Idempotency-Key: {}", fresh_key()))
            .header(format!("Content-Type: {media_type}"))
            .header(format!("Content-Length: {}", body.len()))
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

    pub fn method(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    pub fn target(self, target: &[u8]) -> Self {
        Self { target: target.to_vec(), ..self }
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
    pub fn send(&self, app: &TestApp) -> Option<RawReply> {
        let mut connection = Raw::connect(app.address);
        connection.send(&self.write());
        connection.answer_to(self.method)
    }

    /// Fails unless the answer is the JSON error with this status.
    #[track_caller]
    pub fn is_refused(&self, app: &TestApp, status: u16) -> RawReply {
        let shown: String = String::from_utf8_lossy(&self.write()).chars().take(600).collect();
        let reply = self.send(app).unwrap_or_else(|| panic!("no answer to {shown}"));
        assert_eq!(reply.status, status, "{shown}\n\n{} {}", reply.head, reply.body);
        reply.expect_error(status)
    }

    /// Fails unless HTTP itself refuses this: with an error of any form, or by closing.
    #[track_caller]
    pub fn is_refused_by_http(&self, app: &TestApp) {
        if let Some(reply) = self.send(app) {
            assert!(
                (400..500).contains(&reply.status) || reply.status == 505,
                "{} {}",
                reply.head,
                reply.body
            );
        }
    }
}

/// What the database holds, so that a test can see that nothing was written.
pub struct Unchanged<'a> {
    app: &'a TestApp,
    before: Vec<i64>,
}

impl<'a> Unchanged<'a> {
    pub fn watch(app: &'a TestApp) -> Self {
        Self { app, before: rows(&app.database) }
    }

    /// Fails if anything was written since, or the server serves no more.
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

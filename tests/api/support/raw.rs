//! HTTP as bytes on a socket, for requests that no client library would send.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to a server.
pub struct Raw {
    stream: TcpStream,
    /// What was received and not yet read as an answer.
    received: Vec<u8>,
}

/// An answer, read to the end that its own head announces.
#[derive(Debug)]
pub struct RawReply {
    pub status: u16,
    pub head: String,
    pub bytes: Vec<u8>,
    /// The body as JSON, or null.
    pub body: Value,
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).unwrap();
        Self { stream, received: Vec::new() }
    }

    /// Another handle on the same connection, for a thread that only sends.
    pub fn sender(&self) -> TcpStream {
        self.stream.try_clone().expect("a socket can be shared")
    }

    /// Sends. That the server no longer reads is no error here: what it answered is what counts.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Says that nothing more will be sent, and goes on to read.
    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection stands");
    }

    /// The next answer; `None` if the server closes without one. Answers in between (`100 Continue`) count too.
    #[track_caller]
    pub fn answer(&mut self) -> Option<RawReply> {
        self.answer_to("GET")
    }

    /// As [`Raw::answer`], to a request of this method: after `HEAD` comes no body, whatever the head says.
    #[track_caller]
    pub fn answer_to(&mut self, method: &str) -> Option<RawReply> {
        let deadline = Instant::now() + PATIENCE;
        let head_end = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.receive(deadline) {
                assert!(self.received.is_empty(), "half a head: {}", String::from_utf8_lossy(&self.received));
                return None;
            }
        };
        let head = String::from_utf8_lossy(&self.received[..head_end]).into_owned();
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let status: u16 = status.unwrap_or_else(|| panic!("no status in {head}"));
        let announced = header(&head, "content-length").map_or(0, |length| length.parse().expect("a length"));
        let length = if method == "HEAD" || status < 200 { 0 } else { announced };
        while self.received.len() < head_end + length {
            assert!(self.receive(deadline), "the body of the answer broke off: {head}");
        }
        let bytes = self.received[head_end..head_end + length].to_vec();
        self.received.drain(..head_end + length);
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Some(RawReply { status, head, bytes, body })
    }

    /// Waits until the server has closed, and says how long that took; `None` if it did not within `patience`.
    pub fn closed_within(&mut self, patience: Duration) -> Option<Duration> {
        let begun = Instant::now();
        while self.receive(begun + patience) {}
        let elapsed = begun.elapsed();
        (elapsed < patience).then_some(elapsed)
    }

    /// Receives something before the deadline; a closed or reset connection gives nothing.
    fn receive(&mut self, deadline: Instant) -> bool {
        let Some(time_left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        else {
            return false;
        };
        self.stream.set_read_timeout(Some(time_left)).unwrap();
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(read @ 1..) => {
                self.received.extend_from_slice(&buffer[..read]);
                true
            }
            _ => false,
        }
    }
}

impl RawReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// Fails unless this is the JSON error of the contract, with this status.
    #[track_caller]
    pub fn expect_error(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {}", self.head, String::from_utf8_lossy(&self.bytes));
        let error = &self.body["error"];
        assert!(error["type"].is_string() && error["message"].is_string(), "{} {}", self.head, self.body);
        assert!(self.header("request-id").is_some(), "{}", self.head);
        self
    }
}

/// The value of a header in a head.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

//! HTTP as bytes on a socket: for requests that no client library would send, and for the servers that tests play.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::client::Reply;
use super::message::Message;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// One side of a connection.
pub struct Raw {
    stream: TcpStream,
    /// What was received and not yet read as a message.
    received: Vec<u8>,
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    pub fn over(stream: TcpStream) -> Self {
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

    /// Sends, and returns the next answer.
    #[track_caller]
    pub fn ask(&mut self, bytes: &[u8]) -> Option<Reply> {
        self.send(bytes);
        self.answer()
    }

    /// The next answer; `None` if the server closes without one. Answers in between (`100 Continue`) count too.
    #[track_caller]
    pub fn answer(&mut self) -> Option<Reply> {
        self.answer_to("GET")
    }

    /// As [`Raw::answer`], to a request of this method: after `HEAD` comes no body, whatever the head says.
    #[track_caller]
    pub fn answer_to(&mut self, method: &str) -> Option<Reply> {
        let take = if method == "HEAD" { Message::take_head } else { Message::take };
        let message = self.next(take, PATIENCE);
        let rest = String::from_utf8_lossy(&self.received);
        assert!(message.is_some() || rest.is_empty(), "the answer broke off: {rest}");
        message.map(Reply::from)
    }

    /// The next message of the other side; `None` if it does not come whole within `patience`.
    pub fn message(&mut self, patience: Duration) -> Option<Message> {
        self.next(Message::take, patience)
    }

    fn next(
        &mut self,
        take: impl Fn(&mut Vec<u8>) -> Option<Message>,
        patience: Duration,
    ) -> Option<Message> {
        let deadline = Instant::now() + patience;
        loop {
            let message = take(&mut self.received);
            if message.is_some() || !self.receive(deadline) {
                return message;
            }
        }
    }

    /// Waits until the server has closed, and says how long that took; `None` if it did not within `patience`.
    pub fn closed_within(&mut self, patience: Duration) -> Option<Duration> {
        let begun = Instant::now();
        while self.receive(begun + patience) {}
        let elapsed = begun.elapsed();
        (elapsed < patience).then_some(elapsed)
    }

    /// Fails if anything comes after the answers that were read, now that nothing more is asked.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let deadline = Instant::now() + Duration::from_secs(1);
        while self.receive(deadline) {}
        assert!(self.received.is_empty(), "after the answer: {}", String::from_utf8_lossy(&self.received));
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

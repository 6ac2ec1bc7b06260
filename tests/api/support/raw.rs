//! HTTP as bytes on a socket, for requests that no client library would send, and for servers that a test plays.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::client::Reply;
use super::message::Message;

/// How long a test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// One side of a connection.
pub struct Raw {
    stream: TcpStream,
    /// Bytes that were received and not yet read as a message.
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

    /// Sends bytes. It is no error if the server no longer reads, because only its answer counts.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Closes the sending side, and goes on to read.
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

    /// Like [`Raw::answer`], for a request of this method: `HEAD` gets no body, whatever the head says.
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

    /// Waits until the server has closed, and returns how long that took; `None` if it did not within `patience`.
    pub fn closed_within(&mut self, patience: Duration) -> Option<Duration> {
        let begun = Instant::now();
        while self.receive(begun + patience) {}
        let elapsed = begun.elapsed();
        (elapsed < patience).then_some(elapsed)
    }

    /// Checks that nothing follows the answers that were read.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let deadline = Instant::now() + Duration::from_secs(1);
        while self.receive(deadline) {}
        assert!(self.received.is_empty(), "after the answer: {}", String::from_utf8_lossy(&self.received));
    }

    /// Receives bytes before the deadline. Returns false at the deadline and for a closed or reset connection.
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

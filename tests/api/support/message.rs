//! A message of HTTP/1.1 as bytes.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// A request or an answer. A body needs a `Content-Length`.
pub struct Message {
    /// The request line or the status line.
    pub first_line: String,
    pub headers: HeaderMap,
    /// Head and body.
    pub bytes: Vec<u8>,
    head_length: usize,
}

impl Message {
    /// Takes the first message off the bytes that have arrived, as soon as it is complete.
    pub fn take(arrived: &mut Vec<u8>) -> Option<Self> {
        let message = Self::head_of(arrived)?;
        let length = message.header("Content-Length").map_or(0, |length| length.parse().expect("a length"));
        let end = message.head_length + length;
        (arrived.len() >= end).then(|| Self { bytes: arrived.drain(..end).collect(), ..message })
    }

    /// Like [`Message::take`], but without a body, whatever the head says.
    pub fn take_head(arrived: &mut Vec<u8>) -> Option<Self> {
        let message = Self::head_of(arrived)?;
        arrived.drain(..message.head_length);
        Some(message)
    }

    fn head_of(arrived: &[u8]) -> Option<Self> {
        let head_length = arrived.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let mut lines = arrived[..head_length].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let first_line = String::from_utf8_lossy(lines.next()?).into_owned();
        let headers = lines.filter(|line| !line.is_empty()).map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').expect("a header has a colon");
            let name = HeaderName::from_bytes(&line[..colon]).expect("a header has a name");
            (name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).expect("a header has a value"))
        });
        Some(Self {
            first_line,
            headers: headers.collect(),
            bytes: arrived[..head_length].to_vec(),
            head_length,
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are text"))
    }

    pub fn body(&self) -> &[u8] {
        &self.bytes[self.head_length..]
    }

    /// The status of an answer.
    pub fn status(&self) -> Option<u16> {
        self.first_line.split(' ').nth(1)?.parse().ok()
    }
}

//! The header `Idempotency-Key`.
//!
//! In the IETF draft `idempotency-key-header` the value is a structured-field string (RFC 9651): `"abc"`. Stripe's SDKs
//! send it without quotes: `abc`. Both are the same key here.

use std::fmt;

/// The header's name.
pub const HEADER: &str = "Idempotency-Key";

/// The longest key, in characters.
pub const MAX_CHARACTERS: usize = 255;

/// How many characters of a key stand in the log.
const SHOWN_CHARACTERS: usize = 10;

/// A key: 1–255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(String);

/// Why a value is not a key; the text completes a sentence that begins with the name of the header or parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {MAX_CHARACTERS} characters")]
    TooLong,
    #[error("has a space, a control character or one that is not ASCII")]
    Character,
    #[error("was sent more than once")]
    Repeated,
    #[error("has a quote that is not closed, or that closes too early")]
    Quote,
    #[error("has parameters, which a key cannot have")]
    Parameters,
}

impl Key {
    /// Reads the key of a request, if it has one, from all values of the header.
    pub fn of<'a>(mut headers: impl Iterator<Item = &'a [u8]>) -> Result<Option<Self>, KeyError> {
        let Some(value) = headers.next() else { return Ok(None) };
        if headers.next().is_some() {
            return Err(KeyError::Repeated);
        }
        Self::parse(value).map(Some)
    }

    /// Reads a key with or without quotes. HTTP has already removed the white space around it.
    pub fn parse(value: &[u8]) -> Result<Self, KeyError> {
        match value {
            [b'"', rest @ ..] => Self::exactly(unquoted(rest)?),
            bare => Self::exactly(bare.to_vec()),
        }
    }

    /// Makes a key of exactly these characters; a quote is an ordinary character here.
    pub fn exactly(text: Vec<u8>) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if !text.iter().all(u8::is_ascii_graphic) {
            return Err(KeyError::Character);
        }
        if text.len() > MAX_CHARACTERS {
            return Err(KeyError::TooLong);
        }
        Ok(Self(String::from_utf8(text).expect("visible ASCII")))
    }

    /// The beginning of the key, for a log: enough to find it by, and too short to be a card number that somebody took for
    /// a key.
    pub fn shortened(&self) -> String {
        match self.0.char_indices().nth(SHOWN_CHARACTERS) {
            None => self.0.clone(),
            Some((end, _)) => format!("{}…", &self.0[..end]),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads the rest of a structured-field string after its opening quote; `\"` and `\\` are the only escapes.
fn unquoted(value: &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut text = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    loop {
        match bytes.next() {
            None => return Err(KeyError::Quote),
            Some(b'"') => break,
            Some(b'\\') => match bytes.next() {
                Some(escaped @ (b'"' | b'\\')) => text.push(*escaped),
                _ => return Err(KeyError::Quote),
            },
            Some(byte) => text.push(*byte),
        }
    }
    match bytes.as_slice() {
        [] => Ok(text),
        [b';', ..] => Err(KeyError::Parameters),
        _ => Err(KeyError::Quote),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bare_key_and_its_quoted_form_are_the_same() {
        let bare = Key::parse(b"abc").unwrap();
        assert_eq!(Key::parse(br#""abc""#), Ok(bare));
        assert_eq!(Key::parse(br#""a\"b\\c""#).unwrap().as_str(), r#"a"b\c"#);
        assert_eq!(Key::parse(br#"a"b"#).unwrap().as_str(), r#"a"b"#);
    }

    #[test]
    fn what_is_no_key_is_refused_by_its_reason() {
        let long = vec![b'k'; 256];
        let cases: [(&[u8], KeyError); 14] = [
            (b"", KeyError::Empty),
            (br#""""#, KeyError::Empty),
            (&long, KeyError::TooLong),
            (b"a b", KeyError::Character),
            (b"a\tb", KeyError::Character),
            (b"a\x7f", KeyError::Character),
            ("clé".as_bytes(), KeyError::Character),
            (b"\xff\xfe", KeyError::Character),
            (br#""a b""#, KeyError::Character),
            (br#""abc"#, KeyError::Quote),
            (br#"""#, KeyError::Quote),
            (br#""a\nb""#, KeyError::Quote),
            (br#""abc"d"#, KeyError::Quote),
            (br#""abc";p=1"#, KeyError::Parameters),
        ];
        for (value, expected) in cases {
            assert_eq!(Key::parse(value), Err(expected), "{:?}", String::from_utf8_lossy(value));
        }
        assert!(Key::parse(&long[..255]).is_ok());
    }

    proptest! {
        #[test]
        fn every_visible_key_survives_quoting(text in "[!-~]{1,255}") {
            let quoted = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            let expected = Key(text.clone());
            prop_assert_eq!(Key::parse(quoted.as_bytes()), Ok(expected.clone()));
            if !text.starts_with('"') {
                prop_assert_eq!(Key::parse(text.as_bytes()), Ok(expected));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = Key::parse(&bytes) {
                prop_assert!((1..=255).contains(&key.as_str().len()));
            }
        }
    }
}

//! Parses JSON strictly.

use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::error::{Error, quoted};

/// Parses JSON more strictly than RFC 8259: repeated members, NUL and more than 128 levels are refused.
///
/// # Errors
/// [`Error::Malformed`] with the line and column.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(Map::new()));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    Strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| Error::Malformed(format!("The body is not valid JSON: {error}.")))
}

/// Reads any JSON value, and refuses members that two parsers could read differently.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        if text.contains('\0') {
            return Err(E::custom("text must not contain NUL"));
        }
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if name.contains('\0') {
                return Err(de::Error::custom("text must not contain NUL"));
            }
            let value = map.next_value_seed(Strict)?;
            if members.insert(name.clone(), value).is_some() {
                return Err(de::Error::custom(format!("the member {:?} is repeated", quoted(&name))));
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_and_an_empty_body_is_an_empty_object() {
        assert_eq!(
            parse(br#"{"a":[1,-2,1.5,"x",true,null,{}]}"#).unwrap(),
            json!({"a": [1, -2, 1.5, "x", true, null, {}]})
        );
        assert_eq!(parse(b" \n").unwrap(), json!({}));
    }

    #[test]
    fn broken_json_is_refused() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for text in [
            "{",
            "{]",
            "{\"a\":}",
            "{} x",
            "nul",
            "{\"a\":1,\"a\":1}",
            "{\"a\":{\"b\":1,\"b\":2}}",
            "{\"a\":\"\\u0000\"}",
            "{\"\\u0000\":1}",
            "{\"a\":1e999}",
            "{'a':1}",
            "{\"a\":\"\\ud800\"}",
            "\u{feff}{}",
            &deep,
        ] {
            assert!(matches!(parse(text.as_bytes()), Err(Error::Malformed(_))), "{:.40}", text);
        }
        assert!(matches!(parse(b"{\"a\":\"\xff\"}"), Err(Error::Malformed(_))));
    }

    proptest! {
        #[test]
        fn what_serde_json_reads_is_read_alike(text in r#"\{"a":(-?[0-9]{1,18}|"[a-z ]{0,9}"|\[true,null\]|\{"b":[0-9]\})\}"#) {
            prop_assert_eq!(parse(text.as_bytes()).ok(), serde_json::from_str::<Value>(&text).ok());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = crate::wire::form::pairs(&bytes).and_then(crate::wire::form::tree);
        }
    }
}

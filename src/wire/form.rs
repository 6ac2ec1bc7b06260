//! `application/x-www-form-urlencoded` with Stripe's brackets: `card[exp_month]=12`, `expand[0]=customer`,
//! `expand[]=customer`.
//!
//! Invalid UTF-8, NUL and repeated members are refused. A form cannot distinguish an array from an object with numbered
//! members, so the tree has objects only. The reader of a list takes the numbers as the order of its items (see
//! [`super::params`]).

use percent_encoding::percent_decode;
use serde_json::{Map, Value};

use crate::error::Error;

/// The deepest nesting of brackets. No parameter needs more than four.
const MAX_DEPTH: usize = 16;

/// Decodes the name–value pairs of a form or a query.
///
/// # Errors
/// [`Error::Malformed`] for a broken escape, invalid UTF-8 or NUL.
pub fn pairs(bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let parts = bytes.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = match part.iter().position(|byte| *byte == b'=') {
                Some(at) => (&part[..at], &part[at + 1..]),
                None => (part, [].as_slice()),
            };
            Ok((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// Builds the tree that the names of the pairs describe.
///
/// # Errors
/// [`Error::Malformed`] for brackets that do not match, a repeated member, or too deep nesting.
pub fn tree(pairs: Vec<(String, String)>) -> Result<Value, Error> {
    let mut root = Map::new();
    for (name, value) in pairs {
        let path = path(&name)?;
        insert(&mut root, &path, value, &name)?;
    }
    Ok(Value::Object(root))
}

fn decoded(bytes: &[u8]) -> Result<String, Error> {
    let broken = |why: &str| Error::Malformed(format!("The form is not valid: {why}."));
    let spaced: Vec<u8> = bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let escapes = spaced.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    for (at, _) in escapes {
        if !spaced.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(broken("a % is not followed by two hex digits"));
        }
    }
    let text = percent_decode(&spaced).decode_utf8().map_err(|_| broken("it is not UTF-8"))?;
    if text.contains('\0') {
        return Err(broken("text must not contain NUL"));
    }
    Ok(text.into_owned())
}

/// Splits a name into its parts: `a[b][]` is `a`, `b` and the empty part.
fn path(name: &str) -> Result<Vec<&str>, Error> {
    let broken =
        || Error::Malformed(format!("The form is not valid: the name {:?}.", crate::error::quoted(name)));
    let (first, brackets) = name.split_at(name.find('[').unwrap_or(name.len()));
    if first.is_empty() || first.contains(']') {
        return Err(broken());
    }
    let mut path = vec![first];
    let mut rest = brackets;
    while !rest.is_empty() {
        let (part, after) =
            rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(broken)?;
        if part.contains('[') || path.len() == MAX_DEPTH {
            return Err(broken());
        }
        path.push(part);
        rest = after;
    }
    Ok(path)
}

fn insert(members: &mut Map<String, Value>, path: &[&str], value: String, name: &str) -> Result<(), Error> {
    let repeated =
        || Error::Malformed(format!("The form is not valid: {:?} is repeated.", crate::error::quoted(name)));
    let key = match path {
        ["", rest @ ..] => next_number(members, rest.first()),
        [key, ..] => (*key).to_owned(),
        [] => unreachable!("the recursion ends at the last part of a path"),
    };
    if path.len() == 1 {
        return match members.insert(key, Value::String(value)) {
            None => Ok(()),
            Some(_) => Err(repeated()),
        };
    }
    match members.entry(key).or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(inner) => insert(inner, &path[1..], value, name),
        _ => Err(repeated()),
    }
}

/// The number that `[]` stands for.
///
/// It is the next number, or the last one again if its object does not yet have the member that follows, as in
/// `items[][id]=1&items[][count]=2`.
fn next_number(members: &Map<String, Value>, member: Option<&&str>) -> String {
    let last = members.len().checked_sub(1).map(|number| number.to_string());
    match (member, last) {
        (Some(member), Some(last))
            if !member.is_empty()
                && members.get(&last).is_some_and(|item| item.is_object() && item.get(member).is_none()) =>
        {
            last
        }
        _ => members.len().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, Error> {
        tree(pairs(text.as_bytes())?)
    }

    #[test]
    fn brackets_are_a_tree() {
        assert_eq!(read("").unwrap(), json!({}));
        assert_eq!(
            read("amount=100&card[number]=42&card[exp_month]=1&metadata[a b]=x+y%26").unwrap(),
            json!({"amount": "100", "card": {"number": "42", "exp_month": "1"}, "metadata": {"a b": "x y&"}})
        );
        assert_eq!(read("a%5Bb%5D=1&c").unwrap(), json!({"a": {"b": "1"}, "c": ""}));
    }

    #[test]
    fn empty_brackets_are_numbered_brackets() {
        assert_eq!(read("expand[]=a&expand[]=b").unwrap(), read("expand[0]=a&expand[1]=b").unwrap());
        assert_eq!(
            read("items[][id]=1&items[][n]=2&items[][id]=3").unwrap(),
            read("items[0][id]=1&items[0][n]=2&items[1][id]=3").unwrap()
        );
        assert_eq!(read("a[][]=1&a[][]=2").unwrap(), json!({"a": {"0": {"0": "1"}, "1": {"0": "2"}}}));
    }

    #[test]
    fn broken_forms_are_refused() {
        let deep = format!("a{}=1", "[b]".repeat(10_000));
        for text in [
            "a=1&a=2",
            "a[b]=1&a[b]=2",
            "a=1&a[b]=2",
            "a[b]=1&a=2",
            "a[=1",
            "a]=1",
            "a[b=1",
            "a[b]c=1",
            "[a]=1",
            "=1",
            "a[b[c]]=1",
            "a=%",
            "a=%4",
            "a=%zz",
            "a=%ff",
            "a=%00",
            "%00=1",
            &deep,
        ] {
            assert!(matches!(read(text), Err(Error::Malformed(_))), "{text:.40}");
        }
        assert!(pairs(b"a=\xff").is_err());
    }

    /// Writes a tree as SDKs do.
    fn write(value: &Value, name: &str, out: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    let encoded =
                        percent_encoding::utf8_percent_encode(member, percent_encoding::NON_ALPHANUMERIC);
                    let name =
                        if name.is_empty() { encoded.to_string() } else { format!("{name}[{encoded}]") };
                    write(value, &name, out);
                }
            }
            Value::String(text) => {
                let encoded = percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC);
                out.push(format!("{name}={encoded}"));
            }
            _ => unreachable!("forms have objects and text only"),
        }
    }

    fn trees() -> impl Strategy<Value = Value> {
        let leaf = "[^\0]{0,8}".prop_map(Value::String);
        let inner = leaf.prop_recursive(4, 24, 4, |inner| {
            prop::collection::btree_map("[^\0\\[\\]]{1,6}", inner, 1..4)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
        });
        prop::collection::btree_map("[^\0\\[\\]]{1,6}", inner, 0..5)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_tree_survives_encoding_and_decoding(tree in trees()) {
            let mut parts = Vec::new();
            write(&tree, "", &mut parts);
            prop_assert_eq!(read(&parts.join("&")).unwrap(), tree);
        }
    }
}

//! Reads the parameter `metadata`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::params::{FromParameter, Parameter, Params, Update};
use crate::error::{Error, quoted};
use crate::types::{Metadata, MetadataPatch};

impl Params {
    /// Reads metadata to merge with those of an object.
    ///
    /// # Errors
    /// The parameter is not an object of texts, integers and booleans.
    pub fn metadata(&mut self) -> Result<MetadataPatch, Error> {
        Ok(match self.update("metadata")? {
            Update::Keep => MetadataPatch::Keep,
            Update::Unset => MetadataPatch::Clear,
            Update::Set(Pairs(pairs)) => MetadataPatch::Merge(pairs),
        })
    }

    /// Reads the metadata of a new object.
    ///
    /// # Errors
    /// The parameter is not an object of texts, integers and booleans, or is beyond the limits of [`Metadata`].
    pub fn new_metadata(&mut self) -> Result<Metadata, Error> {
        patch_metadata(&Metadata::default(), &self.metadata()?)
    }
}

/// Applies a change of metadata.
///
/// # Errors
/// The result is beyond the limits of [`Metadata`].
pub fn patch_metadata(metadata: &Metadata, patch: &MetadataPatch) -> Result<Metadata, Error> {
    metadata.patched(patch).map_err(|error| Error::invalid("metadata", format!("Invalid metadata: {error}.")))
}

/// The new value of each key; `None` removes the key.
struct Pairs(BTreeMap<String, Option<String>>);

impl FromParameter for Pairs {
    fn from_parameter(Parameter { name, value, is_json }: Parameter) -> Result<Self, Error> {
        let Value::Object(members) = value else {
            return Err(Error::invalid(&name, format!("Invalid object: {name}")));
        };
        let read = |(key, value): (String, Value)| {
            let text = match value {
                Value::Null => None,
                Value::String(text) => Some(text),
                Value::Bool(value) if is_json => Some(value.to_string()),
                Value::Number(number) if is_json && !number.is_f64() => Some(number.to_string()),
                _ => {
                    return Err(Error::invalid(
                        &format!("{name}[{}]", quoted(&key)),
                        "Metadata values must be text, integers or booleans.",
                    ));
                }
            };
            Ok((key, text))
        };
        members.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::params::tests::{form, json};

    #[test]
    fn metadata_are_texts() {
        let mut params = json(json!({"metadata": {"a": 1, "b": true, "c": "x", "d": null}}));
        let metadata = params.new_metadata().unwrap();
        assert_eq!(serde_json::to_value(metadata).unwrap(), json!({"a": "1", "b": "true", "c": "x"}));
        assert_eq!(form("metadata=").metadata().unwrap(), MetadataPatch::Clear);
        assert_eq!(form("").metadata().unwrap(), MetadataPatch::Keep);
        for wrong in [json!({"a": 1.5}), json!({"a": []}), json!({"a": {"b": "c"}}), json!([]), json!(1)] {
            assert!(json(json!({"metadata": wrong})).metadata().is_err());
        }
    }
}

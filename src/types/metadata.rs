//! Metadata: the caller's own key–value pairs on an object.
//!
//! Stripe's limits: 50 keys, 40 characters for a key, 500 characters for a value, and no square brackets in a key.

use std::collections::BTreeMap;

use diesel::deserialize::FromSqlRow;
use diesel::expression::AsExpression;
use diesel::sql_types::Jsonb;
use serde::{Deserialize, Serialize};

use super::column::jsonb_column;

/// The most keys an object may have.
pub const MAX_KEYS: usize = 50;
/// The most characters a key may have.
pub const MAX_KEY_CHARACTERS: usize = 40;
/// The most characters a value may have.
pub const MAX_VALUE_CHARACTERS: usize = 500;

/// The metadata of an object, within the limits and without empty values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
#[serde(transparent)]
pub struct Metadata(BTreeMap<String, String>);

/// Why metadata was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    #[error("can have up to {MAX_KEYS} keys, but {0} would be stored")]
    TooManyKeys(usize),
    #[error("keys can have up to {MAX_KEY_CHARACTERS} characters; '{0}' has more")]
    KeyTooLong(String),
    #[error("keys cannot be empty or contain square brackets")]
    KeyForbidden,
    #[error("values can have up to {MAX_VALUE_CHARACTERS} characters; the value of '{0}' has more")]
    ValueTooLong(String),
}

/// A change of an object's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MetadataPatch {
    #[default]
    Keep,
    Clear,
    /// Changes these keys; `None` removes a key.
    Merge(BTreeMap<String, Option<String>>),
}

impl Metadata {
    /// The metadata after `patch`.
    ///
    /// # Errors
    /// A key or value is too long, or there would be too many keys.
    pub fn patched(&self, patch: &MetadataPatch) -> Result<Self, MetadataError> {
        let changes = match patch {
            MetadataPatch::Keep => return Ok(self.clone()),
            MetadataPatch::Clear => return Ok(Self::default()),
            MetadataPatch::Merge(changes) => changes,
        };
        let mut pairs = self.0.clone();
        for (key, value) in changes {
            if key.is_empty() || key.contains(['[', ']']) {
                return Err(MetadataError::KeyForbidden);
            }
            if key.chars().count() > MAX_KEY_CHARACTERS {
                return Err(MetadataError::KeyTooLong(key.chars().take(MAX_KEY_CHARACTERS).collect()));
            }
            match value.as_deref() {
                None | Some("") => pairs.remove(key),
                Some(text) if text.chars().count() > MAX_VALUE_CHARACTERS => {
                    return Err(MetadataError::ValueTooLong(key.clone()));
                }
                Some(text) => pairs.insert(key.clone(), text.to_owned()),
            };
        }
        if pairs.len() > MAX_KEYS {
            return Err(MetadataError::TooManyKeys(pairs.len()));
        }
        Ok(Self(pairs))
    }
}

jsonb_column!(Metadata);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merge(pairs: &[(&str, Option<&str>)]) -> MetadataPatch {
        MetadataPatch::Merge(
            pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect(),
        )
    }

    #[test]
    fn a_patch_merges_by_key_and_an_empty_value_unsets() {
        let start = Metadata::default().patched(&merge(&[("a", Some("1")), ("b", Some("2"))])).unwrap();
        let end = start.patched(&merge(&[("a", Some("")), ("b", None), ("c", Some("3"))])).unwrap();
        assert_eq!(serde_json::to_string(&end).unwrap(), r#"{"c":"3"}"#);
        assert_eq!(start.patched(&MetadataPatch::Keep).unwrap(), start);
        assert_eq!(start.patched(&MetadataPatch::Clear).unwrap(), Metadata::default());
    }

    #[test]
    fn the_limits_count_characters_and_hold_at_the_edge() {
        let with = |key: &str, value: &str| Metadata::default().patched(&merge(&[(key, Some(value))]));
        assert!(with(&"é".repeat(40), &"é".repeat(500)).is_ok());
        assert!(matches!(with(&"é".repeat(41), "v"), Err(MetadataError::KeyTooLong(_))));
        assert!(matches!(with("k", &"é".repeat(501)), Err(MetadataError::ValueTooLong(_))));
        assert_eq!(with("a[b", "v"), Err(MetadataError::KeyForbidden));
        assert_eq!(with("", "v"), Err(MetadataError::KeyForbidden));
    }

    #[test]
    fn fifty_keys_fit_and_the_next_is_refused() {
        let many = |count: usize| {
            MetadataPatch::Merge((0..count).map(|n| (format!("k{n}"), Some("v".to_owned()))).collect())
        };
        let full = Metadata::default().patched(&many(50)).unwrap();
        assert_eq!(Metadata::default().patched(&many(51)), Err(MetadataError::TooManyKeys(51)));
        assert_eq!(full.patched(&merge(&[("one more", Some("v"))])), Err(MetadataError::TooManyKeys(51)));
        assert!(full.patched(&merge(&[("k0", None), ("one more", Some("v"))])).is_ok());
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(pairs in prop::collection::btree_map("[a-z]{1,8}", prop::option::of("[a-z]{0,8}"), 0..20)) {
            let patch = MetadataPatch::Merge(pairs);
            let once = Metadata::default().patched(&patch).unwrap();
            prop_assert_eq!(once.patched(&patch).unwrap(), once);
        }
    }
}

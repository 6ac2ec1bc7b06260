//! The fingerprint of a request, which tells whether two requests are the same.
//!
//! The hash is keyed, because a card number could be guessed from a plain hash of its body. Each part is prefixed with
//! its length, so two different lists of parts never become the same bytes. Bodies are compared by meaning: the order of
//! members and white space do not count; types, values and the order in arrays do.

use serde_json::Value;

use crate::secrets::{HASH_BYTES, MARK_BYTES, Secrets};

/// The version of the hashed form.
///
/// It is stored beside the hash. A record of another version is replayed without comparison, so a change of the form does
/// not turn the live keys of an older server into errors.
pub const VERSION: i16 = 1;

/// The fingerprint of a request under each of the server's secrets, the current one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(Vec<[u8; HASH_BYTES]>);

/// The parts of a request that must be equal for two requests to be the same.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// The pairs of the query, decoded.
    pub query: &'a [(String, String)],
    pub media_type: &'a str,
    pub body: &'a Value,
}

impl Fingerprint {
    pub fn of(parts: Parts<'_>, secrets: &Secrets) -> Self {
        Self(secrets.hashes(&parts.bytes()))
    }

    /// The fingerprint to store, made under the current secret.
    pub fn current(&self) -> &[u8] {
        &self.0[0]
    }

    /// Whether a stored fingerprint may belong to this request.
    ///
    /// While secrets are being replaced, another instance may use a secret that this one does not have yet. A fingerprint
    /// under such a secret cannot be compared, and counts as equal: a true duplicate must find its answer. A different
    /// request with the same key then gets that answer too, and has no effect.
    pub fn may_match(&self, stored: &[u8]) -> bool {
        let mark = |hash: &[u8]| hash.get(..MARK_BYTES).map(<[u8]>::to_vec);
        let is_comparable = self.0.iter().any(|own| mark(own) == mark(stored));
        !is_comparable || self.0.iter().any(|own| own == stored)
    }
}

impl Parts<'_> {
    /// Each part after its length, in an order that does not depend on how the request was written.
    fn bytes(&self) -> Vec<u8> {
        let mut query: Vec<&(String, String)> = self.query.iter().collect();
        // The sort is stable: values that share a name stay in their order.
        query.sort_by(|a, b| a.0.cmp(&b.0));
        let mut bytes = Vec::with_capacity(512);
        let mut part = |text: &[u8]| {
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text);
        };
        part(self.method.as_bytes());
        part(self.path.as_bytes());
        part(&(query.len() as u64).to_be_bytes());
        for (name, value) in query {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        part(self.media_type.as_bytes());
        // serde_json sorts members (its feature preserve_order is off) and writes no white space.
        part(&serde_json::to_vec(self.body).expect("a value always serializes"));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::wire::json as wire_json;

    fn secrets() -> Secrets {
        Secrets::new(vec!["a secret that is long enough for the tests".to_owned()]).unwrap()
    }

    fn of(method: &str, path: &str, query: &[(&str, &str)], media_type: &str, body: &Value) -> Fingerprint {
        let query: Vec<_> = query.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Fingerprint::of(Parts { method, path, query: &query, media_type, body }, &secrets())
    }

    fn of_json(text: &str) -> Fingerprint {
        of("POST", "/v1/charges", &[], "json", &wire_json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn members_in_any_order_and_white_space_are_the_same_request() {
        assert_eq!(
            of_json(r#"{"a":1,"b":{"c":2,"d":[1,2]}}"#),
            of_json("{ \"b\": {\"d\":[1, 2],\n\"c\":2}, \"a\":1}")
        );
        assert_eq!(of_json("{}"), of_json(""));
    }

    #[test]
    fn types_values_and_the_order_of_arrays_count() {
        let all = [
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":"1"}"#,
            r#"{"a":true}"#,
            r#"{"a":null}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":{"0":1}}"#,
            r#"{"b":1}"#,
            r#"{"a":""}"#,
            "{}",
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
        ];
        for (n, one) in all.iter().enumerate() {
            for other in &all[n + 1..] {
                assert_ne!(of_json(one), of_json(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn each_part_counts() {
        let body = json!({});
        let base = of("POST", "/v1/a", &[("x", "1")], "json", &body);
        assert_eq!(base, of("POST", "/v1/a", &[("x", "1")], "json", &body));
        for other in [
            of("PUT", "/v1/a", &[("x", "1")], "json", &body),
            of("POST", "/v1/b", &[("x", "1")], "json", &body),
            of("POST", "/v1/a", &[("x", "2")], "json", &body),
            of("POST", "/v1/a", &[], "json", &body),
            of("POST", "/v1/a", &[("x", "1")], "form", &body),
            of("POST", "/v1/a", &[("x", "1")], "json", &json!({"x": 1})),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn query_pairs_are_sorted_stably() {
        let body = json!({});
        let query = |pairs: &[(&str, &str)]| of("POST", "/", pairs, "json", &body);
        assert_eq!(query(&[("a", "1"), ("b", "2")]), query(&[("b", "2"), ("a", "1")]));
        assert_ne!(query(&[("a", "1"), ("a", "2")]), query(&[("a", "2"), ("a", "1")]));
    }

    #[test]
    fn a_fingerprint_under_an_older_secret_is_still_known() {
        let (old, new) = ("an older secret, long enough", "a newer secret, long enough");
        let before = Secrets::new(vec![old.to_owned()]).unwrap();
        let after = Secrets::new(vec![new.to_owned(), old.to_owned()]).unwrap();
        let only_new = Secrets::new(vec![new.to_owned()]).unwrap();
        let parts = Parts { method: "POST", path: "/", query: &[], media_type: "json", body: &json!({}) };
        let stored = Fingerprint::of(parts, &before);
        assert!(Fingerprint::of(parts, &after).may_match(stored.current()));
        // Another instance may not know a secret yet.
        assert!(Fingerprint::of(parts, &only_new).may_match(stored.current()));
        let other = Parts { path: "/other", ..parts };
        assert!(!Fingerprint::of(other, &after).may_match(stored.current()));
        assert!(Fingerprint::of(other, &only_new).may_match(stored.current()));
        assert_eq!(Fingerprint::of(parts, &after).current(), Fingerprint::of(parts, &only_new).current());
    }

    proptest! {
        #[test]
        fn parts_never_run_together(a in "[ab]{0,4}", b in "[ab]{0,4}", c in "[ab]{0,4}", d in "[ab]{0,4}") {
            let one = of(&a, &b, &[], "", &json!(null));
            let other = of(&c, &d, &[], "", &json!(null));
            prop_assert_eq!(one == other, (a, b) == (c, d));
        }
    }
}

//! What an update changed, as its event tells it.

use serde_json::{Map, Value};

/// The properties that differ between an object before and after an update, with their values before it.
///
/// Of a nested object only its own differences are told, as Stripe does. A property that was not there before is
/// null; a list is told whole.
pub fn previous_attributes(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return before.clone() };
    let mut previous = Map::new();
    for (name, old) in before {
        match after.get(name) {
            Some(new) if new == old => {}
            Some(new) if new.is_object() => {
                previous.insert(name.clone(), previous_attributes(old, new));
            }
            _ => {
                previous.insert(name.clone(), old.clone());
            }
        }
    }
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        previous.insert(name.clone(), Value::Null);
    }
    Value::Object(previous)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_changed_is_told_with_its_old_value() {
        for (before, after, expected) in [
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1, "b": 3 }), json!({ "b": 2 })),
            (json!({ "a": 1 }), json!({ "a": 1 }), json!({})),
            (json!({ "a": null }), json!({ "a": "x" }), json!({ "a": null })),
            (json!({ "a": "x" }), json!({ "a": null }), json!({ "a": "x" })),
            (json!({ "a": [1, 2] }), json!({ "a": [1] }), json!({ "a": [1, 2] })),
            (json!({}), json!({ "a": 1 }), json!({ "a": null })),
            (json!({ "a": 1 }), json!({}), json!({ "a": 1 })),
        ] {
            assert_eq!(previous_attributes(&before, &after), expected, "{before} {after}");
        }
    }

    #[test]
    fn of_a_nested_object_only_what_changed_in_it_is_told() {
        let metadata = |value: Value| json!({ "metadata": value });
        for (before, after, expected) in [
            (json!({ "a": "1", "b": "2" }), json!({ "a": "1", "b": "3" }), json!({ "b": "2" })),
            (json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({ "b": null })),
            (json!({ "a": "1", "b": "2" }), json!({ "b": "2" }), json!({ "a": "1" })),
            (json!({ "a": "1" }), json!({}), json!({ "a": "1" })),
            // From nothing to an object and back there is no nested difference to tell.
            (json!(null), json!({ "a": "1" }), json!(null)),
            (json!({ "a": "1" }), json!(null), json!({ "a": "1" })),
        ] {
            let found = previous_attributes(&metadata(before.clone()), &metadata(after.clone()));
            assert_eq!(found, metadata(expected), "{before} {after}");
        }
        let address =
            |city: &str| json!({ "shipping": { "name": "n", "address": { "city": city, "line1": "l" } } });
        let expected = json!({ "shipping": { "address": { "city": "Rome" } } });
        assert_eq!(previous_attributes(&address("Rome"), &address("Oslo")), expected);
    }
}

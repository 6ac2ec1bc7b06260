//! Reads parameters into types, one by one and by name.
//!
//! The `CreateX` of a noun takes its parameters from [`Params`], and the parameters that remain are refused as unknown.
//! Errors write names as in a form: `card[exp_month]`. The types of single values are in `from_parameter.rs`. Parameters of
//! many routes are in `metadata.rs` and `page.rs`.

use serde_json::{Map, Value};

use super::directory::Directory;
pub use super::from_parameter::{Email, amount, part};
pub use super::metadata::patch_metadata;
use super::unsupported;
use crate::error::{Error, quoted};
use crate::types::{Id, Kind};

/// The parameters of a request that have not been taken yet.
pub struct Params {
    members: Map<String, Value>,
    /// The name of the parameter whose members these are; empty at the top level.
    parent: String,
    is_json: bool,
    directory: &'static Directory,
    references: Vec<Reference>,
}

/// An object that a parameter names by its id.
pub struct Reference {
    pub param: String,
    pub noun: &'static str,
    pub id: String,
}

/// One parameter.
pub struct Parameter {
    /// The full name, as in `card[exp_month]`.
    pub name: String,
    pub value: Value,
    /// Whether the body is JSON, in which a number is not a text; in a form, every value is a text.
    pub is_json: bool,
}

/// The parameters of a route.
pub trait Parameters: Sized {
    /// # Errors
    /// A parameter that is missing or of the wrong type.
    fn read(params: &mut Params) -> Result<Self, Error>;
}

/// A type that a parameter can have.
pub trait FromParameter: Sized {
    /// Whether an empty text unsets the parameter; if not, an empty text is an error.
    const EMPTY_IS_UNSET: bool = true;

    /// # Errors
    /// The value has another type, or is out of range.
    fn from_parameter(parameter: Parameter) -> Result<Self, Error>;
}

/// The effect of an update on a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update<T> {
    Keep,
    Unset,
    Set(T),
}

impl Params {
    pub fn new(members: Map<String, Value>, is_json: bool, directory: &'static Directory) -> Self {
        Self { members, parent: String::new(), is_json, directory, references: Vec::new() }
    }

    /// The directory that finds objects by their ids.
    pub fn directory(&self) -> &'static Directory {
        self.directory
    }

    /// Takes an optional id, and adds the object that it names to [`Params::references`].
    ///
    /// # Errors
    /// The value is not an id of a `K`.
    pub fn reference<K: Kind>(&mut self, name: &str) -> Result<Option<Id<K>>, Error> {
        let id: Option<Id<K>> = self.take(name)?;
        if let Some(id) = id {
            self.references.push(Reference { param: self.name_of(name), noun: K::NOUN, id: id.to_string() });
        }
        Ok(id)
    }

    /// Takes the list of objects that [`Params::reference`] has named so far.
    pub fn references(&mut self) -> Vec<Reference> {
        std::mem::take(&mut self.references)
    }

    /// Takes an optional parameter.
    ///
    /// # Errors
    /// The value has the wrong type.
    pub fn take<T: FromParameter>(&mut self, name: &str) -> Result<Option<T>, Error> {
        match self.update(name)? {
            Update::Set(value) => Ok(Some(value)),
            Update::Keep | Update::Unset => Ok(None),
        }
    }

    /// Takes a required parameter.
    ///
    /// # Errors
    /// The parameter is missing or unset, or has the wrong type.
    pub fn need<T: FromParameter>(&mut self, name: &str) -> Result<T, Error> {
        let full_name = self.name_of(name);
        self.take(name)?.ok_or(Error::ParameterMissing(full_name))
    }

    /// Takes the change of a property: it is left out, unset by an empty text or `null`, or set.
    ///
    /// # Errors
    /// The value has the wrong type.
    pub fn update<T: FromParameter>(&mut self, name: &str) -> Result<Update<T>, Error> {
        let Some(value) = self.members.remove(name) else { return Ok(Update::Keep) };
        let unset = value.is_null() || (T::EMPTY_IS_UNSET && value.as_str() == Some(""));
        if unset {
            return Ok(Update::Unset);
        }
        let parameter = Parameter { name: self.name_of(name), value, is_json: self.is_json };
        T::from_parameter(parameter).map(Update::Set)
    }

    /// Takes an optional text that must be one of `words`.
    ///
    /// # Errors
    /// The value is not a text, or not one of `words`.
    pub fn one_of<Word: AsRef<str> + Copy>(
        &mut self,
        name: &str,
        words: &[Word],
    ) -> Result<Option<Word>, Error> {
        match self.update_one_of(name, words)? {
            Update::Set(word) => Ok(Some(word)),
            Update::Keep | Update::Unset => Ok(None),
        }
    }

    /// Takes the change of a text that must be one of `words`.
    ///
    /// # Errors
    /// The value is not a text, or not one of `words`.
    pub fn update_one_of<Word: AsRef<str> + Copy>(
        &mut self,
        name: &str,
        words: &[Word],
    ) -> Result<Update<Word>, Error> {
        let full_name = self.name_of(name);
        let text = match self.update::<String>(name)? {
            Update::Set(text) => text,
            Update::Unset => return Ok(Update::Unset),
            Update::Keep => return Ok(Update::Keep),
        };
        match words.iter().find(|word| word.as_ref() == text) {
            Some(word) => Ok(Update::Set(*word)),
            None => {
                let known: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
                let known = known.join(", ");
                Err(Error::invalid(&full_name, format!("Invalid {full_name}: must be one of {known}.")))
            }
        }
    }

    /// Takes an optional parameter that is itself an object.
    ///
    /// # Errors
    /// The value is not an object.
    pub fn nested(&mut self, name: &str) -> Result<Option<Params>, Error> {
        self.take(name)
    }

    /// Takes parameters that have no effect on a card payment here, and ignores their values.
    pub fn take_without_effect(&mut self, names: &[&str]) {
        for name in names {
            self.members.remove(*name);
        }
    }

    /// Refuses parameters that Stripe has and this service does not support.
    ///
    /// # Errors
    /// [`Error::ParameterUnsupported`] for the first of `names` that was sent.
    pub fn refuse_unsupported(&self, names: &[&str]) -> Result<(), Error> {
        match names.iter().find(|name| self.has(name)) {
            Some(name) => Err(Error::ParameterUnsupported(self.name_of(name))),
            None => Ok(()),
        }
    }

    /// Takes a parameter as unread JSON.
    pub fn take_value(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    /// Whether a parameter is a text that begins with `prefix`.
    pub fn text_begins(&self, name: &str, prefix: &str) -> bool {
        self.members.get(name).and_then(Value::as_str).is_some_and(|text| text.starts_with(prefix))
    }

    /// Whether a parameter was sent, set or unset.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Checks that every parameter has been taken.
    ///
    /// # Errors
    /// [`Error::ParameterUnknown`] or [`Error::ParameterUnsupported`] for the first one that has not.
    pub fn finish(self) -> Result<(), Error> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) if self.parent.is_empty() && unsupported::PARAMETERS.contains(&name.as_str()) => {
                Err(Error::ParameterUnsupported(name.clone()))
            }
            Some(name) => Err(Error::ParameterUnknown(self.name_of(&quoted(name)))),
        }
    }

    /// The full name of a parameter, as in `card[exp_month]`.
    pub fn name_of(&self, name: &str) -> String {
        if self.parent.is_empty() { name.to_owned() } else { format!("{}[{name}]", self.parent) }
    }
}

impl Parameter {
    /// The error of a value that is not a `what`.
    pub fn wrong(&self, what: &str) -> Error {
        let shown = match &self.value {
            Value::String(text) => quoted(text),
            Value::Object(_) => "an object".to_owned(),
            Value::Array(_) => "an array".to_owned(),
            other => quoted(&other.to_string()),
        };
        Error::invalid(&self.name, format!("Invalid {what}: {shown}"))
    }

    /// Reads a text of at most `most` characters.
    ///
    /// # Errors
    /// The value is not a text, or is longer.
    pub fn text(self, most: usize) -> Result<String, Error> {
        let Value::String(text) = self.value else { return Err(self.wrong("string")) };
        if text.chars().count() > most {
            return Err(Error::ParameterInvalid {
                message: format!("Invalid {}: it can have up to {most} characters.", self.name),
                param: self.name,
                code: Some("parameter_invalid_string_too_long"),
            });
        }
        Ok(text)
    }

    /// Reads the items of a list, which in a form is an object with numbered members.
    ///
    /// # Errors
    /// The value is not a list.
    pub fn items(self) -> Result<Vec<Parameter>, Error> {
        let values = match self.value {
            Value::Array(items) => items,
            Value::Object(members) if !self.is_json => {
                let mut numbered = Vec::with_capacity(members.len());
                for (number, value) in members {
                    let Ok(number) = number.parse::<u32>() else {
                        return Err(Error::invalid(&self.name, format!("Invalid array: {}", self.name)));
                    };
                    numbered.push((number, value));
                }
                numbered.sort_by_key(|(number, _)| *number);
                numbered.into_iter().map(|(_, value)| value).collect()
            }
            _ => return Err(self.wrong("array")),
        };
        let item = |(number, value)| Parameter {
            name: format!("{}[{number}]", self.name),
            value,
            is_json: self.is_json,
        };
        Ok(values.into_iter().enumerate().map(item).collect())
    }
}

impl FromParameter for Params {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        match parameter.value {
            Value::Object(members) => {
                let (parent, is_json) = (parameter.name, parameter.is_json);
                Ok(Self { members, parent, is_json, directory: Directory::EMPTY, references: Vec::new() })
            }
            _ => Err(parameter.wrong("object")),
        }
    }
}

impl<T> Update<T> {
    /// The value of the property after the update.
    pub fn applied_to(self, old: Option<T>) -> Option<T> {
        match self {
            Update::Keep => old,
            Update::Unset => None,
            Update::Set(new) => Some(new),
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Update<U> {
        match self {
            Update::Keep => Update::Keep,
            Update::Unset => Update::Unset,
            Update::Set(value) => Update::Set(change(value)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::types::Currency;
    use crate::wire::form::{pairs, tree};

    pub fn json(value: Value) -> Params {
        let Value::Object(members) = value else { panic!("an object") };
        Params::new(members, true, Directory::EMPTY)
    }

    pub fn form(text: &str) -> Params {
        let Value::Object(members) = tree(pairs(text.as_bytes()).unwrap()).unwrap() else {
            panic!("an object")
        };
        Params::new(members, false, Directory::EMPTY)
    }

    #[test]
    fn what_is_missing_or_left_over_is_named_as_in_a_form() {
        let mut params = form("card[number]=1&card[x]=2");
        let mut card = params.nested("card").unwrap().unwrap();
        assert!(
            matches!(card.need::<i64>("exp_month"), Err(Error::ParameterMissing(name)) if name == "card[exp_month]")
        );
        card.take::<String>("number").unwrap();
        assert!(matches!(card.finish(), Err(Error::ParameterUnknown(name)) if name == "card[x]"));
        params.finish().unwrap();
        assert!(
            matches!(form("transfer_data[x]=1").finish(), Err(Error::ParameterUnsupported(name)) if name == "transfer_data")
        );
    }

    #[test]
    fn an_empty_text_and_null_unset_what_can_be_unset() {
        assert_eq!(form("a=").update::<String>("a").unwrap(), Update::Unset);
        assert_eq!(json(json!({"a": null})).update::<i64>("a").unwrap(), Update::Unset);
        assert_eq!(form("b=1").update::<String>("a").unwrap(), Update::Keep);
        assert!(form("a=").update::<bool>("a").is_err());
        assert!(form("a=").take::<Currency>("a").is_err());
    }
}

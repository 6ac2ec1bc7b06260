//! Reading parameters into types, one by one and by name.
//!
//! A noun's `CreateX` takes what it knows from [`Params`]; what is left then is unknown and refused by its name.
//! Names in errors are written as in a form: `card[exp_month]`.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::{Map, Value};

use crate::error::{Error, quoted};
use crate::types::page::Cursor;
use crate::types::{Amount, Currency, Id, Kind, Metadata, MetadataPatch, PageRequest};

/// The most characters of a text.
pub const MAX_TEXT_CHARACTERS: usize = 5000;
/// The most characters of an e-mail address.
pub const MAX_EMAIL_CHARACTERS: usize = 512;

/// What Stripe's API has and this service has not: Connect, tax, other methods of payment, and the like.
const UNSUPPORTED: [&str; 48] = [
    "account",
    "allow_redisplay",
    "amount_details",
    "application_fee",
    "application_fee_amount",
    "balance",
    "bank_account",
    "business_name",
    "card_present",
    "cash_balance",
    "confirmation_token",
    "coupon",
    "currency",
    "customer",
    "customer_account",
    "cvc_update",
    "default_card",
    "destination",
    "exchange_rate",
    "excluded_payment_method_types",
    "forward_to",
    "hooks",
    "individual_name",
    "instructions_email",
    "invoice",
    "invoice_prefix",
    "level3",
    "mandate",
    "mandate_data",
    "next_invoice_sequence",
    "on_behalf_of",
    "origin",
    "payment_details",
    "payment_method_configuration",
    "person",
    "pii",
    "promotion_code",
    "radar_options",
    "refund_application_fee",
    "reverse_transfer",
    "tax",
    "tax_exempt",
    "tax_id_data",
    "test_clock",
    "transfer_data",
    "transfer_group",
    "use_stripe_sdk",
    "validate",
];

/// The parameters of a request that nobody has taken yet.
pub struct Params {
    members: Map<String, Value>,
    /// The name of what these are members of; empty at the top.
    parent: String,
    is_json: bool,
}

/// One parameter.
pub struct Parameter {
    /// As in `card[exp_month]`.
    pub name: String,
    pub value: Value,
    /// In a form every value is text; in JSON a number is a number.
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
    /// Whether an empty text means that the parameter is not set. Where it is not so, empty is wrong.
    const EMPTY_IS_UNSET: bool = true;

    /// # Errors
    /// The value is of another type, or out of range.
    fn from_parameter(parameter: Parameter) -> Result<Self, Error>;
}

/// What an update does to a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update<T> {
    Keep,
    Unset,
    Set(T),
}

impl Params {
    pub fn new(members: Map<String, Value>, is_json: bool) -> Self {
        Self { members, parent: String::new(), is_json }
    }

    /// A parameter that may be left out.
    ///
    /// # Errors
    /// It is of the wrong type.
    pub fn take<T: FromParameter>(&mut self, name: &str) -> Result<Option<T>, Error> {
        match self.update(name)? {
            Update::Set(value) => Ok(Some(value)),
            Update::Keep | Update::Unset => Ok(None),
        }
    }

    /// A parameter that must be there.
    ///
    /// # Errors
    /// It is missing, unset or of the wrong type.
    pub fn need<T: FromParameter>(&mut self, name: &str) -> Result<T, Error> {
        let full_name = self.name_of(name);
        self.take(name)?.ok_or(Error::ParameterMissing(full_name))
    }

    /// A property to change: left out, unset by an empty text or `null`, or set.
    ///
    /// # Errors
    /// It is of the wrong type.
    pub fn update<T: FromParameter>(&mut self, name: &str) -> Result<Update<T>, Error> {
        let Some(value) = self.members.remove(name) else { return Ok(Update::Keep) };
        let unset = value.is_null() || (T::EMPTY_IS_UNSET && value.as_str() == Some(""));
        if unset {
            return Ok(Update::Unset);
        }
        let parameter = Parameter { name: self.name_of(name), value, is_json: self.is_json };
        T::from_parameter(parameter).map(Update::Set)
    }

    /// Metadata, to be merged with what an object has.
    ///
    /// # Errors
    /// It is no object of texts.
    pub fn metadata(&mut self) -> Result<MetadataPatch, Error> {
        let name = self.name_of("metadata");
        let members = match self.members.remove("metadata") {
            None => return Ok(MetadataPatch::Keep),
            Some(Value::Null) => return Ok(MetadataPatch::Clear),
            Some(Value::String(text)) if text.is_empty() => return Ok(MetadataPatch::Clear),
            Some(Value::Object(members)) => members,
            Some(_) => return Err(Error::invalid(&name, format!("Invalid object: {name}"))),
        };
        let is_json = self.is_json;
        let read = |(key, value): (String, Value)| {
            let inner = format!("{name}[{}]", quoted(&key));
            let text = match value {
                Value::Null => None,
                Value::String(text) => Some(text),
                Value::Bool(value) if is_json => Some(value.to_string()),
                Value::Number(number) if is_json && !number.is_f64() => Some(number.to_string()),
                _ => {
                    return Err(Error::invalid(
                        &inner,
                        "Metadata values must be text, integers or booleans.",
                    ));
                }
            };
            Ok((key, text))
        };
        let pairs = members.into_iter().map(read).collect::<Result<BTreeMap<_, _>, Error>>()?;
        Ok(MetadataPatch::Merge(pairs))
    }

    /// The members of a parameter that is itself an object.
    ///
    /// # Errors
    /// It is something else.
    pub fn nested(&mut self, name: &str) -> Result<Option<Params>, Error> {
        self.take(name)
    }

    /// Whether a parameter is there, set or not.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// The first parameter that nobody has taken.
    pub fn finish(self) -> Result<(), Error> {
        match self.members.keys().next() {
            None => Ok(()),
            Some(name) if self.parent.is_empty() && UNSUPPORTED.contains(&name.as_str()) => {
                Err(Error::ParameterUnsupported(name.clone()))
            }
            Some(name) => Err(Error::ParameterUnknown(self.name_of(&quoted(name)))),
        }
    }

    /// The full name of a member, as in `card[exp_month]`.
    pub fn name_of(&self, name: &str) -> String {
        if self.parent.is_empty() { name.to_owned() } else { format!("{}[{name}]", self.parent) }
    }

    /// Which page of a list is asked for: `limit`, `starting_after`, `ending_before`, `created`.
    ///
    /// # Errors
    /// A limit that is not 1–100, both cursors at once, or a cursor that is no id of a `K`.
    pub fn page<K: Kind>(&mut self) -> Result<(PageRequest, Option<Id<K>>), Error> {
        let limit = self.take::<i64>("limit")?.unwrap_or(10);
        let limit = u8::try_from(limit).ok().filter(|limit| (1..=100).contains(limit)).ok_or_else(|| {
            let bound = if limit < 1 { "greater than or equal to 1" } else { "less than or equal to 100" };
            Error::ParameterInvalid {
                param: "limit".to_owned(),
                code: Some("parameter_invalid_integer"),
                message: format!("This value must be {bound} (it currently is '{limit}')."),
            }
        })?;
        let after = self.take::<Id<K>>("starting_after")?;
        let before = self.take::<Id<K>>("ending_before")?;
        let mut page = self.created(PageRequest::new(limit))?;
        let cursor = match (after, before) {
            (Some(_), Some(_)) => {
                let message = "You cannot use both `starting_after` and `ending_before`.";
                return Err(Error::invalid("ending_before", message));
            }
            (Some(id), None) => {
                page = page.at(Cursor::StartingAfter(id.uuid()));
                Some(id)
            }
            (None, Some(id)) => {
                page = page.at(Cursor::EndingBefore(id.uuid()));
                Some(id)
            }
            (None, None) => None,
        };
        Ok((page, cursor))
    }

    /// `created=N`, or `created[gt]`, `[gte]`, `[lt]`, `[lte]`, in Unix seconds.
    fn created(&mut self, page: PageRequest) -> Result<PageRequest, Error> {
        if !self.members.get("created").is_some_and(Value::is_object) {
            let exact = self.take::<Seconds>("created")?;
            return Ok(exact.map_or(page.clone(), |Seconds(at)| page.created_from(at).created_before(at + 1)));
        }
        let Some(mut bounds) = self.nested("created")? else { return Ok(page) };
        let mut page = page;
        if let Some(Seconds(at)) = bounds.take("gt")? {
            page = page.created_from(at + 1);
        }
        if let Some(Seconds(at)) = bounds.take("gte")? {
            page = page.created_from(at);
        }
        if let Some(Seconds(at)) = bounds.take("lt")? {
            page = page.created_before(at);
        }
        if let Some(Seconds(at)) = bounds.take("lte")? {
            page = page.created_before(at + 1);
        }
        bounds.finish()?;
        Ok(page)
    }
}

impl Parameter {
    /// That the value is of another type than `what`.
    pub fn wrong(&self, what: &str) -> Error {
        let shown = match &self.value {
            Value::String(text) => quoted(text),
            Value::Object(_) => "an object".to_owned(),
            Value::Array(_) => "an array".to_owned(),
            other => quoted(&other.to_string()),
        };
        Error::invalid(&self.name, format!("Invalid {what}: {shown}"))
    }

    /// The text of the value, of at most `most` characters.
    ///
    /// # Errors
    /// It is no text, or a longer one.
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

    /// The items of a list: an array, or an object whose members are numbered.
    ///
    /// # Errors
    /// It is something else.
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
                Ok(Self { members, parent: parameter.name, is_json: parameter.is_json })
            }
            _ => Err(parameter.wrong("object")),
        }
    }
}

impl FromParameter for i64 {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let is_quoted =
            parameter.is_json && parameter.value.as_str().is_some_and(|text| integer(text).is_some());
        let value = match &parameter.value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) if !parameter.is_json => integer(text),
            _ => None,
        };
        value.ok_or_else(|| {
            let wrong = parameter.wrong("integer");
            let hint = if is_quoted { " (in JSON a number has no quotes)" } else { "" };
            Error::ParameterInvalid {
                message: format!("{wrong}{hint}"),
                param: parameter.name,
                code: Some("parameter_invalid_integer"),
            }
        })
    }
}

/// Digits with an optional minus; no plus sign, which a form may mean as a space.
fn integer(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

impl FromParameter for bool {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        match &parameter.value {
            Value::Bool(value) => Ok(*value),
            Value::String(text) if !parameter.is_json => match text.as_str() {
                "true" | "True" => Ok(true),
                "false" | "False" => Ok(false),
                _ => Err(parameter.wrong("boolean (true or false)")),
            },
            _ => Err(parameter.wrong("boolean")),
        }
    }
}

impl FromParameter for String {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        parameter.text(MAX_TEXT_CHARACTERS)
    }
}

/// An e-mail address: anything around an `@`, as more cannot be known without writing to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email(pub String);

impl FromParameter for Email {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let name = parameter.name.clone();
        let text = parameter.text(MAX_EMAIL_CHARACTERS)?;
        let plausible = text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
            && !text.contains(char::is_whitespace);
        if plausible {
            return Ok(Self(text));
        }
        Err(Error::ParameterInvalid {
            param: name,
            code: Some("email_invalid"),
            message: format!("Invalid email address: {}", quoted(&text)),
        })
    }
}

/// A list of texts.
impl FromParameter for Vec<String> {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        parameter.items()?.into_iter().map(String::from_parameter).collect()
    }
}

impl FromParameter for Currency {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let found = parameter.value.as_str().and_then(Currency::parse);
        found.ok_or_else(|| parameter.wrong("currency"))
    }
}

impl<K: Kind> FromParameter for Id<K> {
    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        let text = parameter.value.as_str().ok_or_else(|| parameter.wrong("string"))?;
        Id::parse(text).ok_or_else(|| Error::no_such::<K>(text, &parameter.name))
    }
}

/// Unix seconds, from 1970 to the year 9999.
struct Seconds(u64);

impl FromParameter for Seconds {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        const LAST: i64 = 253_402_300_799;
        let name = parameter.name.clone();
        let seconds = i64::from_parameter(parameter)?;
        match (0..=LAST).contains(&seconds).then(|| DateTime::from_timestamp(seconds, 0)).flatten() {
            Some(time) => Ok(Self(time.timestamp().unsigned_abs())),
            None => Err(Error::ParameterInvalid {
                param: name,
                code: Some("parameter_invalid_integer"),
                message: format!("Invalid timestamp: {seconds} is not within the years 1970 to 9999."),
            }),
        }
    }
}

/// Applies a change of metadata.
///
/// # Errors
/// Beyond the limits of [`Metadata`].
pub fn patch_metadata(metadata: &Metadata, patch: &MetadataPatch) -> Result<Metadata, Error> {
    metadata.patched(patch).map_err(|error| Error::invalid("metadata", format!("Invalid metadata: {error}.")))
}

/// The amount of a payment.
///
/// # Errors
/// Out of the bounds of its currency.
pub fn amount(minor: i64, currency: Currency) -> Result<Amount, Error> {
    Amount::new(minor, currency).map_err(|error| Error::AmountInvalid { param: "amount".to_owned(), error })
}

/// A part of a payment.
///
/// # Errors
/// Not positive, or not expressible in its currency.
pub fn part(minor: i64, currency: Currency, param: &str) -> Result<Amount, Error> {
    Amount::part(minor, currency).map_err(|error| Error::AmountInvalid { param: param.to_owned(), error })
}

impl<T> Update<T> {
    /// The property afterwards.
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::events::Event;

    fn json(value: Value) -> Params {
        let Value::Object(members) = value else { panic!("an object") };
        Params::new(members, true)
    }

    fn form(text: &str) -> Params {
        let pairs = crate::wire::form::pairs(text.as_bytes()).unwrap();
        let Value::Object(members) = crate::wire::form::tree(pairs).unwrap() else { panic!("an object") };
        Params::new(members, false)
    }

    #[test]
    fn integers_are_integers() {
        assert_eq!(form("a=12").take::<i64>("a").unwrap(), Some(12));
        assert_eq!(form("a=-12").need::<i64>("a").unwrap(), -12);
        assert_eq!(json(json!({"a": 12})).need::<i64>("a").unwrap(), 12);
        let huge = serde_json::from_str(r#"{"a": 9223372036854775808}"#).unwrap();
        for mut params in [
            form("a=10.5"),
            form("a="),
            form("a=x"),
            form("a=1e3"),
            form("a=%2B1"),
            form("a=+1"),
            form("a=9223372036854775808"),
            form("a[b]=1"),
            json(json!({"a": "12"})),
            json(json!({"a": 1.0})),
            json(json!({"a": true})),
            json(huge),
        ] {
            let error = params.take::<i64>("a").unwrap_err();
            assert_eq!(error.row().code, Some("parameter_invalid_integer"), "{error}");
        }
        assert_eq!(form("a=10.5").take::<i64>("a").unwrap_err().to_string(), "Invalid integer: 10.5");
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

    #[test]
    fn lists_come_numbered_in_forms_and_as_arrays_in_json() {
        let expected = Some(vec!["x".to_owned(), "y".to_owned()]);
        assert_eq!(form("a[10]=y&a[2]=x").take::<Vec<String>>("a").unwrap(), expected);
        assert_eq!(form("a[]=x&a[]=y").take::<Vec<String>>("a").unwrap(), expected);
        assert_eq!(json(json!({"a": ["x", "y"]})).take::<Vec<String>>("a").unwrap(), expected);
        assert!(json(json!({"a": {"0": "x"}})).take::<Vec<String>>("a").is_err());
        assert!(form("a[b]=x").take::<Vec<String>>("a").is_err());
        assert!(form("a=x").take::<Vec<String>>("a").is_err());
    }

    #[test]
    fn metadata_are_texts() {
        let merged = json(json!({"metadata": {"a": 1, "b": true, "c": "x", "d": null}})).metadata().unwrap();
        let metadata = patch_metadata(&Metadata::default(), &merged).unwrap();
        assert_eq!(serde_json::to_value(metadata).unwrap(), json!({"a": "1", "b": "true", "c": "x"}));
        assert_eq!(form("metadata=").metadata().unwrap(), MetadataPatch::Clear);
        assert_eq!(form("").metadata().unwrap(), MetadataPatch::Keep);
        for wrong in [json!({"a": 1.5}), json!({"a": []}), json!({"a": {"b": "c"}}), json!([]), json!(1)] {
            assert!(json(json!({"metadata": wrong})).metadata().is_err());
        }
    }

    #[test]
    fn pages_have_limits_and_one_cursor() {
        for text in [
            "limit=0",
            "limit=101",
            "limit=-1",
            "limit=",
            "limit=x",
            "created=-1",
            "created[gt]=x",
            "created[x]=1",
            "created=99999999999999",
            "starting_after=evt_x",
        ] {
            assert!(form(text).page::<Event>().is_err(), "{text}");
        }
        let id = "evt_0199aabbccdd7eef8011223344556677";
        assert!(form(&format!("starting_after={id}&ending_before={id}")).page::<Event>().is_err());
        let (page, cursor) =
            form(&format!("limit=100&ending_before={id}&created[lte]=5")).page::<Event>().unwrap();
        assert_eq!(cursor.unwrap().to_string(), id);
        assert_eq!(page.rows_to_fetch(), 101);
    }
}

//! The types of a single value: numbers, texts, ids, amounts of money.

use serde_json::Value;

use super::params::{FromParameter, Parameter, Params};
use crate::error::{Error, quoted};
use crate::types::{Amount, Currency, Id, Kind};

/// The most characters that a text may have.
pub const MAX_TEXT_CHARACTERS: usize = 5000;
/// The most characters that an e-mail address may have.
pub const MAX_EMAIL_CHARACTERS: usize = 512;

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

/// Reads digits with an optional minus. A plus sign is refused, because in a form it may stand for a space.
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

/// An e-mail address: any text around an `@`, because only a message to it could prove more.
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

/// Checks the amount of a payment against the limits of its currency.
///
/// # Errors
/// [`Error::AmountInvalid`].
pub fn amount(minor: i64, currency: Currency) -> Result<Amount, Error> {
    Amount::new(minor, currency).map_err(|error| Error::AmountInvalid { param: "amount".to_owned(), error })
}

impl Params {
    /// Reads the required parameters `amount` and `currency`.
    ///
    /// # Errors
    /// One of them is missing or invalid, or the amount is outside the limits of its currency.
    pub fn price(&mut self) -> Result<(Amount, Currency), Error> {
        let minor = self.need("amount")?;
        let currency = self.need("currency")?;
        Ok((amount(minor, currency)?, currency))
    }
}

/// Checks the amount of a part of a payment, such as a refund.
///
/// # Errors
/// The amount is not positive, or the currency cannot express it.
pub fn part(minor: i64, currency: Currency, param: &str) -> Result<Amount, Error> {
    Amount::part(minor, currency).map_err(|error| Error::AmountInvalid { param: param.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::wire::params::tests::{form, json};

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
    fn lists_come_numbered_in_forms_and_as_arrays_in_json() {
        let expected = Some(vec!["x".to_owned(), "y".to_owned()]);
        assert_eq!(form("a[10]=y&a[2]=x").take::<Vec<String>>("a").unwrap(), expected);
        assert_eq!(form("a[]=x&a[]=y").take::<Vec<String>>("a").unwrap(), expected);
        assert_eq!(json(json!({"a": ["x", "y"]})).take::<Vec<String>>("a").unwrap(), expected);
        assert!(json(json!({"a": {"0": "x"}})).take::<Vec<String>>("a").is_err());
        assert!(form("a[b]=x").take::<Vec<String>>("a").is_err());
        assert!(form("a=x").take::<Vec<String>>("a").is_err());
    }
}

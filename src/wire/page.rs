//! Reads the parameters that choose a page of a list.

use chrono::DateTime;

use super::params::{FromParameter, Parameter, Params};
use crate::error::{Error, quoted};
use crate::types::page::Cursor;
use crate::types::{Kind, PageRequest};

impl Params {
    /// Reads `limit`, `starting_after`, `ending_before` and `created`.
    ///
    /// # Errors
    /// The limit is not 1–100, there are two cursors, or a cursor is not an id of a `K`.
    pub fn page<K: Kind>(&mut self) -> Result<PageRequest, Error> {
        let limit = self.take::<i64>("limit")?.unwrap_or(10);
        let limit = u8::try_from(limit).ok().filter(|limit| (1..=100).contains(limit)).ok_or_else(|| {
            let bound = if limit < 1 { "greater than or equal to 1" } else { "less than or equal to 100" };
            Error::ParameterInvalid {
                param: "limit".to_owned(),
                code: Some("parameter_invalid_integer"),
                message: format!(
                    "This value must be {bound} (it currently is '{}').",
                    quoted(&limit.to_string())
                ),
            }
        })?;
        let after = self.reference::<K>("starting_after")?;
        let before = self.reference::<K>("ending_before")?;
        let page = self.created(PageRequest::new(limit))?;
        match (after, before) {
            (Some(_), Some(_)) => {
                let message = "You cannot use both `starting_after` and `ending_before`.";
                Err(Error::invalid("ending_before", message))
            }
            (Some(id), None) => Ok(page.at(Cursor::StartingAfter(id.uuid()))),
            (None, Some(id)) => Ok(page.at(Cursor::EndingBefore(id.uuid()))),
            (None, None) => Ok(page),
        }
    }

    /// Reads `created=N`, or `created[gt]`, `[gte]`, `[lt]` and `[lte]`, in Unix seconds.
    fn created(&mut self, page: PageRequest) -> Result<PageRequest, Error> {
        let mut bounds = match self.take("created")? {
            None => return Ok(page),
            Some(Created::At(Seconds(at))) => return Ok(page.created_from(at).created_before(at + 1)),
            Some(Created::Within(bounds)) => bounds,
        };
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

/// The value of `created`.
enum Created {
    At(Seconds),
    /// Bounds that are not parsed yet.
    Within(Params),
}

impl FromParameter for Created {
    const EMPTY_IS_UNSET: bool = false;

    fn from_parameter(parameter: Parameter) -> Result<Self, Error> {
        match parameter.value.is_object() {
            true => Params::from_parameter(parameter).map(Self::Within),
            false => Seconds::from_parameter(parameter).map(Self::At),
        }
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

#[cfg(test)]
mod tests {
    use crate::types::ids::kinds::Event;
    use crate::wire::params::tests::form;

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
        let mut params = form(&format!("limit=100&ending_before={id}&created[lte]=5"));
        let page = params.page::<Event>().unwrap();
        assert_eq!(params.references()[0].id, id);
        assert_eq!(page.rows_to_fetch(), 101);
    }
}

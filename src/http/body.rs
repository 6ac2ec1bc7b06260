//! Reads the body of a request once, within limits, and parses it once into a tree.
//!
//! The tree is a `serde_json` value for JSON and for forms. In the tree of a form all leaves are texts, and an array is an
//! object with numbered members. The handler reads the tree into types inside its transaction, so a replay or a reused key
//! is found before a wrong parameter.

use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::time::Duration;

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::web::BytesMut;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use futures_util::StreamExt;
use serde_json::{Map, Value};

use crate::error::{Error, quoted};
use crate::wire::{Directory, Expand, Parameters, Params, form, json};

/// The most bytes a body may have.
pub const MAX_BYTES: usize = 256 * 1024;

/// How long a body may take to arrive.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    Json,
    Form,
}

/// The parameters of a request, parsed but not yet typed; the guard puts them into the request's extensions.
#[derive(Debug)]
pub struct Body {
    pub parameters: Map<String, Value>,
    pub is_json: bool,
    /// The name of a parameter in the query of a `POST`, which is an error.
    pub stray: Option<String>,
    /// The directory that finds objects by their ids.
    pub directory: &'static Directory,
}

/// The extractor of a request's parameters, from the body of a `POST` or the query of a `GET`.
pub struct Payload<T> {
    body: Body,
    parsed: PhantomData<fn() -> T>,
}

impl<T: Parameters> Payload<T> {
    /// Reads the parameters, and `expand`, which every route takes.
    ///
    /// # Errors
    /// A parameter is missing, unknown or of the wrong type.
    pub fn parse(self) -> Result<(T, Expand), Error> {
        if let Some(name) = self.body.stray {
            let param = quoted(&name);
            return Err(Error::ParameterInvalid {
                message: format!(
                    "Received unknown parameter: {param}. Send it in the body, not in the query."
                ),
                param,
                code: Some("parameter_unknown"),
            });
        }
        let mut params = Params::new(self.body.parameters, self.body.is_json, self.body.directory);
        let expand = Expand::read(&mut params)?;
        let value = T::read(&mut params)?;
        params.finish()?;
        Ok((value, expand))
    }
}

impl<T> FromRequest for Payload<T> {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut actix_web::dev::Payload) -> Self::Future {
        let body = request.extensions_mut().remove::<Body>();
        ready(body.map(|body| Self { body, parsed: PhantomData }).ok_or_else(|| {
            Error::Internal(format!(
                "{} asked for its parameters twice, or outside of the guard",
                request.path()
            ))
        }))
    }
}

impl MediaType {
    pub fn as_str(self) -> &'static str {
        match self {
            MediaType::Json => "json",
            MediaType::Form => "form",
        }
    }

    /// Parses a body of this type. An empty body has no parameters.
    ///
    /// # Errors
    /// [`Error::Malformed`], with the place if known.
    pub fn parse(self, bytes: &[u8]) -> Result<Value, Error> {
        match self {
            MediaType::Json => json::parse(bytes),
            // curl labels every body a form unless told otherwise, and no parameter's name begins with a brace.
            MediaType::Form if bytes.trim_ascii_start().starts_with(b"{") => Err(Error::Malformed(
                "The body looks like JSON, but was sent as a form. Send it with Content-Type: application/json."
                    .to_owned(),
            )),
            MediaType::Form => form::tree(form::pairs(bytes)?),
        }
    }
}

/// Reads the format of the body from the headers.
///
/// A body without a type is a form. SDKs send a `POST` without a body as `application/octet-stream`, which is a form too.
///
/// # Errors
/// [`Error::MediaTypeUnsupported`] for another type, a charset other than UTF-8, or a compressed body.
pub fn media_type(headers: &HeaderMap) -> Result<MediaType, Error> {
    let unsupported = |what: String| Err(Error::MediaTypeUnsupported(what));
    if let Some(encoding) = headers.get(CONTENT_ENCODING)
        && encoding.as_bytes() != b"identity"
    {
        return unsupported("Request bodies must not be compressed: leave out Content-Encoding.".to_owned());
    }
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(MediaType::Form) };
    let parsed = value.to_str().ok().and_then(|text| text.parse::<mime::Mime>().ok());
    let Some(parsed) = parsed else {
        return unsupported("The header Content-Type is not a media type.".to_owned());
    };
    if parsed.get_param(mime::CHARSET).is_some_and(|charset| charset != mime::UTF_8) {
        return unsupported("Bodies must be UTF-8.".to_owned());
    }
    match parsed.essence_str() {
        "application/json" => Ok(MediaType::Json),
        "application/x-www-form-urlencoded" => Ok(MediaType::Form),
        "application/octet-stream" if is_empty(headers) => Ok(MediaType::Form),
        other => unsupported(format!(
            "Bodies of the type {} are not supported: send application/json or \
             application/x-www-form-urlencoded.",
            quoted(other)
        )),
    }
}

fn is_empty(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).map(|length| length.as_bytes() == b"0");
    length.unwrap_or_else(|| !headers.contains_key("Transfer-Encoding"))
}

/// Reads the whole body.
///
/// # Errors
/// [`Error::BodyTooLarge`], as soon as the size is known; [`Error::BodyTooSlow`]; or [`Error::Malformed`] if the client
/// stopped before the end.
pub async fn read(request: &mut ServiceRequest) -> Result<BytesMut, Error> {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if announced.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > MAX_BYTES as u64)
    {
        return Err(Error::BodyTooLarge { limit_kib: MAX_BYTES / 1024 });
    }
    let mut payload = request.take_payload();
    let all = async {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|error| Error::Malformed(format!("The body broke off: {error}.")))?;
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(Error::BodyTooLarge { limit_kib: MAX_BYTES / 1024 });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    };
    actix_web::rt::time::timeout(TIMEOUT, all)
        .await
        .unwrap_or(Err(Error::BodyTooSlow { limit_seconds: TIMEOUT.as_secs() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_read_with_their_parameters() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            headers.insert(CONTENT_LENGTH, "2".parse().unwrap());
            media_type(&headers)
        };
        assert_eq!(of("application/json").unwrap(), MediaType::Json);
        assert_eq!(of("Application/JSON; charset=UTF-8").unwrap(), MediaType::Json);
        assert_eq!(of("application/x-www-form-urlencoded;charset=utf-8").unwrap(), MediaType::Form);
        assert_eq!(media_type(&HeaderMap::new()).unwrap(), MediaType::Form);
        for other in [
            "text/plain",
            "application/json; charset=latin1",
            "json",
            "application/octet-stream",
            "multipart/form-data",
        ] {
            assert!(matches!(of(other), Err(Error::MediaTypeUnsupported(_))), "{other}");
        }
    }
}

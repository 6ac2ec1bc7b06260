//! Webhooks out: endpoints that want to hear of events, and the deliveries to them.
//!
//! | status of a delivery | may become | by |
//! |---|---|---|
//! | pending | delivered | an answer 2xx |
//! | pending | failed | the last attempt of the schedule |
//! | pending | canceled | the endpoint is disabled or deleted |
//! | delivered, failed, canceled | pending | resend |
//!
//! A delivery is written with its event, in the transaction of the effect (by the room of events), and sent by
//! the worker ([`delivery`]): at least once, never lost.

pub mod delivery;
pub mod handlers;
mod health;
mod queries;
pub mod schedule;
pub mod statements;
pub mod target;

use std::collections::HashMap;

use chrono::{DateTime, Duration, Utc};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Error;
use crate::schema::webhook_endpoints;
use crate::secrets::{Secrets, random_text};
use crate::types::ids::{AccountId, EventId, RequestId, WebhookEndpointId, kinds};
use crate::types::text_column;
use crate::types::{Cause, Metadata, MetadataPatch, Page};
use crate::wire::ids;
use crate::wire::params::patch_metadata;
use crate::wire::shared::Texts;
use crate::wire::{List, Nothing, Update};

/// How long two secrets sign while one is being rolled, unless the caller says otherwise.
pub const DEFAULT_GRACE_SECONDS: i64 = 24 * 3600;

/// The longest such time.
pub const MAX_GRACE_SECONDS: i64 = 7 * 24 * 3600;

/// The most endpoints that an account may have.
pub const MAX_ENDPOINTS: i64 = 16;

/// An endpoint. Its secrets are sealed.
#[derive(Debug, Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = webhook_endpoints, check_for_backend(Pg), treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(primary_key(account_id, id))]
pub struct WebhookEndpoint {
    pub account_id: AccountId,
    pub id: WebhookEndpointId,
    pub request_id: RequestId,
    pub url: String,
    pub description: Option<String>,
    pub enabled_events: Texts,
    pub api_version: Option<String>,
    pub metadata: Metadata,
    pub disabled: bool,
    sealed_secret: Vec<u8>,
    previous_sealed_secret: Option<Vec<u8>>,
    previous_secret_expires_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

text_column! {
    /// Where a delivery stands: the table above.
    pub enum Status {
        Pending => "pending",
        Delivered => "delivered",
        Failed => "failed",
        Canceled => "canceled",
    }
}

/// How webhooks are sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebhookSettings {
    pub schedule: schedule::Schedule,
    /// Whether endpoints may be on this machine or its network.
    pub allow_private: bool,
}

/// What an endpoint is asked to be.
pub struct CreateEndpoint {
    pub url: String,
    pub enabled_events: Vec<String>,
    pub description: Option<String>,
    pub api_version: Option<String>,
    pub metadata: Metadata,
}

/// What an endpoint is to become.
pub struct UpdateEndpoint {
    pub url: Option<String>,
    pub enabled_events: Option<Vec<String>>,
    pub description: Update<String>,
    pub disabled: Option<bool>,
    pub metadata: MetadataPatch,
}

/// Makes an endpoint, and gives its secret, this once.
///
/// # Errors
/// An address that may not be called, or more endpoints than there may be.
pub fn create(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreateEndpoint,
    secrets: &Secrets,
    settings: &WebhookSettings,
) -> Result<(WebhookEndpoint, String), Error> {
    let secret = new_secret();
    let endpoint = create_with_secret(connection, cause, create, &secret, secrets, settings)?;
    Ok((endpoint, secret))
}

fn create_with_secret(
    connection: &mut PgConnection,
    cause: &Cause,
    create: CreateEndpoint,
    secret: &str,
    secrets: &Secrets,
    settings: &WebhookSettings,
) -> Result<WebhookEndpoint, Error> {
    check_url(&create.url, settings)?;
    // Ends the race of two creates: the second counts what the first one made.
    queries::lock_account(connection, cause.account)?;
    if queries::count(connection, cause.account)? >= MAX_ENDPOINTS {
        return Err(Error::NotAllowedNow {
            code: None,
            message: format!("An account can have {MAX_ENDPOINTS} webhook endpoints. Delete one first."),
            param: None,
        });
    }
    let id = cause.new_id();
    let endpoint = WebhookEndpoint {
        account_id: cause.account,
        id,
        request_id: cause.request_id,
        url: create.url,
        description: create.description,
        enabled_events: Texts(create.enabled_events),
        api_version: create.api_version,
        metadata: create.metadata,
        disabled: false,
        sealed_secret: secrets.seal(secret.as_bytes(), &seal_context(cause.account, id)),
        previous_sealed_secret: None,
        previous_secret_expires_at: None,
        created_at: cause.now,
        deleted_at: None,
    };
    queries::insert(connection, &endpoint)?;
    Ok(endpoint)
}

/// Makes an endpoint with a secret that somebody has chosen, unless the account has one with this URL.
///
/// # Errors
/// What [`create`] refuses, and a secret that is too short.
pub fn ensure(
    connection: &mut PgConnection,
    cause: &Cause,
    (url, enabled_events, secret): (String, Vec<String>, &str),
    secrets: &Secrets,
    settings: &WebhookSettings,
) -> Result<(), Error> {
    let is_secret = secret.strip_prefix("whsec_").is_some_and(|rest| rest.len() >= 16);
    if !is_secret || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid("secret", "A secret is whsec_ and 16 visible ASCII characters or more."));
    }
    let enabled_events = handlers::types(enabled_events)?;
    if queries::has_url(connection, cause.account, &url)? {
        return Ok(());
    }
    let create = CreateEndpoint {
        url,
        enabled_events,
        description: None,
        api_version: None,
        metadata: Metadata::default(),
    };
    create_with_secret(connection, cause, create, secret, secrets, settings).map(drop)
}

/// An endpoint that is not deleted.
///
/// # Errors
/// [`Error::NotFound`].
pub fn retrieve(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<WebhookEndpoint, Error> {
    ids::in_path(id, |id| {
        Ok(queries::find(connection, cause.account, id)?.filter(|endpoint| endpoint.deleted_at.is_none()))
    })
}

/// Changes an endpoint. Disabling it cancels what was still to be delivered.
///
/// # Errors
/// [`Error::NotFound`], or what [`create`] refuses.
pub fn update(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    update: UpdateEndpoint,
    settings: &WebhookSettings,
) -> Result<WebhookEndpoint, Error> {
    // Ends the race of two updates: the second begins from what the first one left.
    let endpoint = lock(connection, cause, id)?;
    if let Some(url) = &update.url {
        check_url(url, settings)?;
    }
    if endpoint.disabled && update.disabled == Some(false) {
        // What an effect wrote while it was being disabled is not for now.
        queries::cancel_deliveries(connection, &endpoint)?;
    }
    let endpoint = WebhookEndpoint {
        url: update.url.unwrap_or(endpoint.url),
        description: update.description.applied_to(endpoint.description),
        enabled_events: update.enabled_events.map_or(endpoint.enabled_events, Texts),
        metadata: patch_metadata(&endpoint.metadata, &update.metadata)?,
        disabled: update.disabled.unwrap_or(endpoint.disabled),
        ..endpoint
    };
    queries::update(connection, &endpoint)?;
    if endpoint.disabled {
        queries::cancel_deliveries(connection, &endpoint)?;
    }
    Ok(endpoint)
}

/// Gives an endpoint another secret, and shows it, this once. The older one signs too until the grace time is over.
///
/// # Errors
/// [`Error::NotFound`].
pub fn roll_secret(
    connection: &mut PgConnection,
    cause: &Cause,
    id: &str,
    grace_seconds: i64,
    secrets: &Secrets,
) -> Result<(WebhookEndpoint, String), Error> {
    let endpoint = lock(connection, cause, id)?;
    let secret = new_secret();
    let sealed = secrets.seal(secret.as_bytes(), &seal_context(cause.account, endpoint.id));
    let has_grace = grace_seconds > 0;
    let endpoint = WebhookEndpoint {
        previous_sealed_secret: has_grace.then_some(endpoint.sealed_secret),
        previous_secret_expires_at: has_grace.then(|| cause.now + Duration::seconds(grace_seconds)),
        sealed_secret: sealed,
        ..endpoint
    };
    queries::update(connection, &endpoint)?;
    Ok((endpoint, secret))
}

/// Deletes an endpoint; nothing more is delivered to it.
///
/// # Errors
/// [`Error::NotFound`], also if it is deleted already.
pub fn delete(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<WebhookEndpoint, Error> {
    let endpoint = WebhookEndpoint { deleted_at: Some(cause.now), ..lock(connection, cause, id)? };
    queries::update(connection, &endpoint)?;
    queries::cancel_deliveries(connection, &endpoint)?;
    Ok(endpoint)
}

/// A page of endpoints that are not deleted, the newest first.
///
/// # Errors
/// The cursor names nothing.
pub fn list(
    connection: &mut PgConnection,
    cause: &Cause,
    list: &List<kinds::WebhookEndpoint, Nothing>,
) -> Result<Page<WebhookEndpoint>, Error> {
    list.load(connection, cause, |connection, page, _| queries::list(connection, cause.account, page))
}

/// These endpoints as objects, deleted or not.
///
/// # Errors
/// The database's.
pub fn objects(connection: &mut PgConnection, account: AccountId, ids: &[Uuid]) -> QueryResult<Vec<Value>> {
    Ok(queries::find_all(connection, account, ids)?.iter().map(WebhookEndpoint::object).collect())
}

/// The deliveries of an event, with their attempts.
///
/// # Errors
/// The database's.
pub fn deliveries(connection: &mut PgConnection, cause: &Cause, event: EventId) -> QueryResult<Vec<Value>> {
    // Deliveries before attempts: one that is shown as delivered then has the attempt that did it.
    let deliveries = queries::deliveries(connection, cause.account, event)?;
    let attempts = queries::attempts(connection, cause.account, event)?;
    let object = |delivery: queries::Delivery| {
        let own: Vec<Value> = attempts
            .iter()
            .filter(|attempt| attempt.endpoint_id == delivery.endpoint_id)
            .map(queries::Attempt::object)
            .collect();
        let next = (delivery.status == Status::Pending).then(|| delivery.next_attempt_at.timestamp());
        json!({
            "object": "webhook_delivery",
            "attempts": own,
            "event": event,
            "livemode": false,
            "next_attempt": next,
            "status": delivery.status,
            "webhook_endpoint": delivery.endpoint_id,
        })
    };
    Ok(deliveries.into_iter().map(object).collect())
}

/// Sends an event again: to one endpoint, or to all that want its type now.
///
/// # Errors
/// No such endpoint.
pub fn resend(
    connection: &mut PgConnection,
    cause: &Cause,
    event: EventId,
    endpoint: Option<WebhookEndpointId>,
) -> Result<(), Error> {
    if let Some(endpoint) = endpoint {
        ids::in_parameter(endpoint, "webhook_endpoint", |id| {
            let found = queries::find(connection, cause.account, id)?;
            Ok(found.filter(|endpoint| endpoint.deleted_at.is_none() && !endpoint.disabled))
        })?;
    }
    Ok(queries::send_again(connection, cause, event, endpoint)?)
}

/// How many deliveries each of these events still has before it.
///
/// # Errors
/// What the statement reports.
pub fn pending(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[EventId],
) -> QueryResult<HashMap<EventId, i64>> {
    if events.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(queries::pending(connection, account, events)?.into_iter().collect())
}

/// Cancels deliveries that nobody will get.
///
/// # Errors
/// What the statement reports.
pub fn cancel_stray(connection: &mut PgConnection) -> QueryResult<usize> {
    queries::cancel_stray(connection)
}

/// While the server's secret is being replaced: seals anew what the older one sealed, so that it can be taken away, and
/// says of how many endpoints.
///
/// # Errors
/// What the statements report.
pub fn seal_anew(connection: &mut PgConnection, secrets: &Secrets) -> Result<usize, Error> {
    let mut sealed = 0;
    if !secrets.are_being_replaced() {
        return Ok(sealed);
    }
    for endpoint in queries::all(connection)? {
        let context = seal_context(endpoint.account_id, endpoint.id);
        let anew = |secret: &Vec<u8>| secrets.seal_anew(secret, &context);
        let (newest, previous) =
            (anew(&endpoint.sealed_secret), endpoint.previous_sealed_secret.as_ref().and_then(anew));
        if newest.is_some() || previous.is_some() {
            sealed += queries::replace_secrets(connection, &endpoint, newest, previous)?;
        }
    }
    Ok(sealed)
}

fn check_url(url: &str, settings: &WebhookSettings) -> Result<(), Error> {
    target::parse(url, settings.allow_private)
        .map(drop)
        .map_err(|error| Error::invalid("url", format!("Invalid URL: it {error}.")))
}

fn lock(connection: &mut PgConnection, cause: &Cause, id: &str) -> Result<WebhookEndpoint, Error> {
    ids::in_path(id, |id| {
        Ok(queries::lock(connection, cause.account, id)?.filter(|endpoint| endpoint.deleted_at.is_none()))
    })
}

fn new_secret() -> String {
    format!("whsec_{}", random_text(24))
}

/// What a sealed secret is bound to, so that it opens for no other endpoint.
fn seal_context(account: AccountId, endpoint: WebhookEndpointId) -> String {
    format!("{account} {endpoint} secret")
}

impl WebhookEndpoint {
    /// The secrets that sign a delivery now, the newest first. `None`: the server's secret does not open them.
    pub fn secrets(&self, secrets: &Secrets, now: DateTime<Utc>) -> Option<Vec<String>> {
        let context = seal_context(self.account_id, self.id);
        let open = |sealed: &[u8]| String::from_utf8(secrets.open(sealed, &context)?).ok();
        let mut all = vec![open(&self.sealed_secret)?];
        if let (Some(sealed), Some(expires)) = (&self.previous_sealed_secret, self.previous_secret_expires_at)
            && now < expires
        {
            all.extend(open(sealed));
        }
        Some(all)
    }

    pub fn object(&self) -> Value {
        if self.deleted_at.is_some() {
            return json!({ "id": self.id, "object": "webhook_endpoint", "deleted": true });
        }
        json!({
            "id": self.id,
            "object": "webhook_endpoint",
            "api_version": self.api_version,
            "application": null,
            "created": self.created_at.timestamp(),
            "description": self.description,
            "enabled_events": self.enabled_events,
            "livemode": false,
            "metadata": self.metadata,
            "status": if self.disabled { "disabled" } else { "enabled" },
            "url": self.url,
        })
    }

    /// With the secret, which is shown when it is made and never again.
    pub fn object_with(&self, secret: &str) -> Value {
        let mut object = self.object();
        object["secret"] = secret.into();
        object
    }
}

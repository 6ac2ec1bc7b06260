//! What all requests share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Hosts, Metrics};
use crate::idempotency::Engine;
use crate::types::Clock;
use crate::wire::Directory;

/// What all requests share. Nothing correct depends on it being one: several instances may serve one database.
pub type State = Arc<Shared>;

pub struct Shared {
    pub engine: Engine,
    /// How long a key is remembered, unless its route says otherwise.
    pub key_lifetime: Duration,
    pub key_is_required: bool,
    /// Where the objects that a request names can be found. The app hands it down, because it knows every noun.
    pub directory: &'static Directory,
    /// Notified after each commit, since it may have left events to send.
    pub committed: Arc<Notify>,
    /// Which host names are answered.
    pub hosts: Hosts,
    pub clock: Clock,
    pub metrics: Metrics,
}

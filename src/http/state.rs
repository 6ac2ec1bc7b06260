//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::{Hosts, Metrics};
use crate::idempotency::Engine;
use crate::types::Clock;
use crate::wire::Directory;

/// The state that all requests of a process share.
///
/// No rule depends on it: several processes may serve one database.
pub type State = Arc<Shared>;

pub struct Shared {
    pub engine: Engine,
    /// How long a key is remembered, unless its route says otherwise.
    pub key_lifetime: Duration,
    pub key_is_required: bool,
    /// The directory that finds objects by their ids.
    pub directory: &'static Directory,
    /// Notified after each commit, because there may be events to send.
    pub committed: Arc<Notify>,
    /// Which host names are answered.
    pub hosts: Hosts,
    pub clock: Clock,
    pub metrics: Metrics,
}

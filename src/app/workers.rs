//! The background workers: the sender of webhooks, and the simulated card network with its notifications.

use std::sync::Arc;

use super::Service;
use crate::card_network::simulation::{self, Network};
use crate::webhooks::delivery::{self, Sender};

impl Service {
    /// The sender of webhooks, as this server is configured.
    pub fn sender(&self) -> Sender {
        Sender {
            database: self.state.engine.database.clone(),
            secrets: self.state.engine.secrets.clone(),
            clock: self.state.clock.clone(),
            settings: self.webhooks,
            committed: Arc::clone(&self.state.committed),
        }
    }

    /// The simulated card network, as this server is configured.
    pub fn network(&self) -> Network {
        Network {
            database: self.state.engine.database.clone(),
            clock: self.state.clock.clone(),
            settings: self.network.clone(),
        }
    }
}

/// Sends webhooks and the notifications of the simulated network, for ever.
pub async fn send(service: Service) {
    let (webhooks, network) =
        tokio::join!(delivery::run(service.sender()), simulation::run(service.network()));
    for ended in [webhooks, network] {
        if let Err(error) = ended {
            log::error!("nothing is sent: {}", error.for_log());
        }
    }
}

//! What runs beside the requests: webhooks that are sent, and the simulated network that notifies.

use std::sync::Arc;

use super::Service;
use crate::card_network::simulation::{self, Network};
use crate::webhooks::delivery::{self, Sender};

impl Service {
    /// What sends the webhooks.
    pub fn sender(&self) -> Sender {
        Sender {
            database: self.state.engine.database.clone(),
            secrets: self.state.engine.secrets.clone(),
            clock: self.state.clock.clone(),
            settings: self.webhooks,
            committed: Arc::clone(&self.state.committed),
        }
    }

    /// What plays the card network.
    pub fn network(&self) -> Network {
        Network {
            database: self.state.engine.database.clone(),
            clock: self.state.clock.clone(),
            settings: self.network.clone(),
        }
    }
}

/// Sends webhooks, and what the simulated network has to tell, for ever.
pub async fn send(service: Service) {
    let (webhooks, network) =
        tokio::join!(delivery::run(service.sender()), simulation::run(service.network()));
    for ended in [webhooks, network] {
        if let Err(error) = ended {
            log::error!("nothing is sent: {}", error.for_log());
        }
    }
}

//! `oncepay serve` and `oncepay worker`: settings → database → migrate → run.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use super::demo::{self, DemoKey};
use super::greeting::greet;
use super::secret_files::secrets;
use super::server::{Server, keep_alive};
use super::settings::Settings;
use super::{Failure, seed};
use crate::app::{self, Service, running};
use crate::card_network::simulation::NetworkSettings;
use crate::db::{Database, Options};
use crate::http::{Hosts, Metrics, Shared};
use crate::idempotency::Engine;
use crate::idempotency::faults::Faults;
use crate::notifications;
use crate::secrets::Secrets;
use crate::types::Clock;
use crate::webhooks::WebhookSettings;
use crate::webhooks::schedule::Schedule;

/// Serves until SIGINT or SIGTERM.
pub fn serve(settings: &Settings) -> Result<(), Failure> {
    // Bound first: a taken address should be told before a server is started.
    let listener = TcpListener::bind(settings.listen.addresses()).map_err(|error| {
        format!("cannot listen on {}: {error}; --listen names another address", settings.listen)
    })?;
    let secrets = secrets(settings)?;
    let server = Server::reach(settings)?;
    server.migrate(settings)?;
    let demo_key = match server.cluster {
        Some(_) => Some(demo::ensure(&mut server.connect()?, settings)?),
        None => None,
    };
    if let Some(cluster) = &server.cluster {
        keep_alive(cluster, &settings.data_dir);
    }
    let hosts = match demo_key {
        Some(DemoKey::WellKnown) => Hosts::local_and(settings.allow_host.clone()),
        _ if settings.allow_host.is_empty() => Hosts::Any,
        _ => Hosts::local_and(settings.allow_host.clone()),
    };
    let address = listener.local_addr()?;
    let service = service(settings, &server, secrets, address, hosts);
    if let Some(path) = &settings.seed {
        seed::apply(&mut server.connect()?, path, &service)?;
    }
    let (workers, sends) = (settings.workers(), settings.webhook_worker);
    running::serve(service, listener, workers, sends, || greet(settings, address, demo_key.as_ref()))?;
    server.leave();
    log::info!("stopped");
    Ok(())
}

/// Sends webhooks and sweeps, until SIGINT or SIGTERM.
pub fn work(settings: &Settings) -> Result<(), Failure> {
    let secrets = secrets(settings)?;
    let server = Server::reach(settings)?;
    server.migrate(settings)?;
    let address = *settings.listen.addresses().first().ok_or("--listen names no address")?;
    let service = service(settings, &server, secrets, address, Hosts::Any);
    running::work(service)?;
    server.leave();
    Ok(())
}

/// The service of these settings.
fn service(
    settings: &Settings,
    server: &Server,
    secrets: Secrets,
    address: SocketAddr,
    hosts: Hosts,
) -> Service {
    let is_demo = server.cluster.is_some();
    let default_schedule = if is_demo { Schedule::Fast } else { Schedule::Live };
    let database = Database::open(Options {
        url: server.url.clone(),
        pool_size: settings.pool_size(),
        statement_cache: settings.statement_cache,
    });
    let network = NetworkSettings {
        secret: settings.network_secret.clone().unwrap_or_else(|| secrets.network_secret()),
        url: Some(settings.network_url.clone().unwrap_or_else(|| own_url(address))),
        delivery: settings.network_delivery,
    };
    let state = Arc::new(Shared {
        engine: Engine { database, secrets, faults: Faults::from_environment() },
        key_lifetime: settings.idempotency_ttl,
        key_is_required: settings.require_idempotency_key,
        directory: &app::DIRECTORY,
        hosts,
        committed: Arc::default(),
        clock: Clock::default(),
        metrics: Metrics::default(),
    });
    let webhooks = WebhookSettings {
        schedule: settings.webhook_schedule.unwrap_or(default_schedule),
        allow_private: settings.webhook_allow_private.unwrap_or(is_demo),
    };
    Service { state, webhooks, network }
}

/// Where this server takes notifications; one that listens on all addresses is reached by loopback.
fn own_url(address: SocketAddr) -> String {
    format!("http://{}{}", reachable(address), notifications::handlers::PATH)
}

/// An address at which this machine reaches a server that listens on `address`.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

//! The settings: flags, with environment variables behind them. Read once, when the program starts.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::logs::Format;
use crate::card_network::simulation::DeliveryMode;
use crate::webhooks::schedule::Schedule;

/// A payments service in which an answer is remembered exactly when its effect is committed.
#[derive(Parser)]
#[command(name = "oncepay", version)]
pub struct CommandLine {
    #[command(flatten)]
    pub settings: Settings,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The heading of options that only a server and a worker have.
const OF_SERVERS: &str = "Options of a server and its worker";

/// The subcommands that serve nothing.
const SERVE_NOTHING: [&str; 4] = ["migrate", "api-key", "audit", "psql"];

impl CommandLine {
    /// Reads the arguments of the program and its environment, or ends it with help or a message.
    pub fn parse() -> Self {
        let matches = Self::with_help().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The command line, where the help of each subcommand shows only the options that it uses.
    pub fn with_help() -> clap::Command {
        let mut command = Self::command();
        let of_servers: Vec<clap::Arg> = command
            .get_arguments()
            .filter(|argument| argument.get_help_heading() == Some(OF_SERVERS))
            .map(|argument| argument.clone().hide(true))
            .collect();
        for name in SERVE_NOTHING {
            command = command.mut_subcommand(name, |subcommand| subcommand.args(of_servers.clone()));
        }
        command.mut_subcommand("api-key", |api_key| {
            let names: Vec<String> =
                api_key.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
            names.iter().fold(api_key, |api_key, name| {
                api_key.mut_subcommand(name, |subcommand| subcommand.args(of_servers.clone()))
            })
        })
    }
}

/// Where to listen: an address, or a name and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    text: String,
    addresses: Vec<SocketAddr>,
}

impl Listen {
    /// The addresses of the name, IPv4 first. The first that can be had is listened on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether only this machine can reach it, whichever of its addresses is taken.
    pub fn is_loopback(&self) -> bool {
        self.addresses.iter().all(|address| address.ip().is_loopback())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = text.to_socket_addrs().map_err(|error| {
            format!("say an address or a name, and a port, as in 127.0.0.1:8080 or localhost:8080 ({error})")
        })?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        addresses.sort_by_key(SocketAddr::is_ipv6);
        match addresses.is_empty() {
            true => Err("this name has no address".to_owned()),
            false => Ok(Self { text: text.to_owned(), addresses }),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// What to do; without one, serve.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API (the default).
    Serve,
    /// Send webhooks, sweep, and serve nothing. Any number of workers may run side by side.
    Worker,
    /// Apply the migrations and end.
    Migrate,
    /// Make, list or revoke API keys.
    #[command(subcommand)]
    ApiKey(ApiKeyCommand),
    /// Check every rule of the data again, and say which are broken.
    Audit,
    /// Open psql on the database.
    Psql {
        /// Arguments for psql.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Make a key and show it, this once. The account is made if there is none of its name.
    Create {
        /// The name of the account.
        #[arg(long, default_value = crate::auth::keys::DEMO_ACCOUNT, value_parser = account_name)]
        account: String,
    },
    /// List all keys. The keys themselves are not stored, so only their ends are shown.
    List,
    /// Revoke a key: it stops working at once, everywhere.
    Revoke {
        /// The id that `list` shows.
        id: uuid::Uuid,
    },
}

/// The settings. They hold secrets, so they have no `Debug`.
#[derive(Args)]
pub struct Settings {
    /// Where to listen: an address or a name, and a port.
    #[arg(long, env = "LISTEN_ADDR", global = true, help_heading = OF_SERVERS, default_value = "127.0.0.1:8080")]
    pub listen: Listen,

    /// Another host name to answer, beside loopback names. The option may be given several times, or once with commas.
    /// While the well-known demo key works, no other name is answered.
    #[arg(long, env = "ALLOW_HOST", global = true, help_heading = OF_SERVERS, value_name = "NAME", value_delimiter = ',')]
    pub allow_host: Vec<String>,

    /// The API key of the demo account, which a server with the private PostgreSQL has [default: sk_test_oncepay_demo on a
    /// loopback address, else a random one].
    #[arg(long, env = "DEMO_API_KEY", global = true, help_heading = OF_SERVERS, hide_env_values = true, value_parser = api_key)]
    demo_key: Option<String>,

    /// A JSON file with accounts, API keys and webhook endpoints to make at the start.
    #[arg(long, env = "SEED_FILE", global = true, help_heading = OF_SERVERS, value_name = "FILE")]
    pub seed: Option<PathBuf>,

    /// A PostgreSQL server, version 15 or later. Without it oncepay runs a private one in the data directory.
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true)]
    database_url: Option<String>,

    /// Where to migrate, if not at the database URL: not through a pooler.
    #[arg(long, env = "MIGRATION_URL", global = true, hide_env_values = true)]
    migration_url: Option<String>,

    /// Where the private PostgreSQL keeps its data, and oncepay its secret.
    #[arg(long, env = "DATA_DIR", global = true, default_value = "./.oncepay")]
    pub data_dir: PathBuf,

    /// How many connections to the database, and threads for them [default: 3 for each core, at most 24].
    #[arg(long, env = "DATABASE_POOL_SIZE", global = true, help_heading = OF_SERVERS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pool_size: Option<u32>,

    /// Whether statements stay prepared. Switch it off behind a pooler in transaction mode, which would mix up the
    /// statements of its clients.
    #[arg(long, env = "STATEMENT_CACHE", global = true, help_heading = OF_SERVERS, default_value_t = true, action = clap::ArgAction::Set, value_parser = switch)]
    pub statement_cache: bool,

    /// How many threads read and write HTTP [default: one for each core].
    #[arg(long, env = "HTTP_WORKERS", global = true, help_heading = OF_SERVERS, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub workers: Option<u16>,

    /// How long an idempotency key is remembered: a number and s, m, h or d.
    #[arg(long, env = "IDEMPOTENCY_TTL", global = true, help_heading = OF_SERVERS, default_value = "24h", value_parser = duration)]
    pub idempotency_ttl: Duration,

    /// Whether a request that changes something must have an idempotency key.
    #[arg(long, env = "REQUIRE_IDEMPOTENCY_KEY", global = true, help_heading = OF_SERVERS, default_value_t = true, action = clap::ArgAction::Set, value_parser = switch)]
    pub require_idempotency_key: bool,

    /// The secret key: for fingerprints of requests, the encryption of webhook secrets and the signature of the simulated
    /// card network. It has 16 bytes or more, and all instances share it. While it is being replaced, name several with
    /// commas between them: the first one is current. It is required with a database URL; otherwise the server makes one in
    /// the data directory.
    #[arg(long, env = "SECRET_KEY", global = true, help_heading = OF_SERVERS, hide_env_values = true, value_delimiter = ',')]
    secret_key: Vec<String>,

    /// When a webhook that failed is sent again: over three days, or within seconds at first [default: fast with the
    /// private PostgreSQL, else live].
    #[arg(long, env = "WEBHOOK_SCHEDULE", global = true, help_heading = OF_SERVERS, value_enum)]
    pub webhook_schedule: Option<Schedule>,

    /// Whether webhooks may go to private addresses, such as this machine's [default: true with the private
    /// PostgreSQL, else false].
    #[arg(long, env = "WEBHOOK_ALLOW_PRIVATE", global = true, help_heading = OF_SERVERS, value_parser = switch)]
    pub webhook_allow_private: Option<bool>,

    /// Whether this server sends webhooks too; else run `oncepay worker` beside it.
    #[arg(long, env = "WEBHOOK_WORKER", global = true, help_heading = OF_SERVERS, default_value_t = true, action = clap::ArgAction::Set, value_parser = switch)]
    pub webhook_worker: bool,

    /// The secret under which the card network signs its notifications [default: derived from the secret key].
    #[arg(long, env = "NETWORK_SECRET", global = true, help_heading = OF_SERVERS, hide_env_values = true)]
    pub network_secret: Option<String>,

    /// Where the simulated card network sends its notifications [default: this server].
    #[arg(long, env = "NETWORK_URL", global = true, help_heading = OF_SERVERS)]
    pub network_url: Option<String>,

    /// How the simulated card network delivers: in good order, everything twice, or in disorder.
    #[arg(long, env = "NETWORK_DELIVERY", global = true, help_heading = OF_SERVERS, value_enum, default_value_t = DeliveryMode::InOrder)]
    pub network_delivery: DeliveryMode,

    /// How log lines are written. What is logged is for `RUST_LOG` to say.
    #[arg(long, env = "LOG_FORMAT", global = true, value_enum, default_value_t = Format::Text)]
    pub log_format: Format,
}

impl Settings {
    /// The server to use; an empty text names none.
    pub fn database_url(&self) -> Option<&str> {
        self.database_url.as_deref().filter(|url| !url.is_empty())
    }

    /// Where to migrate, if not there.
    pub fn migration_url(&self) -> Option<&str> {
        self.migration_url.as_deref().filter(|url| !url.is_empty())
    }

    /// The key that the demo account is to have; an empty text names none.
    pub fn demo_key(&self) -> Option<&str> {
        self.demo_key.as_deref().filter(|key| !key.is_empty())
    }

    /// The secrets that were given, the current one first.
    pub fn secret_keys(&self) -> Vec<String> {
        self.secret_key
            .iter()
            .map(|secret| secret.trim().to_owned())
            .filter(|secret| !secret.is_empty())
            .collect()
    }

    pub fn pool_size(&self) -> u32 {
        let cores = u32::try_from(cores()).unwrap_or(1);
        self.pool_size.unwrap_or_else(|| (3 * cores).min(24))
    }

    pub fn workers(&self) -> usize {
        self.workers.map_or_else(cores, usize::from)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One line of text, which `list` shows.
fn account_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err("a name has 1 to 200 characters, and no line breaks".to_owned());
    }
    Ok(text.to_owned())
}

/// An API key that somebody has chosen; an empty text is none.
fn api_key(text: &str) -> Result<String, &'static str> {
    if !text.is_empty() {
        crate::auth::keys::check(text)?;
    }
    Ok(text.to_owned())
}

/// `true` and `on`, `false` and `off`.
fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err("say true or false".to_owned()),
    }
}

/// As in `90s`, `15m`, `24h`, `7d`; from one second to ten years.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err("say a number and s, m, h or d, as in 24h".to_owned()),
    };
    let total = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    match total {
        Some(total @ 1..=315_360_000) => Ok(Duration::from_secs(total)),
        _ => Err("say from 1s to 3650d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::with_help().debug_assert();
    }

    #[test]
    fn help_shows_only_what_a_subcommand_uses() {
        let mut command = CommandLine::with_help();
        command.build();
        let create = command.find_subcommand_mut("api-key").unwrap().find_subcommand_mut("create").unwrap();
        let help = create.render_long_help().to_string();
        assert!(
            help.contains("--account") && help.contains("--data-dir") && help.contains("--database-url"),
            "{help}"
        );
        assert!(!help.contains("--listen") && !help.contains("--webhook"), "{help}");
        let serve = command.find_subcommand_mut("serve").unwrap().render_long_help().to_string();
        assert!(serve.contains("--listen") && serve.contains("--secret-key"), "{serve}");
    }

    #[test]
    fn options_of_a_server_may_stand_before_any_subcommand() {
        let arguments = ["oncepay", "--listen", "127.0.0.1:1", "--pool-size", "3", "audit"];
        let matches = CommandLine::with_help().try_get_matches_from(arguments).unwrap();
        let line = CommandLine::from_arg_matches(&matches).unwrap();
        assert_eq!(
            (line.settings.listen.to_string().as_str(), line.settings.pool_size),
            ("127.0.0.1:1", Some(3))
        );
    }

    #[test]
    fn a_place_to_listen_is_an_address_or_a_name_with_a_port() {
        let local: Listen = "localhost:8080".parse().unwrap();
        assert!(local.is_loopback() && local.addresses()[0].port() == 8080);
        assert!("127.0.0.1:0".parse::<Listen>().unwrap().is_loopback());
        assert!(!"0.0.0.0:8080".parse::<Listen>().unwrap().is_loopback());
        for wrong in ["", "8080", "localhost", "localhost:x", "localhost:99999", ":8080:"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "h", "24", "0s", "-1s", "1.5h", "9999999d", "24 h", "18446744073709551615d", "é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_split_at_commas() {
        let line = CommandLine::parse_from(["oncepay", "--secret-key", "new,old"]);
        assert_eq!(line.settings.secret_key, ["new", "old"]);
    }
}

//! The program: settings → database → migrate → serve, and the subcommands.

mod logs;
pub mod settings;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::Utc;
use diesel::pg::PgConnection;
use diesel::prelude::*;

use crate::app::{self, Service, running};
use crate::auth::{Credentials, keys, queries};
use crate::card_network::simulation;
use crate::db::{self, Database, Options, migrate::migrate};
use crate::embedded::{self, Cluster};
use crate::http::{Metrics, Shared};
use crate::idempotency::Engine;
use crate::idempotency::faults::Faults;
use crate::secrets::{Secrets, random_text};
use crate::types::Clock;
use crate::webhooks::delivery::Schedule;
use crate::{audit, notifications, webhooks};
pub use settings::CommandLine;
use settings::{ApiKeyCommand, Command, Settings};

/// What ends the program with a message.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The name of the database in the private cluster.
const DATABASE: &str = "oncepay";

/// Runs what the command line asks for.
///
/// # Errors
/// Whatever makes it impossible; the text is for a person.
pub fn run(line: CommandLine) -> Result<(), Failure> {
    let settings = line.settings;
    logs::init(settings.log_format);
    match line.command.unwrap_or(Command::Serve) {
        Command::Serve => serve(&settings),
        Command::Worker => work(&settings),
        Command::Migrate => Server::reach(&settings)?.migrate(&settings),
        Command::ApiKey(command) => api_key(&settings, &command),
        Command::Audit => run_audit(&settings),
        Command::Psql { arguments } => psql(&settings, &arguments),
    }
}

/// The PostgreSQL server, and the private cluster if it is ours.
struct Server {
    url: String,
    cluster: Option<Arc<Mutex<Cluster>>>,
}

impl Server {
    /// Reaches the server of the settings, starting the private one if none is named.
    fn reach(settings: &Settings) -> Result<Self, Failure> {
        if let Some(url) = settings.database_url() {
            return Ok(Self { url: url.to_owned(), cluster: None });
        }
        let cluster = Cluster::start(&settings.data_dir)?;
        let mut connection = db::connect(&cluster.url("postgres"))?;
        let there = diesel::sql_query(format!("SELECT FROM pg_database WHERE datname = '{DATABASE}'"));
        if there.execute(&mut connection)? == 0 {
            let made = diesel::sql_query(format!("CREATE DATABASE {DATABASE}")).execute(&mut connection);
            // Another starter may have been faster.
            let is_there = diesel::sql_query(format!("SELECT FROM pg_database WHERE datname = '{DATABASE}'"));
            if is_there.execute(&mut connection)? == 0 {
                made?;
            }
        }
        Ok(Self { url: cluster.url(DATABASE), cluster: Some(Arc::new(Mutex::new(cluster))) })
    }

    /// Leaves the private cluster, if there is one; the last to leave stops it.
    fn leave(self) {
        let Some(mut cluster) = self.cluster else { return };
        // Whoever keeps it alive may be looking at it just now.
        loop {
            match Arc::try_unwrap(cluster) {
                Ok(cluster) => return cluster.into_inner().unwrap_or_else(PoisonError::into_inner).stop(),
                Err(shared) => cluster = shared,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn migrate(&self, settings: &Settings) -> Result<(), Failure> {
        let applied = migrate(settings.migration_url().unwrap_or(&self.url))?;
        if applied > 0 {
            log::info!("applied {applied} migrations");
        }
        Ok(())
    }

    fn connect(&self) -> Result<PgConnection, Failure> {
        Ok(db::connect(&self.url)?)
    }
}

fn serve(settings: &Settings) -> Result<(), Failure> {
    // Bound first: a taken address should be told before a server is started.
    let listener = TcpListener::bind(settings.listen).map_err(|error| {
        format!("cannot listen on {}: {error}; --listen names another address", settings.listen)
    })?;
    let secrets = secrets(settings)?;
    let server = Server::reach(settings)?;
    server.migrate(settings)?;
    let demo_key = match server.cluster {
        Some(_) => Some(demo_key(&mut server.connect()?, settings)?),
        None => None,
    };
    if let Some(cluster) = &server.cluster {
        keep_alive(cluster, &settings.data_dir);
    }
    let address = listener.local_addr()?;
    let service = service(settings, &server, secrets, address);
    let (workers, sends) = (settings.workers(), settings.webhook_worker);
    running::serve(service, listener, workers, sends, || greet(address, demo_key.as_deref()))?;
    server.leave();
    log::info!("stopped");
    Ok(())
}

/// Sends webhooks and sweeps, until SIGINT or SIGTERM.
fn work(settings: &Settings) -> Result<(), Failure> {
    let secrets = secrets(settings)?;
    let server = Server::reach(settings)?;
    server.migrate(settings)?;
    let service = service(settings, &server, secrets, settings.listen);
    running::work(service)?;
    server.leave();
    Ok(())
}

/// Starts the private PostgreSQL again, should it have died while we live: on the same socket, so that the pool finds
/// it. The thread ends with the program.
fn keep_alive(cluster: &Arc<Mutex<Cluster>>, data_dir: &Path) {
    let (cluster, data_dir) = (Arc::downgrade(cluster), data_dir.to_owned());
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(WATCH_PAUSE);
            let Some(cluster) = cluster.upgrade() else { return };
            let mut cluster = lock(&cluster);
            if cluster.postmaster_pid().is_some() && PgConnection::establish(&cluster.url("postgres")).is_ok()
            {
                continue;
            }
            log::warn!("the private PostgreSQL is gone: starting it again");
            match Cluster::start(&data_dir) {
                // The older value leaves, and the new one stays.
                Ok(again) => *cluster = again,
                Err(error) => log::error!("the private PostgreSQL does not start: {error}"),
            }
        }
    });
}

/// How often it is looked whether the private PostgreSQL lives.
const WATCH_PAUSE: Duration = Duration::from_secs(2);

fn lock(cluster: &Mutex<Cluster>) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The service of these settings.
fn service(settings: &Settings, server: &Server, secrets: Secrets, address: SocketAddr) -> Service {
    let is_demo = server.cluster.is_some();
    let default_schedule = if is_demo { Schedule::Fast } else { Schedule::Live };
    let database = Database::open(Options {
        url: server.url.clone(),
        pool_size: settings.pool_size(),
        statement_cache: settings.statement_cache,
    });
    let network = simulation::Settings {
        secret: settings.network_secret.clone().unwrap_or_else(|| secrets.network_secret()),
        url: Some(settings.network_url.clone().unwrap_or_else(|| own_url(address))),
        delivery: settings.network_delivery,
    };
    let state = Arc::new(Shared {
        engine: Engine { database, secrets, faults: Faults::from_environment() },
        key_lifetime: settings.idempotency_ttl,
        key_is_required: settings.require_idempotency_key,
        directory: &app::DIRECTORY,
        committed: Arc::default(),
        clock: Clock::default(),
        metrics: Metrics::default(),
    });
    let webhooks = webhooks::Settings {
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
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    address
}

/// What a person needs to go on. It goes to standard output; the log goes to standard error.
fn greet(address: SocketAddr, demo_key: Option<&str>) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "oncepay listens on http://{address}");
    let _ = match demo_key {
        Some(key) => writeln!(
            out,
            "The key of the demo account is {key}\n{}\nTry this, twice:\n\n  curl http://{}/v1/charges -u {key}: \
             -H 'Idempotency-Key: order-1001' \\\n    -d amount=2000 -d currency=usd -d source=tok_visa\n",
            if address.ip().is_loopback() {
                ""
            } else {
                "(Others can reach this address, so the well-known demo key is revoked, and this one is random.)\n"
            },
            reachable(address)
        ),
        None => writeln!(out, "Make an API key with `oncepay api-key create --account NAME`."),
    };
    let _ = out.flush();
}

/// The secret of the settings, or the one in the data directory, made at first use.
fn secrets(settings: &Settings) -> Result<Secrets, Failure> {
    let given = settings.secret_keys();
    if !given.is_empty() {
        return Ok(Secrets::new(given)?);
    }
    if settings.database_url().is_some() {
        return Err(
            "with a database URL, a secret is needed: set SECRET_KEY to 16 random characters or more, \
                    the same for all instances (`openssl rand -hex 32` makes one)"
                .into(),
        );
    }
    embedded::make_directory(&settings.data_dir)?;
    Ok(Secrets::new(vec![kept_secret(&settings.data_dir.join("secret-key"), || random_text(32))?])?)
}

/// The key of the demo account. It is well known while only this machine can reach the server; else it is random,
/// and the well-known one is revoked.
fn demo_key(connection: &mut PgConnection, settings: &Settings) -> Result<String, Failure> {
    let now = Utc::now();
    let key = if settings.listen.ip().is_loopback() {
        keys::DEMO_KEY.to_owned()
    } else {
        queries::revoke_credentials(connection, &Credentials::of_key(keys::DEMO_KEY), now)?;
        kept_secret(&settings.data_dir.join("demo-api-key"), keys::random)?
    };
    keys::ensure(connection, keys::DEMO_ACCOUNT, &key, now)?;
    Ok(key)
}

/// The text in a file that only its owner can read, made at first use. It is written whole beside its place and then
/// linked there, which one of several starters can do, and none of them by half.
fn kept_secret(path: &Path, make: impl FnOnce() -> String) -> Result<String, Failure> {
    let unreadable = |error: io::Error| format!("cannot keep a secret in {}: {error}", path.display());
    if !path.exists() {
        let draft = path.with_extension(random_text(8));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(make().as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| match fs::hard_link(&draft, path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            });
        let _ = fs::remove_file(&draft);
        written.map_err(unreadable)?;
    }
    let secret = fs::read_to_string(path).map_err(unreadable)?.trim().to_owned();
    if secret.is_empty() {
        return Err(format!("{} is empty: remove it, and a new secret is made", path.display()).into());
    }
    Ok(secret)
}

fn api_key(settings: &Settings, command: &ApiKeyCommand) -> Result<(), Failure> {
    let server = Server::reach(settings)?;
    server.migrate(settings)?;
    let mut connection = server.connect()?;
    match command {
        ApiKeyCommand::Create { account } => {
            let key = keys::random();
            keys::ensure(&mut connection, account, &key, Utc::now())?;
            println!("{key}");
            eprintln!(
                "This is the key of the account {account}. It is not stored and will not be shown again."
            );
        }
        ApiKeyCommand::List => {
            println!("{:<36}  {:<20}  {:<20}  {:<19}  revoked", "id", "account", "key", "created");
            for (account, key) in queries::keys(&mut connection)? {
                let time = |time: chrono::DateTime<Utc>| time.format("%Y-%m-%d %H:%M:%S").to_string();
                let revoked = key.revoked_at.map_or("-".to_owned(), time);
                println!("{}  {account:<20}  {:<20}  {}  {revoked}", key.id, key.hint, time(key.created_at));
            }
        }
        ApiKeyCommand::Revoke { id } => match queries::revoke(&mut connection, *id, Utc::now())? {
            0 => return Err(format!("no key that works has the id {id}; see `oncepay api-key list`").into()),
            _ => println!("revoked {id}"),
        },
    }
    Ok(())
}

fn run_audit(settings: &Settings) -> Result<(), Failure> {
    let server = Server::reach(settings)?;
    server.migrate(settings)?;
    let report = audit::audit(&mut server.connect()?)?;
    print!("{report}");
    if report.is_clean() { Ok(()) } else { Err("the audit found broken rules".into()) }
}

/// A URL without its password, which everybody who lists processes could read on a command line, and the password.
fn without_password(text: &str) -> (String, Option<String>) {
    let Ok(mut url) = url::Url::parse(text) else { return (text.to_owned(), None) };
    let Some(password) = url.password().map(str::to_owned) else { return (text.to_owned(), None) };
    let _ = url.set_password(None);
    let decoded = percent_encoding::percent_decode_str(&password).decode_utf8_lossy().into_owned();
    (url.into(), Some(decoded))
}

/// Replaces this program with psql; on the private cluster it stays beside it, to stop the cluster afterwards.
fn psql(settings: &Settings, arguments: &[String]) -> Result<(), Failure> {
    let server = Server::reach(settings)?;
    let program =
        server.cluster.as_ref().map_or("psql".into(), |cluster| lock(cluster).binaries().join("psql"));
    let mut command = std::process::Command::new(program);
    let (url, password) = without_password(&server.url);
    command.arg(url).args(arguments);
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    if server.cluster.is_none() {
        return Err(format!("cannot run psql: {}", command.exec()).into());
    }
    // Ctrl-C is for psql, which cancels its query; this program has a cluster to stop when psql ends.
    // SAFETY: both dispositions have no preconditions, and setting one is safe between fork and exec.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let status = command.status().map_err(|error| format!("cannot run psql: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("psql ended with {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_does_not_stand_on_a_command_line() {
        let (url, password) = without_password("postgres://me:p%40ss@host/db?x=1");
        assert_eq!((&*url, password.as_deref()), ("postgres://me@host/db?x=1", Some("p@ss")));
        assert_eq!(without_password("host=/tmp"), ("host=/tmp".to_owned(), None));
    }

    #[test]
    fn a_secret_is_made_once_whoever_comes_first_and_never_by_half() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret-key");
        let starters: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || kept_secret(&path, || random_text(32)).unwrap())
            })
            .collect();
        let secrets: Vec<String> = starters.into_iter().map(|starter| starter.join().unwrap()).collect();
        assert!(secrets.iter().all(|secret| *secret == secrets[0] && secret.len() == 64));
        let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["secret-key"]);
        fs::write(&path, "").unwrap();
        assert!(kept_secret(&path, || random_text(32)).unwrap_err().to_string().contains("is empty"));
    }
}

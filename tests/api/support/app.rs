//! The server of a test, in this process and on a port of its own.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web;
use diesel::prelude::*;
use oncepay::app::{self, Service};
use oncepay::card_network::simulation::NetworkSettings;
use oncepay::db::{Database, Options};
use oncepay::error::Error;
use oncepay::http::{Hosts, Metrics, Payload, Policy, Route, Shared, State, Tx};
use oncepay::idempotency::Answer;
use oncepay::idempotency::Engine;
use oncepay::idempotency::faults::Faults;
use oncepay::secrets::Secrets;
use oncepay::types::Clock;
use oncepay::webhooks::{WebhookSettings, schedule::Schedule};
use oncepay::wire::{Parameters, Params};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Call, Reply};
use super::network::NETWORK_SECRET;
use super::postgres::TestDatabase;
use super::{CHARGE, SECRET_KEY};

/// A server and its database. Dropping it stops the server and drops the database.
pub struct TestApp {
    pub address: SocketAddr,
    pub database: Arc<TestDatabase>,
    pub state: State,
    pub service: Service,
    client: reqwest::Client,
    server: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

/// How a test's server differs from the usual one.
pub struct Builder {
    pub pool_size: u32,
    pub key_is_required: bool,
    pub secrets: Vec<String>,
    pub statement_cache: bool,
    pub routes: fn() -> Vec<Route>,
    pub hosts: Hosts,
    pub faults: Faults,
    pub webhooks: WebhookSettings,
    pub network: NetworkSettings,
    /// Another way to the test's database, such as through a proxy.
    pub url: Option<String>,
    pub database: Option<Arc<TestDatabase>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            pool_size: 4,
            key_is_required: true,
            secrets: vec![SECRET_KEY.to_owned()],
            statement_cache: true,
            routes: app::routes,
            hosts: Hosts::Any,
            faults: Faults::default(),
            webhooks: WebhookSettings { schedule: Schedule::Fast, allow_private: true },
            network: NetworkSettings { secret: NETWORK_SECRET.to_owned(), ..NetworkSettings::default() },
            url: None,
            database: None,
        }
    }
}

impl TestApp {
    /// Starts a server with the usual settings.
    pub fn spawn() -> Self {
        Self::with(|_| {})
    }

    /// Starts a server with other settings.
    pub fn with(change: impl FnOnce(&mut Builder)) -> Self {
        let mut builder = Builder::default();
        change(&mut builder);
        let database = builder.database.unwrap_or_else(|| Arc::new(TestDatabase::new()));
        let state: State = Arc::new(Shared {
            engine: Engine {
                database: Database::open(Options {
                    url: builder.url.unwrap_or_else(|| database.url.clone()),
                    pool_size: builder.pool_size,
                    statement_cache: builder.statement_cache,
                }),
                secrets: Secrets::new(builder.secrets).unwrap(),
                faults: builder.faults,
            },
            key_lifetime: Duration::from_secs(24 * 3600),
            key_is_required: builder.key_is_required,
            directory: &app::DIRECTORY,
            hosts: builder.hosts,
            committed: Arc::default(),
            clock: Clock::default(),
            metrics: Metrics::default(),
        });
        let service = Service { state, webhooks: builder.webhooks, network: builder.network };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (handle, started) = std::sync::mpsc::channel();
        let (served, routes) = (service.clone(), builder.routes);
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = app::serve(served, routes, listener, 2).expect("the server starts");
                handle.send(server.handle()).unwrap();
                server.await.expect("the server ends in order");
            });
        });
        let server = started.recv().expect("the server starts");
        let client = super::client::http()
            .timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let state = service.state.clone();
        Self { address, database, state, service, client, server, thread: Some(thread) }
    }

    /// Another server on the same database.
    pub fn second_instance(&self) -> Self {
        let database = Arc::clone(&self.database);
        Self::with(|builder| builder.database = Some(database))
    }

    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    /// A POST without a key.
    pub fn post(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }

    pub fn delete(&self, path: &str) -> Call {
        self.call(Method::DELETE, path)
    }

    pub fn call(&self, method: Method, path: &str) -> Call {
        self.call_as(&self.database.api_key, method, path)
    }

    /// A call with another API key.
    pub fn call_as(&self, api_key: &str, method: Method, path: &str) -> Call {
        Call::new(&self.client, method, format!("http://{}{path}", self.address), api_key)
    }

    /// Sends a form with a key of its own.
    pub async fn submit(&self, path: &str, form: &str) -> Reply {
        self.post(path).key(&super::fresh_key()).form(form).send().await
    }

    /// Sends JSON with a key of its own.
    pub async fn submit_json(&self, path: &str, body: &Value) -> Reply {
        self.post(path).key(&super::fresh_key()).json(body).send().await
    }

    /// Reads a path, which has to answer 200.
    pub async fn read(&self, path: &str) -> Value {
        self.get(path).send().await.expect(200).body
    }

    /// The number of blocks of tables and indexes that a request reads. The app needs to have one connection.
    pub async fn blocks_of(&self, request: impl AsyncFnOnce()) -> i64 {
        let reported = async || {
            let report = self.state.engine.database.run(|connection| {
                diesel::sql_query("SELECT pg_stat_force_next_flush()")
                    .execute(connection)
                    .map_err(Error::from)
            });
            report.await.unwrap().unwrap();
            self.database.blocks()
        };
        let before = reported().await;
        request().await;
        reported().await - before
    }

    /// Makes a charge of 10.00 usd, and returns its id.
    pub async fn charge(&self) -> String {
        let key = super::fresh_key();
        let call = self.post("/v1/charges").key(&key).form(CHARGE);
        call.send().await.expect(201).id().to_owned()
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        // The call itself sends the command, so there is nothing to await.
        drop(self.server.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How often the probe with each name ran.
static PROBED: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

/// How often the closure of the probe with this name has run, committed or not.
pub fn probed(name: &str) -> usize {
    PROBED.lock().unwrap().get(name).copied().unwrap_or(0)
}

/// The table of routes, and four more: a probe whose parameters decide how it ends, a route that forgets its
/// transaction, a route whose answer is a secret, and one that panics before it has a transaction.
pub fn probe_routes() -> Vec<Route> {
    let mut routes = app::routes();
    routes.push(Route::post("/v1/probe", Policy::KEYED, || web::to(probe)));
    routes.push(Route::post("/v1/forgetful", Policy::KEYED, || web::to(forgetful)));
    routes.push(Route::post("/v1/panic", Policy::KEYED, || web::to(panics)));
    let secret = Policy::Keyed { lifetime: Some(Duration::from_secs(3600)), secret: true };
    routes.push(Route::post("/v1/secret", secret, || web::to(probe)));
    routes
}

/// The parameters of a probe: its name, and how it ends.
struct Probe {
    name: String,
    milliseconds: u64,
    status: u16,
    fail: Option<String>,
}

impl Parameters for Probe {
    fn read(params: &mut Params) -> Result<Self, Error> {
        Ok(Self {
            name: params.need("name")?,
            milliseconds: params.take::<i64>("milliseconds")?.unwrap_or(0).unsigned_abs(),
            status: u16::try_from(params.take::<i64>("status")?.unwrap_or(200)).unwrap(),
            fail: params.take("fail")?,
        })
    }
}

/// Writes a row (an account with its name), waits, and ends as its parameters say.
async fn probe(tx: Tx, body: Payload<Probe>) -> Result<Answer, Error> {
    tx.run(move |connection, cause| {
        use diesel::prelude::*;
        let (probe, _) = body.parse()?;
        *PROBED.lock().unwrap().entry(probe.name.clone()).or_default() += 1;
        let id = cause.new_id::<oncepay::types::ids::kinds::Account>();
        diesel::sql_query(format!(
            "INSERT INTO accounts (id, name, created_at) VALUES ('{}', 'probe {} {}', now())",
            id.uuid(),
            probe.name,
            id
        ))
        .execute(connection)?;
        std::thread::sleep(Duration::from_millis(probe.milliseconds));
        match probe.fail.as_deref() {
            Some("panic") => panic!("told to"),
            Some("error") => Err(Error::invalid("fail", "told to")),
            // A statement fails, and the closure ignores it.
            Some("swallow") => {
                let _ = diesel::sql_query("SELECT 1/0").execute(connection);
                Ok(Answer::json(200, &json!({ "name": probe.name })))
            }
            _ => Ok(Answer::json(probe.status, &json!({ "name": probe.name, "id": id }))),
        }
    })
    .await
}

/// Answers without having run its transaction.
async fn forgetful(_tx: Tx) -> Answer {
    Answer::json(200, &json!({ "done": "nothing" }))
}

async fn panics() -> Answer {
    panic!("told to")
}

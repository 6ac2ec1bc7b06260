//! kill -9 in the middle of load, of the server and of PostgreSQL, with clients that try again as SDKs do: with the same
//! key, for as long as they have no answer. Afterwards the books balance, each key has one charge, and each answer that
//! was ever given is given again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use oncepay::db;
use reqwest::Method;

use crate::support::{
    CHARGE, Call, OwnCluster, Program, Random, Reply, TestApp, TestDatabase, eventually, fresh_key, http,
};

const CLIENTS: usize = 8;

/// How long a client keeps trying before the test has failed.
const PATIENCE: Duration = Duration::from_secs(40);

/// Clients that charge, as fast as they can, until they are told to stop.
struct Load {
    address: Mutex<SocketAddr>,
    api_key: String,
    client: reqwest::Client,
    stop: AtomicBool,
    /// The answers that said it is done, by key.
    done: Mutex<BTreeMap<String, Reply>>,
    retries: Mutex<usize>,
}

impl Load {
    fn new(address: SocketAddr, database: &TestDatabase) -> Arc<Self> {
        let client = http().timeout(Duration::from_secs(30)).build().unwrap();
        Arc::new(Self {
            address: Mutex::new(address),
            api_key: database.api_key.clone(),
            client,
            stop: AtomicBool::new(false),
            done: Mutex::default(),
            retries: Mutex::default(),
        })
    }

    fn start(self: &Arc<Self>) -> Vec<tokio::task::JoinHandle<()>> {
        let client = |_| {
            let load = Arc::clone(self);
            tokio::spawn(async move {
                while !load.stop.load(Ordering::SeqCst) {
                    let key = fresh_key();
                    let reply = load.charge_until_answered(&key).await;
                    load.done.lock().unwrap().insert(key, reply);
                }
            })
        };
        (0..CLIENTS).map(client).collect()
    }

    fn call(&self, key: &str) -> Call {
        let url = format!("http://{}/v1/charges", self.address.lock().unwrap());
        let call = Call::new(&self.client, Method::POST, url, &self.api_key).key(key);
        call.form(CHARGE)
    }

    /// What SDKs do: the same key again after a broken connection, a conflict and a fault of the server.
    async fn charge_until_answered(&self, key: &str) -> Reply {
        let begun = Instant::now();
        loop {
            match self.call(key).try_send().await {
                Ok(reply) if reply.status == 409 || reply.status >= 500 => {
                    assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"), "{reply:?}");
                }
                Ok(reply) => return reply.expect(201),
                Err(_) => {}
            }
            assert!(begun.elapsed() < PATIENCE, "a client waits in vain");
            *self.retries.lock().unwrap() += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn answered(&self) -> usize {
        self.done.lock().unwrap().len()
    }

    /// Waits until so many more are done, in real load and not at its edge.
    async fn go_on_for(self: &Arc<Self>, count: usize) {
        let load = Arc::clone(self);
        let goal = self.answered() + count;
        tokio::task::spawn_blocking(move || eventually("more load", || load.answered() >= goal))
            .await
            .unwrap();
    }

    async fn check_all(&self, database: &TestDatabase) {
        database.assert_clean();
        let done = self.done.lock().unwrap().clone();
        assert_eq!(database.count("charges"), i64::try_from(done.len()).unwrap(), "one charge for each key");
        assert_eq!(database.count("idempotency_records"), database.count("charges"));
        for (key, first) in &done {
            let made = database.number(&format!(
                "SELECT count(*) AS number FROM events WHERE type = 'charge.succeeded' AND idempotency_key = '{key}'"
            ));
            assert_eq!(made, 1, "{key}");
            let again = self.call(key).send().await.expect(201);
            assert!(again.is_replay());
            assert_eq!(again.bytes, first.bytes, "{key}");
        }
        assert!(*self.retries.lock().unwrap() > 0, "nobody noticed anything: there was no storm");
    }

    async fn end(&self, clients: Vec<tokio::task::JoinHandle<()>>) {
        self.stop.store(true, Ordering::SeqCst);
        for client in clients {
            client.await.expect("a client got its answer");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_of_the_server_in_the_middle_of_load_loses_and_doubles_nothing() {
    let mut random = Random::new(Random::seed());
    let database = Arc::new(TestDatabase::new());
    let mut program = Program::start(&database, &[]);
    let load = Load::new(program.address, &database);
    let clients = load.start();
    for _ in 0..6 {
        load.go_on_for(20 + random.below(40)).await;
        program.kill();
        program = Program::start(&database, &[]);
        *load.address.lock().unwrap() = program.address;
    }
    load.go_on_for(20).await;
    load.end(clients).await;
    load.check_all(&database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_of_postgresql_in_the_middle_of_load_loses_and_doubles_nothing_and_the_server_survives() {
    let mut cluster = OwnCluster::start();
    let database = Arc::new(cluster.database());
    let app = TestApp::with(|builder| builder.database = Some(Arc::clone(&database)));
    let load = Load::new(app.address, &database);
    let clients = load.start();
    for _ in 0..3 {
        load.go_on_for(30).await;
        cluster.kill();
        cluster.restart();
    }
    load.go_on_for(30).await;
    load.end(clients).await;
    load.check_all(&database).await;
}

/// Sends so many charges at once, and gives the answers with how long each took.
async fn charges_at_once(app: &TestApp, count: usize) -> Vec<(Reply, Duration)> {
    let charge = |_| async {
        let begun = Instant::now();
        let call = app.post("/v1/charges").key(&fresh_key()).form(CHARGE);
        (call.send().await, begun.elapsed())
    };
    futures_util::future::join_all((0..count).map(charge)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgresql_is_stopped_every_request_is_503_in_time_and_afterwards_all_is_well_again() {
    let mut cluster = OwnCluster::start();
    let database = Arc::new(cluster.database());
    for warm in [true, false] {
        let app = TestApp::with(|builder| builder.database = Some(Arc::clone(&database)));
        if warm {
            // Connections lie in the pool, and will be found dead.
            charges_at_once(&app, 8).await.into_iter().for_each(|(reply, _)| drop(reply.expect(201)));
        }
        cluster.stop();
        for count in [1, 60] {
            let replies = charges_at_once(&app, count).await;
            println!("{count} at once, warm {warm}: {:?}", replies.iter().map(|(_, elapsed)| elapsed).max());
            for (reply, elapsed) in replies {
                assert!(elapsed < Duration::from_millis(2_500), "{count} at once, warm {warm}: {elapsed:?}");
                let reply = reply.expect_error(503, "");
                assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"));
            }
        }
        let read = app.get("/v1/charges").send().await.expect_error(503, "");
        assert_eq!(read.body["error"]["type"], "api_error");
        app.get("/readyz").send().await.expect_error(503, "");
        app.get("/healthz").send().await.expect(200);
        app.get("/metrics").send().await.expect(200);
        cluster.restart();
        let begun = Instant::now();
        while app.get("/readyz").send().await.status != 200 {
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "no service {:?} after the start",
                begun.elapsed()
            );
        }
        for (reply, _) in charges_at_once(&app, 8).await {
            reply.expect(201);
        }
    }
    database.assert_clean();
}

#[tokio::test]
async fn connections_that_died_while_they_lay_in_the_pool_cost_no_request_an_error() {
    let app = TestApp::spawn();
    for _ in 0..5 {
        charges_at_once(&app, 16).await.into_iter().for_each(|(reply, _)| drop(reply.expect(201)));
        let ended = app.database.number(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 5000)) AS number FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        assert!(ended > 0);
        app.get("/v1/charges").send().await.expect(200);
        app.get("/readyz").send().await.expect(200);
    }
    app.database.assert_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_postgresql_is_503_in_bounded_time_and_thawed_it_answers_what_it_then_did() {
    let app = TestApp::spawn();
    charges_at_once(&app, 8).await.into_iter().for_each(|(reply, _)| drop(reply.expect(201)));
    let frozen = Frozen::all_of(&app.database);
    let keys: Vec<String> = (0..12).map(|_| fresh_key()).collect();
    let call = |key: &String| app.post("/v1/charges").key(key).form(CHARGE);
    let begun = Instant::now();
    let replies = futures_util::future::join_all(keys.iter().map(|key| call(key).send())).await;
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    for reply in replies {
        let reply = reply.expect_error(503, "");
        assert_eq!(reply.header("Stripe-Should-Retry"), Some("true"));
    }
    app.get("/readyz").send().await.expect_error(503, "");
    app.get("/healthz").send().await.expect(200);
    drop(frozen);
    for key in &keys {
        let begun = Instant::now();
        while call(key).send().await.status != 201 {
            assert!(begun.elapsed() < Duration::from_secs(10), "no service after the thaw");
        }
    }
    assert_eq!(app.database.count("charges"), 20);
    app.database.assert_clean();
}

/// Server processes that stand still; they go on when this is dropped.
struct Frozen(Vec<i32>);

impl Frozen {
    /// Freezes whoever serves the pool of the test's server.
    fn all_of(database: &TestDatabase) -> Self {
        let pids = "SELECT string_agg(pid::text, ' ') AS text FROM pg_stat_activity \
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let pids = database.text(pids).split(' ').map(|pid| pid.parse().unwrap()).collect();
        let frozen = Self(pids);
        frozen.signal(libc::SIGSTOP);
        frozen
    }

    fn signal(&self, signal: i32) {
        for pid in &self.0 {
            // SAFETY: kill only sends a signal, to a server process of this test's database.
            unsafe { libc::kill(*pid, signal) };
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.signal(libc::SIGCONT);
    }
}

#[tokio::test]
async fn connections_whose_server_was_killed_cost_no_request_an_error() {
    let cluster = OwnCluster::start();
    let database = Arc::new(cluster.database());
    let app = TestApp::with(|builder| builder.database = Some(Arc::clone(&database)));
    for round in 0..6 {
        charges_at_once(&app, 16).await.into_iter().for_each(|(reply, _)| drop(reply.expect(201)));
        let victim = database.number(
            "SELECT min(pid)::bigint AS number FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state = 'idle'",
        );
        // SAFETY: kill only sends a signal, to a process of the test's own cluster. The postmaster then ends all others
        // too, and starts anew.
        assert_eq!(unsafe { libc::kill(i32::try_from(victim).unwrap(), libc::SIGKILL) }, 0);
        eventually("the end of the victim", || PgConnection::establish(&database.url).is_err());
        eventually("the server", || PgConnection::establish(&database.url).is_ok());
        if round % 2 == 0 {
            for (reply, _) in charges_at_once(&app, 16).await {
                reply.expect(201);
            }
        } else {
            app.get("/v1/charges").send().await.expect(200);
        }
    }
    database.assert_clean();
}

#[test]
fn a_server_that_recovers_from_the_death_of_a_process_is_waited_for_and_can_be_stopped() {
    let mut cluster = OwnCluster::start();
    let database = cluster.database();
    let kill_a_process = || {
        let _victim = database.connect();
        let pid = database.number(
            "SELECT pid::bigint AS number FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        // SAFETY: kill only sends a signal, to a process of the test's own cluster.
        assert_eq!(unsafe { libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL) }, 0);
    };
    for _ in 0..3 {
        kill_a_process();
        std::thread::sleep(Duration::from_millis(20));
        db::connect(&database.url).expect("it comes to itself");
    }
    kill_a_process();
    std::thread::sleep(Duration::from_millis(20));
    let begun = Instant::now();
    cluster.stop();
    cluster.restart();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(database.count("accounts"), 1);
}

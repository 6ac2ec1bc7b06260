//! The database: a fixed set of threads, one for each connection of the pool, and the one way onto them.
//!
//! diesel blocks, actix does not, and this module is the only place where a request crosses from one to the
//! other. It crosses once: all that a request does in the database is one job on one thread. So no await point
//! can split a transaction, a client that hangs up changes nothing, and no request holds one connection while
//! it waits for another. The wait for a free thread is asynchronous and ends after [`LEASE_TIMEOUT`].
//!
//! It knows neither requests nor nouns.

pub mod migrate;
mod rows;
mod statement;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::connection::{AnsiTransactionManager, CacheSize, SimpleConnection, TransactionManager};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, CustomizeConnection, Pool};
use tokio::sync::{Semaphore, oneshot};

pub use rows::update_row;
pub(crate) use rows::{page_of, rows};
pub(crate) use statement::one_of;
pub use statement::{NewestOfEach, Part, Together};

use crate::error::{Error, is_lost};

/// The longest wait for a thread and its connection together; past it the answer is 503, which so comes within 2 s.
pub const LEASE_TIMEOUT: Duration = Duration::from_millis(1500);

/// What libpq is told besides the URL, unless that says something itself: a server whose machine has vanished is
/// given up, both when connecting and in the middle of a statement.
const CONNECTION_LIMITS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "10000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
    ("keepalives_count", "3"),
];

/// The longest wait for a job that has begun. Statements are bounded by the server ([`SESSION`], [`BEGIN`]), so this
/// is reached only when the server itself hangs; whether the job commits is then unknown.
const JOB_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the start of the program waits for a server that recovers.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(60);

/// The bounds of statements that stand in no transaction of ours, such as a look-up.
const SESSION: &str = "SET lock_timeout = '1s'; SET statement_timeout = '5s'";

/// How the plans of prepared statements are made, which are kept: one that is made while a table is nearly empty would
/// read it from end to end, and go on so when it has a million rows. All tables that grow have indexes for what is asked
/// of them, so such a plan is never wanted; and where one cannot be avoided, its price is no reason to compile (`jit`).
const PLANNING: &str = "SET enable_seqscan = off; SET jit = off";

/// Opens a transaction that writes. READ COMMITTED is relied upon: each statement sees what was committed
/// before it began, so what is read under a lock is current.
pub const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '250ms'; SET LOCAL statement_timeout = '5s'";

/// Opens a transaction that only reads. What a list asks is planned for its very values and the tables as they are, which
/// differ more than the planning costs; what a transaction writes goes by keys, and keeps its plans.
pub const BEGIN_READ_ONLY: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; \
     SET LOCAL statement_timeout = '5s'; SET LOCAL plan_cache_mode = force_custom_plan";

/// How to reach the database.
#[derive(Clone)]
pub struct Options {
    pub url: String,
    pub pool_size: u32,
    /// Off behind a pooler in transaction mode: there, one client's prepared statement can meet another's.
    pub statement_cache: bool,
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} connections, statement cache: {}", self.pool_size, self.statement_cache)
    }
}

/// The threads and their pool. Cloning shares them; dropping the last one lets what runs end.
#[derive(Clone)]
pub struct Database(Arc<Threads>);

struct Threads {
    options: Options,
    jobs: crossbeam_channel::Sender<Job>,
    leases: Arc<Semaphore>,
}

/// A job did not end in time. It may end later, and commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

impl From<TimedOut> for Error {
    /// For a job that only reads.
    fn from(_: TimedOut) -> Self {
        Error::Unavailable("the job did not end in time".to_owned())
    }
}

type Job = Box<dyn FnOnce(&Pool<ConnectionManager<PgConnection>>) + Send>;

impl Database {
    /// Starts the threads. Connections are made as they are needed, so this succeeds without a server too.
    pub fn open(options: Options) -> Self {
        let options = Options { url: with_limits(&options.url), ..options };
        let (jobs, queue) = crossbeam_channel::unbounded::<Job>();
        let pool = Pool::builder()
            .max_size(options.pool_size)
            .min_idle(Some(0))
            .test_on_check_out(false)
            .connection_timeout(LEASE_TIMEOUT)
            .connection_customizer(Box::new(options.clone()))
            // A failure is reported where it is met; the pool would repeat it every second.
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build_unchecked(ConnectionManager::new(&options.url));
        for number in 0..options.pool_size {
            let (queue, pool) = (queue.clone(), pool.clone());
            std::thread::Builder::new()
                .name(format!("database-{number}"))
                .spawn(move || queue.iter().for_each(|job| job(&pool)))
                .expect("the system has room for a few threads");
        }
        let leases = Arc::new(Semaphore::new(options.pool_size as usize));
        Self(Arc::new(Threads { options, jobs, leases }))
    }

    /// Runs `work` as one job on one database thread. It ends even if this future is dropped.
    ///
    /// # Errors
    /// [`TimedOut`] when it did not end in time. Inside: what `work` returns; [`Error::Unavailable`] when no connection
    /// was to be had in time, and nothing ran; [`Error::Internal`] when it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PgConnection) -> Result<T, Error> + Send + 'static,
    ) -> Result<Result<T, Error>, TimedOut> {
        let deadline = Instant::now() + LEASE_TIMEOUT;
        let wait = tokio::time::timeout_at(deadline.into(), Arc::clone(&self.0.leases).acquire_owned());
        let lease = match wait.await {
            Ok(lease) => lease.expect("no job is sent after the end"),
            Err(_) => return Ok(Err(Error::Unavailable("no database thread was free in time".to_owned()))),
        };
        let (answer, outcome) = oneshot::channel();
        let job: Job = Box::new(move |pool| {
            let time_left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let result = match pool.get_timeout(time_left) {
                Ok(mut connection) => catch_unwind(AssertUnwindSafe(|| work(&mut connection)))
                    .unwrap_or_else(|panic| Err(Error::Internal(panicked(&*panic)))),
                Err(error) => Err(Error::Unavailable(format!("no connection: {error}"))),
            };
            drop(lease);
            // Nobody listens when the client has gone; what was committed stays committed.
            let _ = answer.send(result);
        });
        self.0.jobs.send(job).expect("the threads live as long as the sender");
        match tokio::time::timeout(JOB_TIMEOUT, outcome).await {
            Ok(Ok(result)) => Ok(result),
            _ => Err(TimedOut),
        }
    }

    /// Waits until every job has ended. No job may be sent afterwards.
    pub async fn close(&self) {
        let _ = self.0.leases.acquire_many(self.0.options.pool_size).await;
        self.0.leases.close();
    }

    /// Does `statement`, the first of a job or its BEGIN; should the connection be lost, once more on a fresh one, since
    /// the one from the pool may have died while it lay idle. Nothing else is ever tried twice.
    pub fn with_reconnect<T>(
        &self,
        connection: &mut PgConnection,
        mut statement: impl FnMut(&mut PgConnection) -> QueryResult<T>,
    ) -> Result<T, Error> {
        match statement(connection) {
            Err(error) if is_lost(&error) => {
                *connection = self.connect()?;
                Ok(statement(connection)?)
            }
            done => Ok(done?),
        }
    }

    fn connect(&self) -> Result<PgConnection, Error> {
        let unavailable = |error: String| Error::Unavailable(format!("no connection: {error}"));
        let mut connection =
            PgConnection::establish(&self.0.options.url).map_err(|error| unavailable(error.to_string()))?;
        self.0.options.on_acquire(&mut connection).map_err(|error| unavailable(error.to_string()))?;
        Ok(connection)
    }
}

impl CustomizeConnection<PgConnection, diesel::r2d2::Error> for Options {
    fn on_acquire(&self, connection: &mut PgConnection) -> Result<(), diesel::r2d2::Error> {
        if self.statement_cache {
            connection.batch_execute(PLANNING).map_err(diesel::r2d2::Error::QueryError)?;
        } else {
            connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        }
        // error.rs knows a lock timeout by its English text. Only a superuser may set this, and only a server
        // that was set up in another language needs it, so a refusal is no reason to stop.
        let _ = diesel::sql_query("SET lc_messages = 'C'").execute(connection);
        connection.batch_execute(SESSION).map_err(diesel::r2d2::Error::QueryError)
    }
}

/// A libpq URL or list of `name=value`, with [`CONNECTION_LIMITS`].
fn with_limits(url: &str) -> String {
    let url = url.trim_end_matches('?');
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let mut limited = url.to_owned();
    for (name, value) in CONNECTION_LIMITS.iter().filter(|(name, _)| !url.contains(name)) {
        limited.push(match is_url {
            true if limited.contains('?') => '&',
            true => '?',
            false => ' ',
        });
        limited.push_str(&format!("{name}={value}"));
    }
    limited
}

/// Connects; a server that starts or recovers is waited for.
///
/// # Errors
/// It cannot be reached, or does not come to itself.
pub fn connect(url: &str) -> ConnectionResult<PgConnection> {
    let deadline = Instant::now() + RECOVERY_PATIENCE;
    loop {
        match PgConnection::establish(url) {
            Err(ConnectionError::BadConnection(why))
                if why.contains("the database system is") && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            ended => return ended,
        }
    }
}

/// Begins a transaction with `sql`, through diesel's manager, so that a nested `transaction()` is a savepoint.
///
/// # Errors
/// What the statement reports.
pub fn begin(connection: &mut PgConnection, sql: &str) -> QueryResult<()> {
    AnsiTransactionManager::begin_transaction_sql(connection, sql)
}

/// Commits.
///
/// # Errors
/// [`Error::OutcomeUnknown`] if the connection broke, since the server may have committed before; else what
/// the server said, after a rollback.
pub fn commit(connection: &mut PgConnection, keyed: bool) -> Result<(), Error> {
    use diesel::result::DatabaseErrorKind::{ClosedConnection, UnableToSendCommand, Unknown};
    use diesel::result::Error::{BrokenTransactionManager, DatabaseError, RollbackErrorOnCommit};
    AnsiTransactionManager::commit_transaction(connection).map_err(|error| match &error {
        RollbackErrorOnCommit { .. }
        | BrokenTransactionManager
        | DatabaseError(ClosedConnection | UnableToSendCommand | Unknown, _) => {
            Error::OutcomeUnknown { keyed, detail: format!("COMMIT: {error}") }
        }
        _ => Error::from(error),
    })
}

/// Fails if an earlier statement of this transaction did.
///
/// # Errors
/// The transaction is lost.
pub fn prove_alive(connection: &mut PgConnection) -> QueryResult<()> {
    diesel::select(diesel::dsl::sql::<diesel::sql_types::Bool>("true"))
        .get_result::<bool>(connection)
        .map(drop)
}

/// Rolls back. A connection on which that fails is dropped by the pool, and the server then does the same.
pub fn rollback(connection: &mut PgConnection) {
    let _ = AnsiTransactionManager::rollback_transaction(connection);
}

/// What a panic said, for the log.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("with a value that is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_added_to_urls_of_both_kinds_and_override_nothing() {
        let all = "connect_timeout=2&tcp_user_timeout=10000&keepalives_idle=5&keepalives_interval=2&keepalives_count=3";
        assert_eq!(with_limits("postgres://host/db"), format!("postgres://host/db?{all}"));
        assert_eq!(with_limits("postgresql:///db?host=/tmp"), format!("postgresql:///db?host=/tmp&{all}"));
        assert_eq!(
            with_limits("host=/tmp dbname=db"),
            format!("host=/tmp dbname=db {}", all.replace('&', " "))
        );
        let own = with_limits("postgres://host/db?connect_timeout=9");
        assert!(own.contains("connect_timeout=9&tcp_user_timeout"));
    }
}

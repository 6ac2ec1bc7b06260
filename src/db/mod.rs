//! The database: a fixed set of threads, one for each connection of the pool, and [`Database::run`], which sends jobs to
//! them.
//!
//! diesel blocks and actix does not. A request crosses from one to the other here and nowhere else, and it crosses once:
//! everything that it does in the database is one job on one thread. So no await point can split a transaction, a client
//! that hangs up changes nothing, and no request holds one connection while it waits for another. The wait for a free
//! thread is asynchronous and ends after [`LEASE_TIMEOUT`].
//!
//! This module knows neither requests nor nouns.

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

/// The longest wait for a thread and its connection together; after it the answer is 503, within 2 s of the request.
pub const LEASE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The parameters that are added to the URL unless it sets them itself.
///
/// With them libpq gives up on a server whose machine has vanished, both while it connects and in the middle of a
/// statement.
const CONNECTION_LIMITS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "10000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
    ("keepalives_count", "3"),
];

/// The longest wait for a job that has begun.
///
/// The server limits the time of statements ([`SESSION`], [`BEGIN`]), so this limit is reached only when the server itself
/// hangs. Whether the job commits is then unknown.
const JOB_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the program waits, when it starts, for a server that recovers.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(60);

/// The limits of statements outside of our transactions, such as a look-up.
const SESSION: &str = "SET lock_timeout = '1s'; SET statement_timeout = '5s'";

/// The planner settings of each connection.
///
/// Prepared statements keep their plans. One made on a nearly empty table would scan it, and would still scan it at a
/// million rows. Every table that grows has an index for each of our queries, so a scan is never wanted. Where a scan
/// cannot be avoided, `enable_seqscan = off` makes its cost look huge, which must not start a compilation (`jit`).
const PLANNING: &str = "SET enable_seqscan = off; SET jit = off";

/// Opens a transaction that writes.
///
/// The rules depend on READ COMMITTED: each statement sees what was committed before it began, so a row that is read
/// under a lock is current.
pub const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '250ms'; SET LOCAL statement_timeout = '5s'";

/// Opens a transaction that only reads.
///
/// A list is planned anew for its values, because the best plan differs from one list to the next, and a bad one costs more
/// than the planning. Transactions that write find their rows by keys, so they use cached plans.
pub const BEGIN_READ_ONLY: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; \
     SET LOCAL statement_timeout = '5s'; SET LOCAL plan_cache_mode = force_custom_plan";

/// How to reach the database.
#[derive(Clone)]
pub struct Options {
    pub url: String,
    pub pool_size: u32,
    /// Must be off behind a pooler in transaction mode, where clients would see each other's prepared statements.
    pub statement_cache: bool,
}

/// Leaves out the URL, which may hold a password.
impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} connections, statement cache: {}", self.pool_size, self.statement_cache)
    }
}

/// A handle to the threads and their pool; the threads end their jobs and stop when the last handle is dropped.
#[derive(Clone)]
pub struct Database(Arc<Threads>);

struct Threads {
    options: Options,
    jobs: crossbeam_channel::Sender<Job>,
    leases: Arc<Semaphore>,
}

/// The error of a job that did not end in time; it may still end later, and commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

impl From<TimedOut> for Error {
    /// Correct only for a job that reads: it left nothing behind.
    fn from(_: TimedOut) -> Self {
        Error::Unavailable("the job did not end in time".to_owned())
    }
}

type Job = Box<dyn FnOnce(&Pool<ConnectionManager<PgConnection>>) + Send>;

impl Database {
    /// Starts the threads; connections are made when they are needed, so this succeeds even without a server.
    pub fn open(options: Options) -> Self {
        let options = Options { url: with_limits(&options.url), ..options };
        let (jobs, queue) = crossbeam_channel::unbounded::<Job>();
        let pool = Pool::builder()
            .max_size(options.pool_size)
            .min_idle(Some(0))
            .test_on_check_out(false)
            .connection_timeout(LEASE_TIMEOUT)
            .connection_customizer(Box::new(options.clone()))
            // The job that needs the connection reports the failure. The pool would log it every second.
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build_unchecked(ConnectionManager::new(&options.url));
        for number in 0..options.pool_size {
            let (queue, pool) = (queue.clone(), pool.clone());
            std::thread::Builder::new()
                .name(format!("database-{number}"))
                .spawn(move || queue.iter().for_each(|job| job(&pool)))
                .expect("the system can start a few threads");
        }
        let leases = Arc::new(Semaphore::new(options.pool_size as usize));
        Self(Arc::new(Threads { options, jobs, leases }))
    }

    /// Runs `work` as one job on one database thread; the job runs to its end even if this future is dropped.
    ///
    /// # Errors
    /// The outer error is [`TimedOut`] if the job did not end in time. The inner error is that of `work`,
    /// [`Error::Unavailable`] if no connection was free in time and nothing ran, or [`Error::Internal`] if `work` panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PgConnection) -> Result<T, Error> + Send + 'static,
    ) -> Result<Result<T, Error>, TimedOut> {
        let deadline = Instant::now() + LEASE_TIMEOUT;
        let wait = tokio::time::timeout_at(deadline.into(), Arc::clone(&self.0.leases).acquire_owned());
        let lease = match wait.await {
            Ok(lease) => lease.expect("no job is sent after `close`"),
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
            // This fails when the client has hung up. The job has committed or not, and that stands.
            let _ = answer.send(result);
        });
        self.0.jobs.send(job).expect("the threads live as long as the sender");
        match tokio::time::timeout(JOB_TIMEOUT, outcome).await {
            Ok(Ok(result)) => Ok(result),
            _ => Err(TimedOut),
        }
    }

    /// Waits until every job has ended; no job may be sent afterwards.
    pub async fn close(&self) {
        let _ = self.0.leases.acquire_many(self.0.options.pool_size).await;
        self.0.leases.close();
    }

    /// Runs `statement`, and once more on a new connection if the pool's one was lost while it was idle.
    ///
    /// `statement` must be the first of a job, or its `BEGIN`. No other statement is ever run twice.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is no new connection, and the errors of `statement`.
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
            result => Ok(result?),
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
        // src/error/mod.rs recognises a lock timeout by its English text. Only a server with messages in another language
        // needs this setting, and only a superuser may change it, so a refusal is ignored.
        let _ = diesel::sql_query("SET lc_messages = 'C'").execute(connection);
        connection.batch_execute(SESSION).map_err(diesel::r2d2::Error::QueryError)
    }
}

/// Adds [`CONNECTION_LIMITS`] to a libpq URL or to a list of `name=value`.
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

/// Connects, and waits up to a minute for a server that starts or recovers.
///
/// # Errors
/// The server cannot be reached, or it does not recover in time.
pub fn connect(url: &str) -> ConnectionResult<PgConnection> {
    let deadline = Instant::now() + RECOVERY_PATIENCE;
    loop {
        match PgConnection::establish(url) {
            Err(ConnectionError::BadConnection(why))
                if why.contains("the database system is") && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            result => return result,
        }
    }
}

/// Begins a transaction with `sql`, through diesel's manager, so that a nested `transaction()` is a savepoint.
pub fn begin(connection: &mut PgConnection, sql: &str) -> QueryResult<()> {
    AnsiTransactionManager::begin_transaction_sql(connection, sql)
}

/// Commits the transaction.
///
/// # Errors
/// [`Error::OutcomeUnknown`] if the connection broke, because the server may have committed before that. Any other error
/// is the server's, and the transaction is rolled back.
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

/// Checks that no earlier statement of this transaction has failed.
///
/// # Errors
/// The transaction has failed and can only be rolled back.
pub fn check_transaction(connection: &mut PgConnection) -> QueryResult<()> {
    diesel::select(diesel::dsl::sql::<diesel::sql_types::Bool>("true"))
        .get_result::<bool>(connection)
        .map(drop)
}

/// Rolls the transaction back. If that fails, the pool drops the connection, and the server rolls back.
pub fn rollback(connection: &mut PgConnection) {
    let _ = AnsiTransactionManager::rollback_transaction(connection);
}

/// The message of a panic, for the log.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("with a value that is not a text"))
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

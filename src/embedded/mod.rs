//! The private PostgreSQL: a cluster of our own, so that nothing but PostgreSQL's programs must be installed.
//!
//! Several processes may use one data directory. The first one starts the server, the others attach to it, and the
//! last one to leave stops it. A process that is killed leaves the server running for the next one to attach to.
//!
//! ```text
//! data/          the cluster, made as data.new/ and renamed when it is complete
//! socket/        the server's Unix socket; in /tmp when a client could not use its path
//! postgres.log   what the server and initdb say
//! start.lock     held while somebody creates, starts or stops the server
//! users.lock     shared by everybody who uses the server
//! ```
//!
//! In reading order: this file says who starts and stops the server, `postmaster` how, and `machine` with which
//! programs, as which user and where.

mod machine;
mod postmaster;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;

use machine::Place;
use postmaster::Server;

/// A share in the private server: it runs at least as long as this value lives.
///
/// Dropping it leaves, like [`Cluster::stop`].
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    /// The postmaster, if it is our child and not that of another user of the cluster.
    child: Option<Child>,
    start_lock: File,
    users_lock: File,
}

impl Cluster {
    /// Starts (or attaches to) the private cluster in `data_dir`, creating it on first use.
    ///
    /// It blocks until the server answers, and waits for others that start or stop the same server. When we are root
    /// and the server's unprivileged user cannot reach `data_dir`, the cluster is kept under `/var/lib/oncepay`.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. A cluster that exists is never changed or removed by a start that fails.
    pub fn start(data_dir: &Path) -> Result<Cluster, StartError> {
        let place = Place::choose(data_dir)?;
        let start_lock = place.open_file("start.lock")?;
        let users_lock = place.open_file("users.lock")?;
        start_lock.lock().map_err(failed("lock", place.home()))?;
        users_lock.lock_shared().map_err(failed("lock", place.home()))?;

        let server = Server::prepare(place, &start_lock)?;
        let child = server.bring_up()?;

        start_lock.unlock().map_err(failed("unlock", server.home()))?;
        Ok(Cluster { server, child, start_lock, users_lock })
    }

    /// The libpq URL of `database` on this cluster, over its Unix socket, as the superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.server.url(database)
    }

    /// Leaves the cluster; the last one to leave stops the server (fast shutdown) and waits for it.
    pub fn stop(self) {
        drop(self);
    }

    /// The process id of the postmaster; `None` when it does not run (any more).
    #[must_use]
    pub fn postmaster_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    /// The directory of PostgreSQL's programs (`psql` and so on) that belong to this server.
    #[must_use]
    pub fn binaries(&self) -> &Path {
        self.server.binaries()
    }

    /// The directory that holds the cluster, its locks and its log.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.server.home()
    }

    fn leave(&mut self) -> io::Result<()> {
        self.start_lock.lock()?;
        // Our share becomes exclusive only if nobody else has one, and nobody can join while we hold the start lock.
        match self.users_lock.try_lock() {
            Ok(()) => self.server.shut_down(),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if let Some(child) = &mut self.child {
            child.try_wait()?;
        }
        // Closing the files is not enough: a process that another thread is about to start may still share them.
        self.users_lock.unlock()?;
        self.start_lock.unlock()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            let home = self.home().display();
            log::error!("cannot leave the private PostgreSQL in {home}: {error}");
        }
    }
}

/// Makes the data directory as the cluster needs it, for what else is kept there before the cluster starts. Everybody may
/// search it, since root's server runs as another user; what it holds is private itself.
///
/// # Errors
///
/// [`StartError::Io`].
pub fn make_directory(data_dir: &Path) -> Result<(), StartError> {
    machine::make_home(data_dir).map(drop)
}

/// Whether there is a cluster in a data directory, or where root keeps it instead. Nothing is made.
#[must_use]
pub fn has_cluster(data_dir: &Path) -> bool {
    machine::homes(data_dir).iter().any(|home| home.join("data/PG_VERSION").exists())
}

/// Why the private PostgreSQL could not be started, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No programs of PostgreSQL 15 or newer were found.
    #[error(
        "PostgreSQL 15 or newer is not installed: run `apt-get install postgresql` as root (Debian, Ubuntu) or \
         `brew install postgresql@17` (macOS), or set DATABASE_URL to use another server"
    )]
    NoBinaries,

    /// The cluster exists, but the programs of its major version do not.
    #[error(
        "the cluster in {} was made by PostgreSQL {major}, which is not installed: install it (Debian, Ubuntu: \
         `apt-get install postgresql-{major}` as root), or choose another --data-dir", path.display()
    )]
    OtherMajor { path: PathBuf, major: u32 },

    /// A directory stands where the cluster should be, and is none.
    #[error("{} is not a PostgreSQL cluster: choose another --data-dir, or move it away", .0.display())]
    NotACluster(PathBuf),

    /// We are root, and there is no other user to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody` to run it as: \
         add one with `useradd --system postgres`"
    )]
    NoUnprivilegedUser,

    /// The cluster's own user cannot reach it.
    #[error(
        "the cluster in {} belongs to user {uid}, who cannot reach that directory or run the server's programs: \
         let that user search every directory of the path (chmod +x)", path.display()
    )]
    Unreachable { path: PathBuf, uid: u32 },

    /// Another user made this file or directory.
    #[error("{} belongs to user {uid}: run oncepay as that user, or choose another --data-dir", path.display())]
    NotOurs { path: PathBuf, uid: u32 },

    /// A link or special file, where writing could change a file elsewhere.
    #[error("{} is a link or a special file, and it is not safe to use: look at it, then remove it", .0.display())]
    Unsafe(PathBuf),

    /// `initdb` failed.
    #[error("initdb could not create a cluster in {}. It said:\n{output}", path.display())]
    Initdb { path: PathBuf, output: String },

    /// The server ended while it started.
    #[error("PostgreSQL did not start. Its log, {}, says:\n{output}", log.display())]
    Ended { log: PathBuf, output: String },

    /// The server, or what is left of the one before it, keeps us waiting.
    #[error(
        "PostgreSQL is not ready after {seconds} s: see {}, and start again to go on waiting", log.display()
    )]
    TooSlow { log: PathBuf, seconds: u64 },

    /// The operating system refused something.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io { action: &'static str, path: PathBuf, cause: io::Error },
}

/// Names what failed, for `map_err`.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StartError {
    move |cause| StartError::Io { action, path: path.to_owned(), cause }
}

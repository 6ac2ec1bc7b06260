//! The private PostgreSQL: a cluster that oncepay creates and runs itself, so that only PostgreSQL's programs need to be
//! installed.
//!
//! Several processes may use one data directory. The first one starts the server, the others attach to it, and the
//! last one to leave stops it. A process that is killed leaves the server running for the next one to attach to.
//!
//! ```text
//! data/          the cluster, made as data.new/ and renamed when it is complete
//! socket/        the server's Unix socket; in /tmp when a client could not use its path
//! postgres.log   the output of the server and of initdb
//! start.lock     locked while a process creates, starts or stops the server
//! users.lock     locked, shared, by each process that uses the server
//! ```
//!
//! This file decides which process starts and stops the server, `postmaster` does it, and `machine` finds the programs,
//! the user and the directory.

mod machine;
mod postmaster;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;

use machine::Place;
use postmaster::Server;

/// A use of the private server, which runs at least as long as this value lives; dropping it is [`Cluster::stop`].
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    /// The postmaster, if this process started it.
    child: Option<Child>,
    start_lock: File,
    users_lock: File,
}

impl Cluster {
    /// Starts the private cluster in `data_dir` or attaches to it, and creates it if it does not exist.
    ///
    /// This blocks until the server answers, and while another process starts or stops the same server. If we are root and
    /// the server's unprivileged user cannot reach `data_dir`, the cluster is created under `/var/lib/oncepay`.
    ///
    /// # Errors
    ///
    /// See [`StartError`]. A start that fails never changes or removes an existing cluster.
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

    /// Ends the use; the last process to do so stops the server (fast shutdown) and waits for its end.
    pub fn stop(self) {
        drop(self);
    }

    /// The process id of the postmaster; `None` if it does not run.
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
        // Our shared lock can become exclusive only if no other process holds one. No process can join while we hold the
        // start lock.
        match self.users_lock.try_lock() {
            Ok(()) => self.server.shut_down(),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if let Some(child) = &mut self.child {
            child.try_wait()?;
        }
        // Closing the files would not release the locks if another thread is starting a process that inherits the files.
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

/// Creates the data directory with the mode that the cluster needs, for files that are written before the cluster starts.
///
/// Every user may search the directory, because root's server runs as another user. The files in it are private themselves.
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

    /// The cluster exists, but the programs of its major version are not installed.
    #[error(
        "the cluster in {} was made by PostgreSQL {major}, which is not installed: install it (Debian, Ubuntu: \
         `apt-get install postgresql-{major}` as root), or choose another --data-dir", path.display()
    )]
    OtherMajor { path: PathBuf, major: u32 },

    /// The directory of the cluster has other contents.
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

    /// Another user owns this file or directory.
    #[error("{} belongs to user {uid}: run oncepay as that user, or choose another --data-dir", path.display())]
    NotOurs { path: PathBuf, uid: u32 },

    /// A link or special file, where writing could change a file elsewhere.
    #[error("{} is a link or a special file, which is not safe to use: look at it, then remove it", .0.display())]
    Unsafe(PathBuf),

    /// `initdb` failed.
    #[error("initdb could not create a cluster in {}. It said:\n{output}", path.display())]
    Initdb { path: PathBuf, output: String },

    /// The server ended before it was ready.
    #[error("PostgreSQL did not start. Its log, {}, says:\n{output}", log.display())]
    Ended { log: PathBuf, output: String },

    /// The server, or a process of the previous server, took too long.
    #[error(
        "PostgreSQL is not ready after {seconds} s: see {}, or start again to wait longer", log.display()
    )]
    TooSlow { log: PathBuf, seconds: u64 },

    /// The operating system refused something.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io { action: &'static str, path: PathBuf, cause: io::Error },
}

/// Makes a [`StartError::Io`] that names the action and the path, for `map_err`.
fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StartError {
    move |cause| StartError::Io { action, path: path.to_owned(), cause }
}

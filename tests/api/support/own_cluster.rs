//! A PostgreSQL for one test alone, which may stop it or kill it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use oncepay::auth::keys;
use oncepay::db::migrate::migrate;
use oncepay::embedded::Cluster;
use tempfile::TempDir;

use super::{TestDatabase, eventually};

/// A cluster in a directory of its own; it is stopped and removed with this guard.
pub struct OwnCluster {
    cluster: Option<Cluster>,
    directory: TempDir,
}

impl OwnCluster {
    pub fn start() -> Self {
        let directory = TempDir::new_in("/tmp").unwrap();
        // Root's server runs as a user who must reach the directory.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let cluster = Cluster::start(directory.path()).expect("the test's own cluster starts");
        Self { cluster: Some(cluster), directory }
    }

    /// A migrated database with an account. It is gone when the cluster is.
    pub fn database(&self) -> TestDatabase {
        let url = self.cluster.as_ref().expect("it runs").url("postgres");
        migrate(&url).expect("the migrations apply");
        let database = TestDatabase { name: "postgres_of_a_test".to_owned(), url, api_key: keys::random() };
        keys::ensure(&mut database.connect(), "the test's", &database.api_key, chrono::Utc::now()).unwrap();
        database
    }

    /// kill -9 of the postmaster; its children then end by themselves.
    pub fn kill(&self) {
        let cluster = self.cluster.as_ref().expect("it runs");
        let pid = i32::try_from(cluster.postmaster_pid().expect("it runs")).unwrap();
        // SAFETY: kill only sends a signal, to the postmaster that this value started.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        eventually("the end of the postmaster", || cluster.postmaster_pid() != u32::try_from(pid).ok());
    }

    /// Stops the server in order.
    pub fn stop(&mut self) {
        self.cluster.take().expect("it runs").stop();
    }

    /// Starts the server again, after `kill` or `stop`.
    pub fn restart(&mut self) {
        let cluster = Cluster::start(self.directory.path()).expect("the cluster starts again");
        self.cluster = Some(cluster);
    }
}

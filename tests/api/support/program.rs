//! The program itself, as a process that can be killed.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use reqwest::Method;

use super::client::Call;
use super::postgres::TestDatabase;

/// A running `oncepay serve` on a test's database.
pub struct Program {
    pub address: SocketAddr,
    pub database: Arc<TestDatabase>,
    child: Child,
    log: tempfile::NamedTempFile,
    client: reqwest::Client,
}

impl Program {
    /// Starts the program on a port of its own, with these environment variables.
    pub fn start(database: &Arc<TestDatabase>, environment: &[(&str, &str)]) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file for the log is made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_oncepay"))
            .env_remove("RUST_LOG")
            .env("DATABASE_URL", &database.url)
            .env("SECRET_KEY", "the secret of the tests is long enough")
            .env("LISTEN_ADDR", "127.0.0.1:0")
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log.reopen().expect("the log can be opened"))
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap().parse().unwrap_or_else(|_| {
            panic!("the program says where it listens, and not {line:?}");
        });
        let client = super::client::http().timeout(std::time::Duration::from_secs(30)).build().unwrap();
        Self { address, database: Arc::clone(database), child, log, client }
    }

    pub fn post(&self, path: &str) -> Call {
        self.call_as(&self.database.api_key, Method::POST, path)
    }

    /// A call with another API key.
    pub fn call_as(&self, api_key: &str, method: Method, path: &str) -> Call {
        Call::new(&self.client, method, format!("http://{}{path}", self.address), api_key)
    }

    /// What the program has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("the log can be read")
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).unwrap();
        // SAFETY: the child is ours and not yet waited for, so its id is no other process's.
        unsafe { libc::kill(pid, signal) };
    }

    /// Waits for the end, and says whether it was in order.
    pub fn wait(&mut self) -> bool {
        self.child.wait().expect("the program can be waited for").success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

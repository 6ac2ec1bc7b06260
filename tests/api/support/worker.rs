//! Senders of webhooks: in this process, and as one that can be killed.

use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use oncepay::webhooks::delivery;
use tokio::sync::oneshot;

use super::postgres::TestDatabase;
use super::{TestApp, oncepay};

/// A worker on the state of a test's server. Dropping it ends it, wherever it is.
pub struct Worker {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub fn start(app: &TestApp) -> Self {
        let (end, ended) = oneshot::channel();
        let state = app.state.clone();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                tokio::select! {
                    ended = delivery::run(state) => ended.expect("the worker runs"),
                    _ = ended => {}
                }
            });
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A running `oncepay worker`.
pub struct WorkerProcess(Child);

impl WorkerProcess {
    /// Starts it on a test's database, with these environment variables.
    pub fn start(database: &TestDatabase, environment: &[(&str, &str)]) -> Self {
        let child = oncepay(&["worker"])
            .env("DATABASE_URL", &database.url)
            .env("SECRET_KEY", "the secret of the tests is long enough")
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("the program starts"))
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it can be waited for");
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! Workers that send webhooks: in this process, and as a process that can be killed.

use std::thread::JoinHandle;

use oncepay::webhooks::delivery;
use tokio::sync::oneshot;

use super::program::oncepay_on;
use super::{Process, TestApp, TestDatabase};

/// A worker on the state of a test's server. Dropping it ends it at once.
pub struct Worker {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub fn start(app: &TestApp) -> Self {
        let (end, ended) = oneshot::channel();
        let sender = app.service.sender();
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                tokio::select! {
                    ended = delivery::run(sender) => ended.expect("the worker runs"),
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

impl Process {
    /// Starts `oncepay worker` on a test's database, with these environment variables.
    pub fn worker(database: &TestDatabase, environment: &[(&str, &str)]) -> Self {
        Self::start(oncepay_on(database, &["worker"], environment))
    }
}

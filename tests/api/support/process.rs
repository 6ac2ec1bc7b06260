//! A child process that a test signals, waits for and reads. It ends with the test.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A process that was started. Dropping it kills it.
pub struct Process {
    child: Child,
    log: tempfile::NamedTempFile,
    last_signal: i32,
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file for the log is made");
        let child = command
            .stdout(Stdio::piped())
            .stderr(log.reopen().expect("the log can be opened"))
            .spawn()
            .expect("the program starts");
        Self { child, log, last_signal: libc::SIGKILL }
    }

    /// The same process, with another signal for its end when it is dropped.
    pub fn dropped_by(mut self, last_signal: i32) -> Self {
        self.last_signal = last_signal;
        self
    }

    /// The standard output from its beginning. It can be taken once.
    pub fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("nobody has asked for it yet")
    }

    /// The log so far, which is all that the process wrote to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("the log can be read")
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).unwrap();
        // SAFETY: the child is ours and not yet waited for, so its id is no other process's.
        unsafe { libc::kill(pid, signal) };
    }

    /// Kills the process with SIGKILL. It has to be running still.
    #[track_caller]
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        assert_eq!(self.wait().signal(), Some(libc::SIGKILL), "{}", self.log());
    }

    /// Sends SIGTERM, and waits for an end in order.
    #[track_caller]
    pub fn end(&mut self) {
        self.signal(libc::SIGTERM);
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.log());
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the program can be waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(self.last_signal);
            let _ = self.child.wait();
        }
    }
}

//! The program as a person starts it, with what it prints.

use std::io::{BufRead, BufReader, Read, Seek};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The program with these arguments and none of the settings that this process may have.
pub fn oncepay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncepay"));
    for name in [
        "LISTEN_ADDR",
        "DATABASE_URL",
        "MIGRATION_URL",
        "DATA_DIR",
        "DATABASE_POOL_SIZE",
        "STATEMENT_CACHE",
        "HTTP_WORKERS",
        "IDEMPOTENCY_TTL",
        "REQUIRE_IDEMPOTENCY_KEY",
        "SECRET_KEY",
        "WEBHOOK_SCHEDULE",
        "WEBHOOK_ALLOW_PRIVATE",
        "WEBHOOK_WORKER",
        "NETWORK_SECRET",
        "NETWORK_URL",
        "NETWORK_MANNERS",
        "LOG_FORMAT",
        "RUST_LOG",
    ] {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// A program that serves, and has said so.
pub struct Serving {
    child: Child,
    greeting: String,
    log: std::fs::File,
}

impl Serving {
    /// Starts the program and reads its greeting.
    pub fn start(mut command: Command) -> Self {
        let log = tempfile::tempfile().unwrap();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(log.try_clone().unwrap())
            .spawn()
            .expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        // Its last line is the end of the command to try, or how to make a key.
        while !greeting.contains("-d amount=") && !greeting.contains("api-key create") {
            if out.read_line(&mut greeting).unwrap() == 0 {
                let status = child.wait().unwrap();
                panic!("it ended with {status}, and said {greeting} {}", all_of(&log));
            }
        }
        Self { child, greeting, log }
    }

    /// All that it printed.
    pub fn greeting(&self) -> &str {
        &self.greeting
    }

    pub fn address(&self) -> SocketAddr {
        let line = self.greeting.lines().next().unwrap();
        line.rsplit('/').next().unwrap().parse().expect("it says where it listens")
    }

    /// The API key that it printed.
    pub fn key(&self) -> String {
        let line = self.greeting.lines().find(|line| line.starts_with("The key")).expect("it says its key");
        line.rsplit(' ').next().unwrap().to_owned()
    }

    /// The command to try that it printed.
    pub fn curl(&self) -> String {
        self.greeting[self.greeting.find("curl ").expect("it says what to try")..].trim().to_owned()
    }

    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).unwrap();
        // SAFETY: the child is ours and not yet waited for, so its id is no other process's.
        unsafe { libc::kill(pid, signal) };
    }

    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("the program can be waited for")
    }

    /// Waits for the end, and gives all that was logged.
    pub fn log_after_end(mut self) -> String {
        assert!(self.child.wait().unwrap().success());
        all_of(&self.log)
    }
}

impl Drop for Serving {
    /// In order, so that a private cluster ends too.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(libc::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

fn all_of(mut log: &std::fs::File) -> String {
    let mut text = String::new();
    log.rewind().and_then(|()| log.read_to_string(&mut text)).expect("the log can be read");
    text
}

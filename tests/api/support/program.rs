//! The program itself, as a process: serving a test's database, or as a person starts it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::process::Command;

use clap::{Arg, CommandFactory};
use oncepay::cli::CommandLine;
use oncepay::idempotency::faults::{KILL_AT, PANIC_AT};
use reqwest::Method;

use super::SECRET_KEY;
use super::client::Call;
use super::postgres::TestDatabase;
use super::process::Process;

/// The program with these arguments and none of the settings that this process may have.
pub fn oncepay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oncepay"));
    for name in CommandLine::command().get_arguments().filter_map(Arg::get_env) {
        command.env_remove(name);
    }
    for name in ["RUST_LOG", KILL_AT, PANIC_AT] {
        command.env_remove(name);
    }
    command.args(arguments);
    command
}

/// Like `oncepay`, on a test's database and with these environment variables.
pub fn oncepay_on(database: &TestDatabase, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = oncepay(arguments);
    command
        .env("DATABASE_URL", &database.url)
        .env("SECRET_KEY", SECRET_KEY)
        .envs(environment.iter().copied());
    command
}

/// A program that serves and has printed its greeting.
pub struct Program {
    pub address: SocketAddr,
    /// The API key of its calls: that of the test's account, or the one that the program printed.
    pub api_key: String,
    /// All that it printed.
    pub greeting: String,
    process: Process,
    client: reqwest::Client,
}

impl Program {
    /// Starts the program on a test's database and a port of its own, with these environment variables.
    pub fn start(database: &TestDatabase, environment: &[(&str, &str)]) -> Self {
        let process = Process::start(oncepay_on(database, &["--listen", "127.0.0.1:0"], environment));
        Self { api_key: database.api_key.clone(), ..Self::greeted(process) }
    }

    /// Starts the program by a command of the test's own. Dropping it ends it in order, so that its private cluster
    /// ends too.
    pub fn start_as(command: Command) -> Self {
        Self::greeted(Process::start(command).dropped_by(libc::SIGTERM))
    }

    /// Reads the greeting of a program.
    fn greeted(mut process: Process) -> Self {
        let mut out = BufReader::new(process.stdout());
        let mut greeting = String::new();
        // Its last line is the end of the command to try, or how to make a key; in JSON it has one line.
        let is_whole = |said: &str| {
            said.contains("-d amount=") || said.contains("api-key create") || said.ends_with("}\n")
        };
        while !is_whole(&greeting) {
            if out.read_line(&mut greeting).unwrap() == 0 {
                let status = process.wait();
                panic!("the program ended with {status} after it printed {greeting} {}", process.log());
            }
        }
        if let Ok(line) = serde_json::from_str::<serde_json::Value>(&greeting) {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let address = text("address").parse().expect("it says where it listens");
            let client = super::client::http().timeout(std::time::Duration::from_secs(30)).build().unwrap();
            return Self { address, api_key: text("demo_key"), greeting, process, client };
        }
        let last_of = |line: &str, mark| line.rsplit(mark).next().unwrap_or_default().to_owned();
        let address =
            last_of(greeting.lines().next().unwrap(), '/').parse().expect("it says where it listens");
        let key = greeting.lines().find(|line| line.starts_with("The key"));
        let api_key = key.map(|line| last_of(line, ' ')).unwrap_or_default();
        // A key that is a secret is not printed where nobody looks; the greeting names its file.
        let api_key = std::fs::read_to_string(&api_key).unwrap_or(api_key).trim().to_owned();
        let client = super::client::http().timeout(std::time::Duration::from_secs(30)).build().unwrap();
        Self { address, api_key, greeting, process, client }
    }

    /// The command to try, from the greeting.
    pub fn curl(&self) -> String {
        self.greeting[self.greeting.find("curl ").expect("it says what to try")..].trim().to_owned()
    }

    pub fn post(&self, path: &str) -> Call {
        self.call_as(&self.api_key, Method::POST, path)
    }

    /// A call with another API key.
    pub fn call_as(&self, api_key: &str, method: Method, path: &str) -> Call {
        Call::new(&self.client, method, format!("http://{}{path}", self.address), api_key)
    }
}

impl Deref for Program {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

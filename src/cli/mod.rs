//! The program: what its command line asks for.

mod api_keys;
mod audit;
mod demo;
mod greeting;
mod logs;
mod psql;
mod secret_files;
mod seed;
mod serve;
mod server;
pub mod settings;

use std::process::ExitCode;

use server::{NoData, Server};
use settings::Command;
pub use settings::CommandLine;

/// What ends the program with a message.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs what the command line asks for. A failure is told on standard error: exit 2 says that there are no data to work
/// on, and exit 1 anything else.
pub fn run(line: CommandLine) -> ExitCode {
    let settings = line.settings;
    logs::init(settings.log_format);
    let ended = match line.command.unwrap_or(Command::Serve) {
        Command::Serve => serve::serve(&settings),
        Command::Worker => serve::work(&settings),
        Command::Migrate => Server::reach(&settings).and_then(|server| server.migrate(&settings)),
        Command::ApiKey(command) => api_keys::run(&settings, &command),
        Command::Audit => audit::run(&settings),
        Command::Psql { arguments } => psql::run(&settings, &arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("oncepay: {failure}");
            if failure.is::<NoData>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

//! `oncepay audit`.

use super::Failure;
use super::server::Server;
use super::settings::Settings;
use crate::audit::audit;

/// Checks every rule of the data, and prints what each saw.
pub fn run(settings: &Settings) -> Result<(), Failure> {
    let server = Server::with_data(settings)?;
    server.migrate(settings)?;
    let report = audit(&mut server.connect()?)?;
    print!("{report}");
    if report.is_clean() { Ok(()) } else { Err("the audit found broken rules".into()) }
}

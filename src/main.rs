//! The program is the library and this.

use std::process::ExitCode;

fn main() -> ExitCode {
    oncepay::cli::run(oncepay::cli::CommandLine::parse())
}

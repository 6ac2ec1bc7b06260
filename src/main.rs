//! The program is the library and this.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match oncepay::cli::run(oncepay::cli::CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("oncepay: {failure}");
            ExitCode::FAILURE
        }
    }
}

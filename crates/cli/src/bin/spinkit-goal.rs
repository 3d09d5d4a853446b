//! `spinkit goal`: GOAL schedules.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::process::run(cli::goal::main)
}

//! `spinkit goal`: GOAL schedules.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::end_at_panic();
    cli::goal::main()
}

//! `spinkit machines`: the machines that can be simulated.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::process::run(cli::machines::main)
}

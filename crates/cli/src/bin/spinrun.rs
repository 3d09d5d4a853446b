//! `spinrun`: runs a program on a simulated cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::process::run(cli::spinrun::main)
}

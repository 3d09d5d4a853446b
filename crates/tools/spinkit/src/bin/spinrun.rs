//! `spinrun`: runs a program on a simulated cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(spinrun::main)
}

//! `spinkit machines`: the machines that can be simulated.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(spinkit::machines::main)
}

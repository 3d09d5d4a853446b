//! `spinkit machines`: the machines that can be simulated.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::end_at_panic();
    cli::machines::main()
}

//! `spinrun`: runs a program on a simulated cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::end_at_panic();
    cli::spinrun::main()
}

//! `spinkit pspin`: programs for the interface that the PsPIN artefact published.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::end_at_panic();
    cli::pspin::main(std::env::args_os())
}

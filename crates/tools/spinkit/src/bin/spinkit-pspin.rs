//! `spinkit pspin`: programs for the interface that the PsPIN artefact published.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(|| spinkit::pspin::main(std::env::args_os()))
}

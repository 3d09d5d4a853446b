// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin`: programs for the published interface of the PsPIN artefact.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(|| spinkit::pspin::main(std::env::args_os()))
}

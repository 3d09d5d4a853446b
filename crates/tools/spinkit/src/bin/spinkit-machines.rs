// SPDX-License-Identifier: Apache-2.0
//! `spinkit machines`: the machines that can be simulated.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(spinkit::machines::main)
}

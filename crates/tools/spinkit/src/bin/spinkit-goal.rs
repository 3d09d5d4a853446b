// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal`: GOAL schedules.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(spinkit::goal::main)
}

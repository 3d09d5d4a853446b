// SPDX-License-Identifier: Apache-2.0
//! `spinrun`: runs a program on a simulated cluster.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(spinrun::main)
}

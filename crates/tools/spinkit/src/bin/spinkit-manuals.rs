// SPDX-License-Identifier: Apache-2.0
//! `spinkit-manuals`: writes man pages and completions of all commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(|| spinkit::manuals::main(std::env::args_os().skip(1)))
}

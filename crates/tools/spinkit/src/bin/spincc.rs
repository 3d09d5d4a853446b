// SPDX-License-Identifier: Apache-2.0
//! `spincc`: compiles sPIN programs, host and card parts in one.

use std::process::ExitCode;

fn main() -> ExitCode {
    command::process::run(|| spincc::main(std::env::args_os().skip(1)))
}

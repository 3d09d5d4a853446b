// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin`: programs for the published interface of the PsPIN artefact (`sdk/pspin`).
//!
//! * `env`: environment variables for the build of such programs
//! * `options`: options of `run`; `unit_machine`: the machine; `run`: runs handlers; `alone`: on generated or captured packets;
//!   `folder`: by the driver of a folder in the published layout, built in a copy, `mirror`; `table`: results of a run
//! * `serve`: runs handlers on a real network interface
//! * `lockstep`: compares hardware and model
//! * `cc`: the compiler of their card side, which `make` calls as `pspin-cc`; `words`: its command line

mod alone;
mod cc;
mod env;
mod folder;
mod lockstep;
mod mirror;
mod options;
mod run;
mod serve;
mod table;
mod unit_machine;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use command::sdk::Sdk;
use spincc::Error;

/// Build and run programs for the interface that the PsPIN artefact published.
///
/// Exit status: 1 for a program that does not compile, 2 for wrong usage.
#[derive(Debug, Parser)]
#[command(name = "spinkit pspin", bin_name = "spinkit pspin", version, after_help = SWEEP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Help text of the command implemented outside this program.
const SWEEP: &str =
    "Also:\n  sweep     Run a handler of X instructions on PsPIN units of many sizes: spinkit pspin sweep --help";

#[derive(Debug, Subcommand)]
enum Command {
    /// Print PSPIN_RT and PSPIN_HW for a shell, with which `make` builds a program: eval "$(spinkit pspin env)"
    Env,
    #[command(long_about = None)]
    Run(Box<options::Arguments>),
    #[command(long_about = None)]
    Serve(Box<serve::options::Arguments>),
    #[command(long_about = None)]
    Lockstep(lockstep::Arguments),
    /// Compile handlers with the words of a compiler's command line; Makefiles call it as $PSPIN_RT/bin/pspin-cc
    #[command(disable_help_flag = true)]
    Cc {
        /// Sources, -o FILE, and flags of GCC; --hpu KIND selects the cores, -v shows the commands
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// Describes the command line of `spinkit pspin`.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs `spinkit pspin` with these arguments. The exit status is 0, 1 on failure, or 2 for a wrong command line.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (name, done) = match Arguments::parse_from(arguments).command {
        Command::Env => ("spinkit pspin env", Sdk::find().map_err(Error::from).and_then(|sdk| env::print(&sdk))),
        Command::Run(arguments) => match run::run(&arguments) {
            Ok(false) => ("spinkit pspin run", Err(Error::Reported)),
            done => ("spinkit pspin run", done.map(drop)),
        },
        Command::Serve(arguments) => match serve::run(&arguments) {
            Ok(false) => ("spinkit pspin serve", Err(Error::Reported)),
            done => ("spinkit pspin serve", done.map(drop)),
        },
        Command::Lockstep(arguments) => ("spinkit pspin lockstep", lockstep::run(&arguments)),
        Command::Cc { words } => ("pspin-cc", words::parse(words).and_then(cc::compile)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Reported) => ExitCode::FAILURE,
        Err(error) => {
            for line in error.to_string().lines() {
                eprintln!("{name}: error: {line}");
            }
            if matches!(error, Error::Usage(_)) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

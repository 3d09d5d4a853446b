// SPDX-License-Identifier: Apache-2.0
//! Choice of the isolation of ranks: processes, or threads of the simulator's process.

use super::links;
use super::start::Facts;
use clap::ValueEnum;
use embedded::Program;
use std::ffi::OsStr;
use std::rc::Rc;

/// Value of `--isolation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isolation {
    Auto,
    Process,
    Thread,
}

/// Options of a run that need processes.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// True if the CPU time of ranks is measured.
    pub measures: bool,
    /// True if the clocks of ranks show simulated time.
    pub simulates_clocks: bool,
    /// True if the user chooses how processes start.
    pub starts_processes: bool,
}

impl Isolation {
    /// Returns the program if its ranks are threads, or else the reason why they are processes.
    ///
    /// # Errors
    /// The reason, if the user demands threads.
    pub fn decide(self, program: &OsStr, facts: &Facts, needs: Needs) -> Result<Result<Rc<Program>, String>, String> {
        if self == Isolation::Process {
            return Ok(Err("as --isolation process asks".into()));
        }
        let objection = match facts {
            Facts { objection: Some(objection), .. } => Some(objection.clone()),
            _ if needs.measures => Some("--compute measures the CPU time of processes".into()),
            _ if needs.simulates_clocks => Some("--clock simulated replaces the clocks of processes".into()),
            _ if needs.starts_processes => Some("--start is an option of processes".into()),
            _ => None,
        };
        let found = match objection {
            Some(objection) => Err(objection),
            None => {
                let path = links::find(program).unwrap_or_default();
                Program::open(path.as_os_str()).map(Rc::new).map_err(|unfit| unfit.to_string())
            }
        };
        match (self, found) {
            (Isolation::Thread, Err(objection)) => Err(objection),
            (_, found) => Ok(found),
        }
    }
}

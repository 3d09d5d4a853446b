// SPDX-License-Identifier: Apache-2.0
//! Ranks as threads of the simulator's process ([`embedded`]).

use super::call::Pause;
use super::job_spec::JobError;
use super::program;
use super::rank_state::{Job, Process, Rank};
use embedded::{Host, Stop, Style};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

impl Job {
    /// Prepares this process for the ranks if the job embeds them.
    pub(super) fn embed(&mut self) -> Result<(), JobError> {
        let Some(program) = self.spec.embedded.clone() else { return Ok(()) };
        let words = [&self.spec.program].into_iter().chain(&self.spec.args);
        let style = Style {
            forwards: self.output.is_some(),
            arguments: words.map(|word| text(word)).collect(),
            variables: self.common_variables(),
        };
        let memory = self.shared.job();
        // SAFETY: all ranks end when the job is dropped, and thus before its shared memory.
        let host = unsafe { Host::new(program, style, memory) };
        self.embedded = Some(host.map_err(JobError::system("reserve addresses for ranks"))?);
        Ok(())
    }

    /// Returns the environment variables that are the same for all ranks, as "NAME=VALUE".
    fn common_variables(&self) -> Vec<CString> {
        let command = program::command(&self.spec, &self.seating, 0, "", std::process::id(), &self.shared);
        let mut variables: BTreeMap<OsString, Option<OsString>> =
            std::env::vars_os().map(|(name, value)| (name, Some(value))).collect();
        variables.extend(command.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned))));
        program::OF_RANK.iter().for_each(|name| drop(variables.remove(OsStr::new(name))));
        variables.iter().filter_map(|(name, value)| Some(variable(name, value.as_deref()?))).collect()
    }

    /// Loads the program for a rank.
    pub(super) fn start_embedded(&mut self, rank: usize) -> Result<(), JobError> {
        let number = rank.to_string();
        let variables = program::OF_RANK.map(|name| variable(OsStr::new(name), OsStr::new(&number)));
        let host = self.embedded.as_mut().expect("the job embeds its ranks");
        host.start(rank, &variables).map_err(|source| JobError::Spawn {
            program: self.spec.program.clone(),
            rank,
            source,
        })?;
        if let Some(output) = &mut self.output {
            output.add_embedded(rank);
        }
        self.ranks[rank].process = Process::Embedded;
        Ok(())
    }

    /// Runs a rank until it makes a call or the clock interrupts it. Returns its last pause if it ends.
    pub(super) fn run_embedded(&mut self, rank: usize) -> Option<Pause> {
        let stop = self.embedded.as_mut()?.run(rank);
        self.drain(rank);
        match stop {
            Stop::Waits => None,
            Stop::Computes => {
                self.inspect_when_due(rank);
                None
            }
            Stop::Ended(status) => Some(Pause::Exited { rank, status: self.end_embedded(rank, status) }),
        }
    }

    /// Ends a rank with a status of waitpid(2).
    pub(super) fn end_embedded(&mut self, rank: usize, status: i32) -> ExitStatus {
        self.drain(rank);
        if let Some(host) = &mut self.embedded {
            host.end(rank);
        }
        let status = ExitStatus::from_raw(status);
        self.ranks[rank] = Rank { process: Process::Ended(status), ..Rank::default() };
        if let Some(output) = &mut self.output {
            output.finish(rank);
        }
        status
    }

    /// Ends all ranks. Those that wait in a call write their buffered output.
    pub(super) fn kill_embedded(&mut self) {
        for rank in 0..self.ranks.len() {
            if !matches!(self.ranks[rank].process, Process::Embedded) {
                continue;
            }
            let waits = self.has_callers(rank);
            if let Some(host) = self.embedded.as_mut().filter(|_| waits) {
                host.flush(rank);
            }
            self.end_embedded(rank, Signal::TERM.as_raw());
        }
    }
}

fn variable(name: &OsStr, value: &OsStr) -> CString {
    let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
    CString::new(bytes).expect("a variable contains no NUL")
}

/// Converts an argument of the command line.
fn text(word: &OsStr) -> CString {
    CString::new(word.as_bytes()).expect("an argument contains no NUL")
}

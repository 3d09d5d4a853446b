// SPDX-License-Identifier: Apache-2.0
//! Programs of a run, separated by colons as for mpirun, and its jobs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use ranks::{Job, Program, Seating};
use sim::Time;
use world::{Death, Tenant, Victim};

use super::environment::parse_variable;

/// Largest number of programs of a job: a published list of their sizes has room for it.
pub const MAX_PROGRAMS: usize = 128;

/// A program of some ranks.
#[derive(Clone, Debug)]
pub struct Application {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Number of ranks.
    pub ranks: u32,
    /// Variables of the ranks.
    pub env: Vec<(OsString, OsString)>,
    /// Working folder of the ranks.
    pub folder: Option<PathBuf>,
    /// Index of the job.
    pub job: usize,
    /// Nodes of the ranks; empty for those that follow the last ones.
    pub nodes: Vec<usize>,
}

/// Programs and jobs of a run.
#[derive(Debug)]
pub struct Plan {
    /// Programs of all jobs, in the order of their ranks.
    pub applications: Vec<Application>,
    /// Jobs of `--jobs`; empty for a single one.
    pub jobs: Vec<Tenant>,
    /// Processes of jobs that are killed.
    pub deaths: Vec<JobDeath>,
}

/// Death of a process of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobDeath {
    /// Index of the job.
    pub job: usize,
    /// Rank in the job.
    pub rank: u32,
    /// Simulated time of the death.
    pub at: Time,
}

/// Options of a program after a colon.
#[derive(Debug, Parser)]
#[command(name = "spinrun", disable_version_flag = true, disable_help_flag = true)]
struct Further {
    #[arg(short, long = "ranks", visible_alias = "np", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=Job::MAX_RANKS as i64))]
    n: u32,
    #[arg(short = 'x', long = "env", value_parser = parse_variable)]
    env: Vec<(OsString, OsString)>,
    #[arg(long)]
    wdir: Option<PathBuf>,
    #[arg(required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// Parses command lines in which, as with mpirun, `-np N` means `-n N`; clap reads it as `-n p N`.
pub fn parse<T: Parser>(words: &[OsString]) -> Result<T, clap::Error> {
    match (T::try_parse_from(words), words.iter().position(|word| word == "-np")) {
        (Err(_), Some(at)) => {
            let mut words = words.to_vec();
            words[at] = "--np".into();
            T::try_parse_from(words)
        }
        (parsed, _) => parsed,
    }
}

/// Splits the words of a command line at those that are a colon.
pub fn split(words: &[OsString]) -> Vec<&[OsString]> {
    words.split(|word| word == ":").collect()
}

/// Parses the part of a command line between two colons; `whole` describes the options of the run.
///
/// # Errors
/// The message for the user when it is no program with the options of one.
pub fn further(words: &[OsString], whole: clap::Command) -> Result<Application, clap::Error> {
    let named: Vec<OsString> = std::iter::once("spinrun".into()).chain(words.iter().cloned()).collect();
    let Further { n, env, wdir, program } = parse(&named).map_err(|error| explained(error, whole))?;
    Ok(Application { words: program, ranks: n, env, folder: wdir, job: 0, nodes: Vec::new() })
}

/// Replaces the message about an option of the whole run after a colon.
fn explained(error: clap::Error, mut command: clap::Command) -> clap::Error {
    let refused = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) if error.kind() == ErrorKind::UnknownArgument => text.clone(),
        _ if error.kind() == ErrorKind::MissingRequiredArgument => {
            return command.error(error.kind(), "a colon is followed by no program: -n N PROGRAM : -n N PROGRAM");
        }
        _ => return error,
    };
    let name = refused.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned();
    let is_of_run = command.get_arguments().any(|argument| {
        argument.get_long() == Some(&*name) || argument.get_short().is_some_and(|short| short.to_string() == name)
    });
    let text = match is_of_run {
        true => format!("{refused} is an option of the whole run: give it before the first program, not after a colon"),
        false => format!("{refused} is no option of a program after a colon: those are -n, -x and --wdir"),
    };
    command.error(ErrorKind::UnknownArgument, text)
}

impl Application {
    /// Returns the application as the ranks start it. A program is found from the simulator's folder.
    pub fn start(&self, env: Vec<(OsString, OsString)>, preload: Vec<PathBuf>) -> Program {
        let program = &self.words[0];
        let is_relative = program.as_bytes().contains(&b'/') && Path::new(program).is_relative();
        let absolute = (is_relative && self.folder.is_some()).then(|| std::path::absolute(program).ok()).flatten();
        Program {
            program: absolute.map_or_else(|| program.clone(), PathBuf::into_os_string),
            args: self.words[1..].to_vec(),
            ranks: self.ranks as usize,
            env,
            preload,
            folder: self.folder.clone(),
            nodes: self.nodes.clone(),
            job: self.job,
        }
    }

    /// Returns the name of the program for the user.
    pub fn name(&self) -> String {
        self.words[0].to_string_lossy().into_owned()
    }
}

impl Plan {
    /// Returns the number of ranks of all programs.
    pub fn ranks(&self) -> u32 {
        self.applications.iter().map(|application| application.ranks).sum()
    }

    /// Returns the number of ranks of a job.
    pub fn ranks_of_job(&self, job: usize) -> u32 {
        let of_job = self.applications.iter().filter(|application| application.job == job);
        of_job.map(|application| application.ranks).sum()
    }

    /// Returns the program of a rank of a single job.
    pub fn application_of_rank(&self, rank: usize) -> Option<&Application> {
        let mut left = rank;
        self.applications.iter().find(|application| match left.checked_sub(application.ranks as usize) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        })
    }

    /// Returns the name of a job for the user: its programs, or its name if there are several jobs.
    pub fn label(&self, job: usize) -> String {
        self.jobs.get(job).map_or_else(|| self.title(job), |tenant| format!("job {}", tenant.name))
    }

    /// Returns true if the ranks execute one program.
    pub fn is_simple(&self) -> bool {
        self.applications.len() == 1 && self.jobs.is_empty()
    }

    /// Returns the names of the programs of a job.
    pub fn title(&self, job: usize) -> String {
        let of_job = self.applications.iter().filter(|application| application.job == job);
        of_job.map(Application::name).collect::<Vec<_>>().join(" : ")
    }

    /// Returns the name of the program of a rank for the user, with the job's if there are several.
    pub fn program_of(&self, seating: &Seating, node: usize) -> String {
        let Some(seat) = seating.at(node) else { return self.title(0) };
        let name = self.applications[seat.application].name();
        match self.jobs.get(seat.job) {
            Some(job) => format!("job {} ({name})", job.name),
            None => name,
        }
    }

    /// Returns the deaths of processes by their places.
    pub fn deaths(&self, seating: &Seating) -> Vec<Death> {
        let death = |death: &JobDeath| {
            let place = seating.members(death.job)[death.rank as usize] as u32;
            Death { rank: place, at: death.at, victim: Victim::Process }
        };
        self.deaths.iter().map(death).collect()
    }

    /// Returns the names of the places' rows in the timeline if they name more than the rank.
    pub fn rows(&self, seating: &Seating) -> Vec<String> {
        if self.is_simple() {
            return Vec::new();
        }
        let row = |node: usize| match seating.at(node) {
            None => format!("node {node}"),
            Some(seat) => {
                let name = self.applications[seat.application].name();
                let job = self.jobs.get(seat.job).map_or(String::new(), |job| format!("job {} ", job.name));
                format!("{job}rank {}: {name}", seat.rank)
            }
        };
        (0..seating.places()).map(row).collect()
    }
}

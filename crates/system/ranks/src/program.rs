// SPDX-License-Identifier: Apache-2.0
//! Starts processes that execute the job's program.

use super::job_spec::{Application, JobSpec};
use super::launch::launch;
use super::pmi_connections::Pmi;
use super::seating::{Seat, Seating};
use super::shared_memory::SharedMemory;
use abi::mailbox::env;
use abi::placement;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Variables that disable output buffering in the runtimes of common languages even for files and pipes, so that
/// nothing is lost when a rank crashes. The constructor of `libportals.so` does the same for C.
const UNBUFFERED: [(&str, &str); 2] = [("PYTHONUNBUFFERED", "1"), ("GFORTRAN_UNBUFFERED_PRECONNECTED", "y")];

/// Variables whose value is the number of the rank.
pub const OF_RANK: [&str; 3] = [env::RANK, "PMI_RANK", "PMI_ID"];

/// Starts a process that executes the program of a seat. `rank` is the value of the rank variables; `socket` is the PMI
/// connection of a rank, or the channel of a fork server. Returns the process id.
pub fn start(
    spec: &JobSpec,
    seating: &Seating,
    node: usize,
    rank: &str,
    shared: &SharedMemory,
    streams: [Option<BorrowedFd<'_>>; 3],
    socket: Option<BorrowedFd<'_>>,
) -> io::Result<u32> {
    let simulator = std::process::id();
    // Ranks open the memory file through the simulator, so its number is free in the rank: the same in all ranks, and
    // low enough for select(2).
    let number = shared.fd();
    let command = command(spec, seating, node, rank, simulator, shared);
    let folder = command.get_current_dir().map(|folder| CString::new(folder.as_os_str().as_bytes())).transpose()?;
    let socket = socket.map(|socket| socket.as_raw_fd());
    let prepare = || prepare(simulator, socket, number, folder.as_deref());
    launch(&command, streams, socket.unwrap_or(number).max(number), &prepare)
}

/// Returns the command of the process of a node: program, arguments, variables and working folder.
pub fn command(
    spec: &JobSpec,
    seating: &Seating,
    node: usize,
    rank: &str,
    simulator: u32,
    shared: &SharedMemory,
) -> Command {
    let Seat { application, job, rank: number } = seating.at(node).expect("a started process has a seat");
    let (application, ranks) = (spec.application(application), seating.members(job).len());
    let mut command = Command::new(application.program);
    command
        .args(application.args)
        .envs(UNBUFFERED.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()))
        .envs(application.env.iter().map(|(name, value)| (name, value)))
        .env(env::RANK, rank)
        .env(env::SIZE, ranks.to_string())
        .env(env::SIM_PID, simulator.to_string())
        .env(env::SIM_FD, shared.fd().to_string());
    if (node, seating.places()) != (number, ranks) {
        command.env(env::PLACE, node.to_string()).env(env::PLACES, seating.places().to_string());
    }
    match seating.shares_nodes(job) {
        true => command.env(env::NODES, placement::to_text(&placement::blocks(&seating.nodes_of_job(job)))),
        false => command.env_remove(env::NODES), // set by a spinrun around this one
    };
    Pmi::add_variables(&mut command, rank, ranks, (!spec.speaks_no_pmi).then(|| shared.fd()));
    if !application.preload.is_empty() {
        command.env("LD_PRELOAD", preload(application));
    }
    if let Some(folder) = application.folder {
        command.current_dir(folder);
    }
    command
}

/// Returns the value of `LD_PRELOAD`: the job's libraries, followed by those of its environment, or else the inherited
/// ones.
fn preload(application: Application<'_>) -> OsString {
    let others = application.variable("LD_PRELOAD").filter(|value| !value.is_empty());
    let libraries = application.preload.iter().map(|path| path.as_os_str().to_owned()).chain(others);
    libraries.collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Prepares the new process before it executes the program: it dies with the simulator, has the same addresses in every
/// run, keeps `socket` open as descriptor `number`, also in its child programs, and works in `folder`. Must neither
/// allocate nor take a lock; the rustix functions are plain system calls.
fn prepare(simulator: u32, socket: Option<RawFd>, number: RawFd, folder: Option<&CStr>) -> io::Result<()> {
    const ASK: libc::c_ulong = 0xffff_ffff;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: descriptors are numbers, and the table belongs to the new process alone.
    if socket.is_some_and(|socket| unsafe { libc::dup2(socket, number) } == -1) {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the folder is a string.
    if folder.is_some_and(|folder| unsafe { libc::chdir(folder.as_ptr()) } == -1) {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: system calls that touch no memory.
    unsafe {
        if Pid::as_raw(getppid()) as u32 != simulator {
            libc::_exit(1); // the simulator ended before the death signal was set
        }
        let personality = libc::personality(ASK);
        if personality != -1 {
            libc::personality((personality | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
    Ok(())
}

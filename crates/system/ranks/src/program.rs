//! Starts processes that execute the job's program.

use super::job_spec::JobSpec;
use super::launch::launch;
use super::pmi_connections::Pmi;
use super::shared_memory::SharedMemory;
use abi::mailbox::env;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::process::Command;

/// Variables that make the runtimes of common languages write output at once although it goes to a file or a pipe, so that
/// nothing is lost when a rank crashes. The constructor of `libportals.so` does that for C.
const UNBUFFERED: [(&str, &str); 2] = [("PYTHONUNBUFFERED", "1"), ("GFORTRAN_UNBUFFERED_PRECONNECTED", "y")];

/// Starts a process that executes the job's program. `rank` is the value of the variables that name its rank, and `socket` the
/// connection that it gets: a rank's for PMI, or that of a fork server. Returns its process id.
pub fn start(
    spec: &JobSpec,
    rank: &str,
    shared: &SharedMemory,
    streams: [Option<BorrowedFd<'_>>; 3],
    socket: Option<BorrowedFd<'_>>,
) -> io::Result<u32> {
    let simulator = std::process::id();
    // The memory file is reached through the simulator, so its number is free in the rank: the same in all, and low
    // enough for select(2).
    let number = shared.fd();
    let command = command(spec, rank, simulator, shared);
    let socket = socket.map(|socket| socket.as_raw_fd());
    launch(&command, streams, socket.unwrap_or(number).max(number), &|| prepare(simulator, socket, number))
}

/// Returns a rank's program with its arguments and variables.
fn command(spec: &JobSpec, rank: &str, simulator: u32, shared: &SharedMemory) -> Command {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .envs(UNBUFFERED.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()))
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .env(env::RANK, rank)
        .env(env::SIZE, spec.ranks.to_string())
        .env(env::SIM_PID, simulator.to_string())
        .env(env::SIM_FD, shared.fd().to_string());
    Pmi::add_variables(&mut command, rank, spec.ranks, (!spec.speaks_no_pmi).then(|| shared.fd()));
    if !spec.preload.is_empty() {
        command.env("LD_PRELOAD", preload(spec));
    }
    command
}

/// Returns the value of `LD_PRELOAD`: the job's libraries, then those of its environment, or else those that are inherited.
fn preload(spec: &JobSpec) -> OsString {
    let others = spec.variable("LD_PRELOAD").filter(|value| !value.is_empty());
    let libraries = spec.preload.iter().map(|path| path.as_os_str().to_owned()).chain(others);
    libraries.collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Prepares the new process before it executes the program: it will end with the simulator, its addresses are the same in
/// every run, and `socket` stays open as descriptor `number`, also in programs that it starts. It may neither allocate nor take a lock;
/// the functions of rustix are plain system calls.
fn prepare(simulator: u32, socket: Option<RawFd>, number: RawFd) -> io::Result<()> {
    const ASK: libc::c_ulong = 0xffff_ffff;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: the descriptors are numbers of this new process alone.
    if socket.is_some_and(|socket| unsafe { libc::dup2(socket, number) } == -1) {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: system calls that touch no memory.
    unsafe {
        if Pid::as_raw(getppid()) as u32 != simulator {
            libc::_exit(1); // the simulator ended before it was watched
        }
        let personality = libc::personality(ASK);
        if personality != -1 {
            libc::personality((personality | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
    Ok(())
}

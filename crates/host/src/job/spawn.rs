//! Starts the processes of ranks.

use super::launch::launch;
use super::output::Output;
use super::parking::park;
use super::pmi::Pmi;
use super::shared::Shared;
use super::spec::JobSpec;
use abi::mailbox::env;
use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::Command;

/// Variables that make the runtimes of common languages write output at once although it goes to a file or a pipe, so that
/// nothing is lost when a rank crashes. The constructor of `libportals.so` does that for C.
const UNBUFFERED: [(&str, &str); 2] = [("PYTHONUNBUFFERED", "1"), ("GFORTRAN_UNBUFFERED_PRECONNECTED", "y")];

/// Starts a rank. Returns its process id.
pub fn spawn(
    spec: &JobSpec,
    rank: usize,
    shared: &Shared,
    nothing: BorrowedFd<'_>,
    pmi: &mut Pmi,
    output: Option<&mut Output>,
) -> io::Result<u32> {
    let simulator = std::process::id();
    // The memory file is reached through the simulator, so its number is free in the rank: the same in all, and low
    // enough for select(2).
    let pmi_fd = shared.fd();
    let mut command = command(spec, rank, simulator, shared);
    let socket = pmi.connect(rank, &mut command, pmi_fd)?;
    // Ctrl-C reaches the simulator alone, which then ends all ranks: they are not in the terminal's foreground group, and must not read
    // from it.
    let terminal = if rank == 0 && io::stdin().is_terminal() { Some(pipe()?) } else { None };
    let input = match (&terminal, rank) {
        (Some((input, _)), _) => Some(input.as_fd()),
        (None, 0) => None,
        (None, _) => Some(nothing),
    };
    let pipes = if output.is_some() { Some([pipe()?, pipe()?]) } else { None };
    let [out, err] = match &pipes {
        Some([(_, out), (_, err)]) => [Some(out.as_fd()), Some(err.as_fd())],
        None => [None, None],
    };
    let prepare = || prepare(simulator, socket.as_raw_fd(), pmi_fd);
    let id = launch(&command, [input, out, err], socket.as_raw_fd().max(pmi_fd), &prepare)?;
    if let (Some(output), Some(pipes)) = (output, pipes) {
        output.add(rank, pipes.map(|(read, _)| park(read)))?;
    }
    if let Some((_, to_rank)) = terminal {
        // Ends with the terminal's input, or with an error once the rank no longer reads.
        std::thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut File::from(to_rank)));
    }
    Ok(id)
}

/// Returns a rank's program with its arguments and variables.
fn command(spec: &JobSpec, rank: usize, simulator: u32, shared: &Shared) -> Command {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.args)
        .envs(UNBUFFERED.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()))
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .env(env::RANK, rank.to_string())
        .env(env::SIZE, spec.ranks.to_string())
        .env(env::SIM_PID, simulator.to_string())
        .env(env::SIM_FD, shared.fd().to_string());
    if !spec.preload.is_empty() {
        command.env("LD_PRELOAD", preload(spec));
    }
    command
}

/// Returns the ends of a new pipe, the one to read from first.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((high(read.into())?, high(write.into())?))
}

/// Returns a descriptor that is not the number of a standard stream, which may have been closed.
fn high(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(descriptor);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, libc::STDERR_FILENO + 1)?)
}

/// Returns the value of `LD_PRELOAD`: the job's libraries, then those of its environment, or else those that are inherited.
fn preload(spec: &JobSpec) -> OsString {
    let others = spec.variable("LD_PRELOAD").filter(|value| !value.is_empty());
    let libraries = spec.preload.iter().map(|path| path.as_os_str().to_owned()).chain(others);
    libraries.collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Prepares the new process before it executes the program: it will end with the simulator, its addresses are the same in
/// every run, and `socket` stays open as descriptor `pmi_fd`, also in programs that it starts. It may neither allocate nor take a lock;
/// the functions of rustix are plain system calls.
fn prepare(simulator: u32, socket: RawFd, pmi_fd: RawFd) -> io::Result<()> {
    const ASK: libc::c_ulong = 0xffff_ffff;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: the descriptors are numbers of this new process alone.
    if unsafe { libc::dup2(socket, pmi_fd) } == -1 {
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

/// Raises the limit of open descriptors as far as permitted: a socket and up to two pipes for each rank can be more than
/// the usual 1,024.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // With the limit as it is, most jobs work all the same.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

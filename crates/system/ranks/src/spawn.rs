// SPDX-License-Identifier: Apache-2.0
//! Starts the processes of ranks.

use super::fork_server::ForkServer;
use super::job_spec::JobSpec;
use super::output::Output;
use super::parked_descriptors::park;
use super::pmi_connections::Pmi;
use super::program;
use super::seating::Seating;
use super::shared_memory::SharedMemory;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Parts that all ranks have in common.
pub struct Common<'a> {
    pub spec: &'a JobSpec,
    pub seating: &'a Seating,
    pub shared: &'a SharedMemory,
    pub null_device: BorrowedFd<'a>,
}

/// Starts a rank, forked from the server if there is one. Returns its process id.
pub fn spawn(
    Common { spec, seating, shared, null_device }: Common<'_>,
    rank: usize,
    pmi: &mut Pmi,
    output: Option<&mut Output>,
    server: Option<&ForkServer>,
) -> io::Result<u32> {
    let socket = if spec.speaks_no_pmi { None } else { Some(pmi.connect(rank)?) };
    let socket = socket.as_ref().map(AsFd::as_fd);
    // Ctrl-C reaches only the simulator, which then ends all ranks. Ranks are not in the terminal's foreground group
    // and must not read from it.
    let is_first = seating.at(rank).is_some_and(|seat| (seat.job, seat.rank) == (0, 0));
    let terminal = if is_first && io::stdin().is_terminal() { Some(pipe()?) } else { None };
    let input = match (&terminal, is_first) {
        (Some((input, _)), _) => Some(input.as_fd()),
        (None, true) => None,
        (None, false) => Some(null_device),
    };
    let pipes = if output.is_some() { Some([pipe()?, pipe()?]) } else { None };
    let [out, err] = match &pipes {
        Some([(_, out), (_, err)]) => [Some(out.as_fd()), Some(err.as_fd())],
        None => [None, None],
    };
    let streams = [input, out, err];
    let id = match server {
        Some(server) => server.copy(rank, streams, socket)?,
        None => {
            let number = seating.at(rank).map_or(rank, |seat| seat.rank);
            program::start(spec, seating, rank, &number.to_string(), shared, streams, socket)?
        }
    };
    if let (Some(output), Some(pipes)) = (output, pipes) {
        output.add(rank, pipes.map(|(read, _)| park(read)))?;
    }
    if let Some((_, to_rank)) = terminal {
        // Ends with the terminal's input, or with an error once the rank stops reading.
        std::thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut File::from(to_rank)));
    }
    Ok(id)
}

/// Creates a pipe. Returns its read end first.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    Ok((high(read.into())?, high(write.into())?))
}

/// Returns a descriptor above those of the standard streams, any of which may have been closed.
fn high(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(descriptor);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, libc::STDERR_FILENO + 1)?)
}

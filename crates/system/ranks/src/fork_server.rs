// SPDX-License-Identifier: Apache-2.0
//! Ranks forked from one process of their program, the simulator's side of [`abi::fork`].

use super::job_spec::JobSpec;
use super::parked_descriptors::park;
use super::process::process_id;
use super::program;
use super::seating::Seating;
use super::shared_memory::SharedMemory;
use abi::fork::{ANCILLARY, Answer, DESCRIPTORS, Request, SERVER, STREAMS};
use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Time-out for replies of the server in seconds; it only forks.
const ANSWER_TIMEOUT_S: libc::time_t = 10;

/// A process of the program that forks the ranks. Dropping this value kills it.
pub struct ForkServer {
    pid: u32,
    channel: OwnedFd,
}

impl ForkServer {
    /// Starts the program as a fork server.
    ///
    /// # Errors
    /// The system's error when the program cannot be started or cannot fork.
    pub fn start(spec: &JobSpec, seating: &Seating, shared: &SharedMemory) -> io::Result<ForkServer> {
        let [ours, theirs] = connection()?;
        let null_device = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        let stream = Some(null_device.as_fd());
        let pid = program::start(spec, seating, 0, SERVER, shared, [stream; STREAMS], Some(theirs.as_fd()))?;
        let server = ForkServer { pid, channel: park(ours) };
        drop(theirs); // so that the connection ends with the server
        match server.receive()? {
            0 => Ok(server),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Forks a rank with these standard streams (default: this process's own) and the socket for PMI. Returns its
    /// process id.
    ///
    /// # Errors
    /// The system's error when no process can be created.
    pub fn copy(
        &self,
        rank: usize,
        streams: [Option<BorrowedFd<'_>>; STREAMS],
        socket: Option<BorrowedFd<'_>>,
    ) -> io::Result<u32> {
        let own = [io::stdin().as_raw_fd(), io::stdout().as_raw_fd(), io::stderr().as_raw_fd()];
        let streams = streams.iter().zip(own).map(|(stream, own)| stream.map_or(own, |stream| stream.as_raw_fd()));
        let descriptors: Vec<RawFd> = streams.chain(socket.map(|socket| socket.as_raw_fd())).collect();
        self.send(Request { rank: rank as u32 }, &descriptors)?;
        match self.receive()? {
            error @ ..=0 => Err(io::Error::from_raw_os_error(-error)),
            pid => Ok(pid as u32),
        }
    }

    fn send(&self, request: Request, descriptors: &[RawFd]) -> io::Result<()> {
        assert!(descriptors.len() <= DESCRIPTORS);
        let mut bytes = bytemuck::bytes_of(&request).to_vec();
        let mut ancillary = [0_u64; ANCILLARY];
        let size = size_of_val(descriptors) as u32;
        let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: an all-zero header is valid; it refers to buffers that outlive the call, and the descriptors fit.
        let sent = unsafe {
            let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
            message.msg_iov = &raw mut piece;
            message.msg_iovlen = 1;
            message.msg_control = ancillary.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as usize;
            assert!(message.msg_controllen <= size_of_val(&ancillary));
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
            libc::CMSG_DATA(header).copy_from_nonoverlapping(descriptors.as_ptr().cast(), size as usize);
            libc::sendmsg(self.channel.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
        };
        if sent == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn receive(&self) -> io::Result<Answer> {
        let mut answer: Answer = 0;
        loop {
            // SAFETY: any bytes are a valid number.
            let length =
                unsafe { libc::recv(self.channel.as_raw_fd(), (&raw mut answer).cast(), size_of::<Answer>(), 0) };
            match usize::try_from(length).map_err(|_| io::Error::last_os_error()) {
                Ok(length) if length == size_of::<Answer>() => return Ok(answer),
                Ok(_) => return Err(io::Error::other("the process that copies itself has ended")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the process that copies itself does not answer",
                    ));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        // The server is this process's child and not reaped yet, so its id is not reused.
        if let Some(pid) = process_id(self.pid) {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// Returns a connected pair of sequenced-packet sockets. Receiving on the first times out after [`ANSWER_TIMEOUT_S`].
fn connection() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the call writes two new descriptors without another owner.
    let ends = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) == -1 {
            return Err(io::Error::last_os_error());
        }
        ends.map(|end| OwnedFd::from_raw_fd(end))
    };
    let timeout = libc::timeval { tv_sec: ANSWER_TIMEOUT_S, tv_usec: 0 };
    let size = size_of_val(&timeout) as libc::socklen_t;
    // SAFETY: a socket option with a value of its type.
    let set = unsafe {
        let value = (&raw const timeout).cast();
        libc::setsockopt(ends[0].as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, size)
    };
    if set == -1 { Err(io::Error::last_os_error()) } else { Ok(ends) }
}

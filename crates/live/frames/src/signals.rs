// SPDX-License-Identifier: Apache-2.0
//! SIGINT and SIGTERM as a file.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::syscall::{check, opened};

/// File that is readable once the user has asked for the end (Ctrl-C, `kill`). The signals are blocked in this thread
/// and in those that it starts later.
pub struct EndSignals {
    fd: OwnedFd,
}

impl EndSignals {
    /// Blocks the signals and opens the file.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open() -> io::Result<EndSignals> {
        // SAFETY: the set is initialised before its use, and all pointers are to it.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            Ok(EndSignals { fd: opened(fd)? })
        }
    }

    /// Returns the file.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until one of `files` is readable, or for `timeout_ms` (-1: for ever). Sets the entry of each readable file in
/// `ready`.
///
/// # Errors
/// When the system refuses.
pub fn wait(files: &[BorrowedFd<'_>], timeout_ms: i32, ready: &mut [bool]) -> io::Result<()> {
    const MOST: usize = 8;
    let mut polled = [libc::pollfd { fd: -1, events: 0, revents: 0 }; MOST];
    assert!(files.len() <= MOST, "an event loop has few files");
    for (entry, file) in polled.iter_mut().zip(files) {
        (entry.fd, entry.events) = (file.as_raw_fd(), libc::POLLIN);
    }
    // SAFETY: the array has at least this number of entries.
    let result = check(unsafe { libc::poll(polled.as_mut_ptr(), files.len() as libc::nfds_t, timeout_ms) });
    match result {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => ready.fill(false),
        Err(error) => return Err(error),
        Ok(_) => ready.iter_mut().zip(&polled).for_each(|(ready, entry)| *ready = entry.revents != 0),
    }
    Ok(())
}

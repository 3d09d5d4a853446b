// SPDX-License-Identifier: Apache-2.0
//! Results of system calls, and requests about interfaces.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Returns the result of a system call, or its error.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the file that a system call has opened.
pub fn opened(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the system call has just returned this descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns a request about an interface.
pub fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an all-zero request is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        let reason = format!("an interface's name has 1 to {} bytes", request.ifr_name.len() - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}

/// Performs a request about an interface.
pub fn ioctl(fd: BorrowedFd<'_>, code: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` is the structure that these codes read and write.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), code as _, std::ptr::from_mut(request)) }).map(drop)
}

/// Opens a socket for requests about interfaces.
pub fn control() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    opened(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })
}

/// Receives one frame into `buffer`; `None` if none waits.
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: the buffer has this length.
    let count = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    match usize::try_from(count) {
        Ok(count) => Ok(Some(count)),
        Err(_) => none_waits(io::Error::last_os_error()),
    }
}

/// Returns `None` for the error that says that no frame waits.
pub fn none_waits<T>(error: io::Error) -> io::Result<Option<T>> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

/// Sends one frame.
pub fn write(fd: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    // SAFETY: the frame has this length.
    let count = unsafe { libc::write(fd.as_raw_fd(), frame.as_ptr().cast(), frame.len()) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

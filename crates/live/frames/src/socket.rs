// SPDX-License-Identifier: Apache-2.0
//! Unix socket whose messages are frames, for tests and programs without rights: the cable between card and client.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::address::Mac;
use crate::port::{Port, PortError};
use crate::syscall::{check, none_waits, opened, read, write};

/// Socket file that waits for its client; dropping it removes the file.
pub struct Listener {
    path: PathBuf,
    fd: OwnedFd,
}

/// Connection to a client.
pub struct Connection {
    name: String,
    fd: OwnedFd,
}

impl Listener {
    /// Creates the socket file, of type SOCK_SEQPACKET. Replaces a file left by a run that was killed.
    ///
    /// # Errors
    /// [`PortError`] when the file cannot be created, or another process listens there.
    pub fn create(path: &Path) -> Result<Listener, PortError> {
        let place = path.display().to_string();
        let error = |step: &'static str| {
            let place = place.clone();
            move |error| PortError::of(&place, step, &error)
        };
        // SAFETY: an all-zero address is valid.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() || bytes.len() >= address.sun_path.len() {
            let most = address.sun_path.len() - 1;
            return Err(PortError::new(&place, format!("a socket's path has 1 to {most} bytes"), "use a shorter path"));
        }
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        address.sun_path.iter_mut().zip(bytes).for_each(|(to, from)| *to = from.cast_signed());
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let socket = || {
            // SAFETY: no pointers.
            opened(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) })
        };
        let fd = socket().map_err(error("open a socket"))?;
        if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            let probe = socket().map_err(error("open a socket"))?;
            // SAFETY: the address has this length.
            let connected = check(unsafe { libc::connect(probe.as_raw_fd(), (&raw const address).cast(), length) });
            if connected.is_ok() {
                let reason = "another process listens at this socket";
                return Err(PortError::new(&place, reason, "end it, or choose another path"));
            }
            fs::remove_file(path).map_err(error("remove the socket of an earlier run"))?;
        }
        // SAFETY: the address has this length.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })
            .map_err(error("create the socket"))?;
        let listener = Listener { path: path.to_owned(), fd };
        // SAFETY: no pointers.
        check(unsafe { libc::listen(listener.fd.as_raw_fd(), 1) }).map_err(error("listen"))?;
        Ok(listener)
    }

    /// Returns the file that is readable when a client connects.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Accepts the client.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn accept(&self) -> io::Result<Connection> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let none = std::ptr::null_mut();
        // SAFETY: the address of the client is not wanted.
        let fd = opened(unsafe { libc::accept4(self.fd.as_raw_fd(), none, none.cast(), flags) })?;
        Ok(Connection { name: self.path.display().to_string(), fd })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}

impl Port for Connection {
    fn name(&self) -> &str {
        &self.name
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match read(self.fd.as_fd(), buffer) {
            Ok(Some(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(io::ErrorKind::UnexpectedEof.into()),
            other => other,
        }
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match write(self.fd.as_fd(), frame) {
            // The next receive reports a client that has gone.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => none_waits::<()>(error).map(drop),
            Ok(()) => Ok(()),
        }
    }

    fn mac(&self) -> Option<Mac> {
        None
    }
}

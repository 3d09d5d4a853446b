// SPDX-License-Identifier: Apache-2.0
//! Connection with gdb: a Unix socket accessible only to the user, or a port on request. It has no name in the file
//! system while it waits, so a killed process leaves nothing behind: gdb opens socket and program below `/proc/PID/fd`.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use gdbstub::conn::Connection;
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat};

use command::listable::name_of;

/// Longest time between checks for signals during a read.
const PATIENCE: Duration = Duration::from_millis(100);
/// Number of such reads in which gdb may acknowledge the last packet.
const LAST_READS: usize = 10;
/// Interval of polling for a connection.
const PAUSE: Duration = Duration::from_millis(20);

/// Address at which gdb connects.
pub enum Door {
    /// Socket, and the unlinked file through which it is reached.
    Socket(UnixListener, OwnedFd),
    /// Port of this computer, accessible to all its users.
    Port(TcpListener),
}

impl Door {
    /// Opens a socket that only the user can access.
    ///
    /// # Errors
    /// The system's error, with the folder for temporary files.
    pub fn socket() -> io::Result<Door> {
        let failed = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!("{}: no socket can be made here: {error}", std::env::temp_dir().display()),
            )
        };
        let room = tempfile::Builder::new().prefix("spinrun-").tempdir().map_err(failed)?;
        // Through this name the address is short, whatever the length of the folder's name.
        let folder = File::open(room.path()).map_err(failed)?;
        let name = PathBuf::from(format!("/proc/self/fd/{}/gdb", folder.as_raw_fd()));
        let listener = UnixListener::bind(&name).map_err(failed)?;
        fs::set_permissions(&name, Permissions::from_mode(0o600)).map_err(failed)?;
        let reached = openat(CWD, &name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        Ok(Door::Socket(listener, reached.map_err(|error| failed(error.into()))?))
    }

    /// Opens a port of this computer; 0 selects a free one.
    ///
    /// # Errors
    /// The system's error, with the port.
    pub fn port(port: u16) -> io::Result<Door> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("port {port}: {error}"));
        Ok(Door::Port(TcpListener::bind(("127.0.0.1", port)).map_err(failed)?))
    }

    /// Returns the address for gdb's `target remote`.
    ///
    /// # Errors
    /// The system's error.
    pub fn address(&self) -> io::Result<String> {
        Ok(match self {
            Door::Socket(_, file) => name_of(file).display().to_string(),
            Door::Port(listener) => format!(":{}", listener.local_addr()?.port()),
        })
    }

    /// Waits for gdb.
    ///
    /// # Errors
    /// The system's error; [`ErrorKind::Interrupted`] when a signal ends the run.
    pub fn accept(&self) -> io::Result<Line> {
        let socket: OwnedFd = match self {
            Door::Socket(listener, _) => {
                listener.set_nonblocking(true)?;
                patiently(|| listener.accept())?.0.into()
            }
            Door::Port(listener) => {
                listener.set_nonblocking(true)?;
                let stream = patiently(|| listener.accept())?.0;
                stream.set_nodelay(true)?;
                stream.into()
            }
        };
        let socket = UnixStream::from(socket);
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Line { socket, unsent: Vec::new() })
    }
}

/// Connection with one gdb.
pub struct Line {
    /// Socket of either kind; only operations common to both are used.
    socket: UnixStream,
    unsent: Vec<u8>,
}

impl Line {
    /// Waits for a byte; `None` when gdb closed the connection.
    ///
    /// # Errors
    /// The system's error; [`ErrorKind::Interrupted`] when a signal ends the run.
    pub fn read(&mut self) -> io::Result<Option<u8>> {
        patiently(|| read(&self.socket))
    }

    /// Returns a byte if one is available.
    ///
    /// # Errors
    /// The system's error; [`ErrorKind::WouldBlock`] without a byte.
    pub fn take(&mut self) -> io::Result<Option<u8>> {
        self.socket.set_nonblocking(true)?;
        let byte = read(&self.socket);
        self.socket.set_nonblocking(false)?;
        byte
    }
}

/// Closes the connection after gdb acknowledges the last packet: it cannot write its acknowledgement to a closed
/// socket, and would report a broken connection instead of the end of the program.
impl Drop for Line {
    fn drop(&mut self) {
        for _ in 0..LAST_READS {
            match read(&self.socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && ranks::asked_to_end().is_none() => {}
                _ => return,
            }
        }
    }
}

fn read(mut socket: &UnixStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    Ok((socket.read(&mut byte)? > 0).then_some(byte[0]))
}

impl Connection for Line {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.unsent.push(byte);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut bytes = &self.unsent[..];
        while !bytes.is_empty() {
            // SAFETY: the pointer and the length are those of a slice. The flag prevents SIGPIPE after gdb exits.
            let sent =
                unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
            match usize::try_from(sent) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
        self.unsent.clear();
        Ok(())
    }
}

/// Repeats an interrupted call until it is done, or a signal ends the run: another thread may have handled the signal.
fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        if ranks::asked_to_end().is_some() {
            return Err(ErrorKind::Interrupted.into());
        }
        match call() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Device program in memory, for gdb.
pub struct Program(File);

impl Program {
    /// Creates it; `name` is only a label for inspection of the process.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(name: &str, elf: &[u8]) -> io::Result<Program> {
        let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
        file.write_all(elf)?;
        Ok(Program(file))
    }

    /// Returns the path by which this user's processes can open it during the run.
    pub fn path(&self) -> PathBuf {
        name_of(&self.0)
    }
}

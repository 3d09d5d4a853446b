// SPDX-License-Identifier: Apache-2.0
//! Starts a process without copying the simulator's page tables, as `fork` does: the copies dominated the start of jobs
//! with many ranks. The new process shares the memory until it executes its program. `posix_spawn` does the same but
//! supports neither `prctl` nor `personality`.

use super::parked_descriptors;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;
use std::ptr;

/// Stack size of the new process, in units of 16 bytes.
const STACK: usize = 4096;

/// Search path of programs without `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Starts the program of a command, with its arguments and variables, in a new process group. `streams` override this
/// process's standard streams. `prepare` runs in the new process and may only make system calls, because it shares this
/// process's memory. The child inherits descriptors up to `highest` at least, but no [parked](parked_descriptors) ones
/// above it. Returns the process id.
///
/// # Errors
/// The system's error when no process can be created, `prepare` fails, or the program cannot be executed.
pub fn launch(
    command: &Command,
    streams: [Option<BorrowedFd<'_>>; 3],
    highest: RawFd,
    prepare: &dyn Fn() -> io::Result<()>,
) -> io::Result<u32> {
    let image = Image::new(command)?;
    let streams = streams.map(|stream| stream.map(|stream| stream.as_raw_fd()));
    let highest = streams.iter().flatten().fold(highest, |highest, stream| highest.max(*stream));
    let mut child =
        Child { image: &image, streams, end: parked_descriptors::first().max(highest + 1), prepare, error: 0 };
    let mut stack = vec![MaybeUninit::<u128>::uninit(); STACK];
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: this thread is suspended until the new process executes its program or ends, so `child`, its referents
    // and the stack outlive their use without other users. All signals are blocked, so no handler runs in the new
    // process before that.
    let (pid, failure) = unsafe {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let pid = libc::clone(run, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut child).cast());
        let failure = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (pid, failure)
    };
    match (pid, child.error) {
        (-1, _) => Err(failure),
        (_, 0) => Ok(pid as u32),
        (_, error) => {
            // SAFETY: the child exits at once, and no other code knows its id.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// State of the new process before it executes its program.
struct Child<'a> {
    image: &'a Image,
    streams: [Option<RawFd>; 3],
    /// First descriptor number that the child does not need.
    end: RawFd,
    prepare: &'a dyn Fn() -> io::Result<()>,
    /// Error number of a failure.
    error: c_int,
}

/// Entry point of the new process.
extern "C" fn run(child: *mut c_void) -> c_int {
    // SAFETY: `launch` passed this pointer and is suspended.
    let child = unsafe { &mut *child.cast::<Child<'_>>() };
    let Err(error) = child.execute();
    child.error = error.raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: ends without running the simulator's exit handlers.
    unsafe { libc::_exit(127) }
}

impl Child<'_> {
    fn execute(&self) -> Result<std::convert::Infallible, io::Error> {
        let checked = |result: c_int| if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
        // Unshare the descriptor table, keeping only the needed part. Kernels without close_range(2) copy all of it.
        // SAFETY: the new process uses no other table, and the call leaves the parent's table unchanged.
        unsafe {
            let own = libc::syscall(libc::SYS_close_range, self.end, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE);
            if own == -1 {
                checked(libc::unshare(libc::CLONE_FILES))?;
            }
        }
        for (number, stream) in (0..).zip(self.streams) {
            if let Some(stream) = stream {
                // SAFETY: descriptors are numbers, and the table belongs to this process alone.
                checked(unsafe { libc::dup2(stream, number) })?;
            }
        }
        // SAFETY: system calls that change this process alone. Rust ignores SIGPIPE in the simulator; other programs
        // expect its default action, and no blocked signals.
        unsafe {
            checked(libc::setpgid(0, 0))?;
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let mut none = MaybeUninit::uninit();
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        }
        (self.prepare)()?;
        Err(self.image.execute())
    }
}

/// A program with its arguments and variables, prepared for `execve`.
struct Image {
    /// Candidate files of the program; the first existing one is executed.
    files: Vec<CString>,
    arguments: Strings,
    /// Arguments for the shell, which runs scripts without `#!`; the second one is the file.
    of_shell: Vec<*const c_char>,
    variables: Strings,
}

/// Strings, and a null-terminated list of pointers to them.
struct Strings {
    _texts: Vec<CString>,
    list: Vec<*const c_char>,
}

impl Strings {
    fn new(texts: impl Iterator<Item = Vec<u8>>) -> io::Result<Strings> {
        let texts = texts.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let list = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Ok(Strings { _texts: texts, list })
    }
}

impl Image {
    fn new(command: &Command) -> io::Result<Image> {
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => drop(variables.insert(name.into(), value.into())),
                None => drop(variables.remove(name)),
            }
        }
        let files = candidates(command.get_program(), variables.get(OsStr::new("PATH")));
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let arguments = Strings::new(words.map(|word| word.as_bytes().to_vec()))?;
        let of_shell =
            [c"/bin/sh".as_ptr(), ptr::null()].into_iter().chain(arguments.list[1..].iter().copied()).collect();
        let pairs = variables.into_iter().map(|(name, value)| [name, value].join(OsStr::new("=")).into_vec());
        Ok(Image {
            files: files.into_iter().map(CString::new).collect::<Result<_, _>>()?,
            arguments,
            of_shell,
            variables: Strings::new(pairs)?,
        })
    }

    /// Executes the program as `execvp` does. Returns only on failure.
    fn execute(&self) -> io::Error {
        let mut refused = None;
        for file in &self.files {
            // SAFETY: lists and strings outlive the call.
            unsafe { libc::execve(file.as_ptr(), self.arguments.list.as_ptr(), self.variables.list.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOEXEC) => return self.execute_script(file.as_ptr()),
                Some(libc::EACCES) => refused = Some(error),
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                _ => return error,
            }
        }
        refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn execute_script(&self, file: *const c_char) -> io::Error {
        let list = self.of_shell.as_ptr().cast_mut();
        // SAFETY: the list has at least two entries, only this process uses it, and lists and strings outlive the call.
        unsafe {
            *list.add(1) = file;
            libc::execve(*list, list, self.variables.list.as_ptr());
        }
        io::Error::last_os_error()
    }
}

/// Returns the candidate files of a program: the path itself, or its name in the folders of `PATH`.
fn candidates(program: &OsStr, path: Option<&OsString>) -> Vec<Vec<u8>> {
    let program = program.as_bytes();
    if program.contains(&b'/') {
        return vec![program.to_vec()];
    }
    let path = path.map_or(DEFAULT_PATH.as_bytes(), |path| path.as_bytes());
    let in_folder = |folder: &[u8]| match folder {
        [] => program.to_vec(),
        folder => [folder, program].join(&b'/'),
    };
    path.split(|byte| *byte == b':').map(in_folder).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    /// Runs a command. Returns its exit status and output.
    fn output(command: &Command, prepare: &dyn Fn() -> io::Result<()>) -> io::Result<(i32, String)> {
        let (mut read, write) = io::pipe()?;
        let pid = launch(command, [None, Some(write.as_fd()), None], write.as_raw_fd(), prepare)?;
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text)?;
        let mut status = 0;
        // SAFETY: the process is this test's child, and `status` is a local.
        unsafe { libc::waitpid(pid as i32, &raw mut status, 0) };
        Ok((libc::WEXITSTATUS(status), text))
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_child_gets_arguments_variables_and_streams() {
        let mut command = shell("echo $1 $NAME ${HOME-none}; exit 3");
        command.args(["name", "one"]).env("NAME", "two").env_remove("HOME");
        assert_eq!(output(&command, &|| Ok(())).unwrap(), (3, "one two none\n".into()));
    }

    #[test]
    fn programs_are_searched_in_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spin-script");
        std::fs::write(&file, "echo script $1").unwrap();
        let path = format!("{}::/bin:/usr/bin", folder.path().display());
        let run = |name: &OsStr| output(Command::new(name).arg("one").env("PATH", &path), &|| Ok(()));
        let kind = |name: &OsStr| run(name).unwrap_err().kind();
        assert_eq!(kind(OsStr::new("spin-script")), io::ErrorKind::PermissionDenied, "found, but no program");
        assert_eq!(kind(OsStr::new("nowhere")), io::ErrorKind::NotFound);
        assert_eq!(kind(folder.path().as_os_str()), io::ErrorKind::PermissionDenied);
        let mut permissions = file.metadata().unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&file, permissions).unwrap();
        for name in [OsStr::new("spin-script"), file.as_os_str()] {
            assert_eq!(run(name).unwrap(), (0, "script one\n".into()), "the shell runs what has no #!");
        }
    }

    #[test]
    fn errors_of_the_child_are_returned() {
        let refuses = || Err(io::Error::from_raw_os_error(libc::EPERM));
        let error = output(&shell("true"), &refuses).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    /// A child has the inherited and passed descriptors but no parked one; the parent keeps both.
    #[test]
    fn a_child_has_no_parked_descriptors() {
        let (read, write) = io::pipe().unwrap();
        let parked = parked_descriptors::park(write.into());
        // SAFETY: the descriptors belong to this test.
        let inherited = unsafe {
            libc::fcntl(parked.as_raw_fd(), libc::F_SETFD, 0); // clears FD_CLOEXEC
            libc::dup(read.as_raw_fd())
        };
        let has = |descriptor: RawFd| format!("test -e /proc/self/fd/{descriptor}");
        let (status, _) = output(&shell(&has(parked.as_raw_fd())), &|| Ok(())).unwrap();
        assert_eq!(status, 1, "{} is parked", parked.as_raw_fd());
        assert!(inherited < parked_descriptors::first());
        assert_eq!(output(&shell(&has(inherited)), &|| Ok(())).unwrap().0, 0);
        for descriptor in [inherited, parked.as_raw_fd()] {
            // SAFETY: as above.
            assert_ne!(unsafe { libc::fcntl(descriptor, libc::F_GETFD) }, -1, "this process has lost {descriptor}");
        }
        // SAFETY: as above.
        unsafe { libc::close(inherited) };
    }

    #[test]
    fn a_child_has_default_signal_state() {
        let (_, text) = output(&shell("grep -E 'Sig(Blk|Ign)' /proc/self/status"), &|| Ok(())).unwrap();
        let sets: Vec<u64> = text.lines().map(|line| u64::from_str_radix(&line[8..], 16).unwrap()).collect();
        assert_eq!((sets[0], sets[1] >> (libc::SIGPIPE - 1) & 1), (0, 0), "blocked, and SIGPIPE ignored: {text}");
        let pgid = shell("read -r _ _ _ _ group _ < /proc/$$/stat; test $group = $$");
        assert_eq!(output(&pgid, &|| Ok(())).unwrap().0, 0, "a group of its own");
    }
}

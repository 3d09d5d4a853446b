// SPDX-License-Identifier: Apache-2.0
//! Output files of commands, their [`Cache`] folder, and folders for temporary files ([`Scratch`]). A file is written
//! completely or not at all, and only regular files are replaced.
//!
//! | path | effect |
//! | --- | --- |
//! | does not exist | the file gets its name when it is finished |
//! | a regular file | the finished file replaces it, and keeps its permissions and owner |
//! | a symbolic link to a regular file | the target of the link is replaced, the link stays |
//! | a pipe or a device | written in place |
//! | `-`, or the file that is standard output or standard error | written in place, appended |
//! | a dangling symbolic link, a folder | an error, as with `cp` |
//!
//! An unfinished file has no name (`O_TMPFILE`), so a killed process leaves nothing behind. On file systems without
//! `O_TMPFILE`, it has an unpredictable name in the same folder and is opened with `O_EXCL`.

mod cache;
mod scratch;

pub use cache::{Cache, CacheError, is_whole, seal};
pub use scratch::Scratch;

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Permissions of a new file, before the system applies the umask.
const FILE: u32 = 0o666;
/// Permissions of a new program, before the system applies the umask.
const PROGRAM: u32 = 0o777;
/// Size of the write buffer, in bytes.
const BUFFER: usize = 1 << 16;

/// An output file in progress. If it is dropped before [`Output::finish`], the path keeps its former contents.
#[derive(Debug)]
pub struct Output {
    file: BufWriter<Place>,
    /// Path of the finished file, with symbolic links resolved.
    target: PathBuf,
}

/// Destination of the bytes until the output is finished.
#[derive(Debug)]
enum Place {
    /// The file, pipe or device at the path, written in place.
    There(File),
    /// A file without a name.
    Unnamed(File),
    /// A file with an unpredictable name.
    Named(NamedTempFile),
}

impl Output {
    /// Opens the file `path`, or standard output for `-`. Blocks until a named pipe has a reader.
    ///
    /// # Errors
    /// The system's error if the path cannot be written. Open outputs before long computations, so that this fails
    /// early.
    pub fn create(path: &Path) -> io::Result<Output> {
        if path == Path::new("-") {
            return Ok(Output::there(File::from(io::stdout().as_fd().try_clone_to_owned()?)));
        }
        let there = match fs::metadata(path) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Output::new_file(path, FILE),
            Err(error) => return Err(error),
        };
        if let Some(stream) = standard_stream(&there)? {
            return Ok(Output::there(stream));
        }
        // `open` checks that the user may write this file, and follows links.
        let file = OpenOptions::new().write(true).open(path)?;
        let there = file.metadata()?;
        if !there.is_file() {
            return Ok(Output::there(file));
        }
        let output = Output::hidden(path.canonicalize()?, FILE, true)?;
        let file = output.file.get_ref().file();
        // Only root may change the owner; otherwise the file belongs to the current user.
        let _ = fchown(file, Some(there.uid()), Some(there.gid()));
        file.set_permissions(there.permissions())?;
        Ok(output)
    }

    /// Opens the file of a program. It will be executable, and replaces a regular file even if that is read-only or
    /// being executed.
    ///
    /// # Errors
    /// The system's error if the path cannot be written.
    pub fn create_program(path: &Path) -> io::Result<Output> {
        match fs::symlink_metadata(path) {
            Ok(there) if there.is_file() => Output::hidden(path.canonicalize()?, PROGRAM, true),
            Err(error) if error.kind() == ErrorKind::NotFound => Output::new_file(path, PROGRAM),
            _ => {
                let output = Output::create(path)?;
                if let Some(file) = output.file.get_ref().replacement() {
                    let mode = file.metadata()?.permissions().mode();
                    // All users who may read the program may execute it.
                    file.set_permissions(Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
                }
                Ok(output)
            }
        }
    }

    fn there(file: File) -> Output {
        Output { file: BufWriter::with_capacity(BUFFER, Place::There(file)), target: PathBuf::new() }
    }

    fn new_file(path: &Path, mode: u32) -> io::Result<Output> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::Error::new(ErrorKind::NotFound, "it is a symbolic link to a file that does not exist"));
        }
        let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
        let Some(name) = name else { return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file name")) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Output::hidden(folder.canonicalize()?.join(name), mode, true)
    }

    /// Creates a hidden file that gets its name `target` when it is finished.
    fn hidden(target: PathBuf, mode: u32, can_be_unnamed: bool) -> io::Result<Output> {
        let folder = target.parent().unwrap_or(Path::new("/"));
        let unnamed =
            || OpenOptions::new().write(true).mode(mode).custom_flags(OFlags::TMPFILE.bits() as i32).open(folder);
        let place = match unnamed() {
            Ok(file) if can_be_unnamed && own_name(&file).exists() => Place::Unnamed(file),
            _ => {
                let permissions = Permissions::from_mode(mode);
                Place::Named(tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?)
            }
        };
        Ok(Output { file: BufWriter::with_capacity(BUFFER, place), target })
    }

    /// Flushes the file and gives it its name.
    ///
    /// # Errors
    /// The system's error if writing fails; the path then keeps its former contents.
    pub fn finish(self) -> io::Result<()> {
        match self.file.into_inner().map_err(|error| error.into_error())? {
            Place::There(_) => Ok(()),
            Place::Named(file) => file.persist(&self.target).map(drop).map_err(|error| error.error),
            Place::Unnamed(file) => match link(&file, &self.target) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let folder = self.target.parent().unwrap_or(Path::new("/"));
                    let named = tempfile::Builder::new().make_in(folder, |path| link(&file, path))?;
                    named.persist(&self.target).map_err(|error| error.error)
                }
                result => result,
            },
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Place {
    fn file(&self) -> &File {
        match self {
            Place::There(file) | Place::Unnamed(file) => file,
            Place::Named(file) => file.as_file(),
        }
    }

    /// Returns the file, unless it is written in place.
    fn replacement(&self) -> Option<&File> {
        if matches!(self, Place::There(_)) { None } else { Some(self.file()) }
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Writes the file `path`, or standard output for `-`. A reader of standard output may stop early (`| head`).
///
/// # Errors
/// The error of `content`, or the system's error if the path cannot be written. The path then keeps its former
/// contents.
pub fn write(path: &Path, content: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<()> {
    complete(Output::create(path)?, path, content)
}

/// Writes a text to standard output, whose reader may stop early (`| head`).
///
/// # Errors
/// The system's error if standard output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes and finishes an output that [`Output::create`] opened for `path`.
///
/// # Errors
/// As for [`write()`].
pub fn complete(
    mut output: Output,
    path: &Path,
    content: impl FnOnce(&mut Output) -> io::Result<()>,
) -> io::Result<()> {
    match content(&mut output).and_then(|()| output.finish()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe && path == Path::new("-") => Ok(()),
        result => result,
    }
}

/// Returns true if the path names something other than a regular file, which must not be removed or replaced.
pub fn is_special(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| !there.is_file())
}

/// Returns standard output or standard error if `there` is its file. Opening that file again would overwrite it from
/// its start.
fn standard_stream(there: &Metadata) -> io::Result<Option<File>> {
    for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
        let Ok(own) = stream.try_clone_to_owned().map(File::from) else { continue };
        let meta = own.metadata()?;
        if (meta.dev(), meta.ino()) == (there.dev(), there.ino()) {
            return Ok(Some(own));
        }
    }
    Ok(None)
}

/// Returns a path to an open file.
fn own_name(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Links an unnamed file to `path`.
fn link(file: &File, path: &Path) -> io::Result<()> {
    linkat(CWD, own_name(file), CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
}

#[cfg(test)]
mod tests;

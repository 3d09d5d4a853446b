//! Schedules in and out.

use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::ValueEnum;
use goal::{ReadError, Schedule, binary, text};

use super::GoalError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// GOAL, for people and other tools
    Text,
    /// Mapped into memory: no reading
    Binary,
}

impl Format {
    /// By the ending of a file's name.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "goal" | "txt" => Some(Format::Text),
            "bin" => Some(Format::Binary),
            _ => None,
        }
    }
}

/// What messages call a file.
pub fn named(file: &Path) -> &Path {
    if file == Path::new("-") { Path::new("<stdin>") } else { file }
}

pub fn load(file: &Path) -> Result<Schedule, ReadError> {
    if file == Path::new("-") { goal::read(&mut io::stdin().lock(), named(file)) } else { goal::open(file) }
}

pub fn save(schedule: &Schedule, path: &Path, format: Format) -> Result<(), GoalError> {
    write_whole(path, |mut out| match format {
        Format::Text => text::write(schedule, 0..schedule.ranks(), &mut out),
        Format::Binary => binary::write(schedule, &mut out),
    })
}

/// Writes a file that is either there in full or not at all; `-` is standard output.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), GoalError> {
    if path == Path::new("-") {
        return print(|out| write(out));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let save = || {
        // A pipe or a device is written to, not replaced.
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            let mut out = BufWriter::with_capacity(1 << 16, fs::File::create(path)?);
            write(&mut out)?;
            return out.flush();
        }
        // Those of an ordinary new file; the system takes the user's mask off.
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
        let mut out = BufWriter::with_capacity(1 << 16, &mut file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        file.persist(path)?;
        Ok(())
    };
    save().map_err(|error| GoalError::Write { path: path.into(), error })
}

/// Prints on standard output; a reader that has seen enough (`| head`) is no error.
pub fn print(write: impl FnOnce(&mut BufWriter<io::StdoutLock>) -> io::Result<()>) -> Result<(), GoalError> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(GoalError::Write { path: "standard output".into(), error })
        }
        _ => Ok(()),
    }
}

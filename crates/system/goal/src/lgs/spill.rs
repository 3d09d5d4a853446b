// SPDX-License-Identifier: Apache-2.0
//! Large files, converted rank by rank to a temporary file of spinkit's form, which is mapped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

use super::read::{Directory, LgsError, Section, begin, read};
use crate::binary::{self, Appender, BinaryError};
use crate::build::Builder;
use crate::schedule::Schedule;

/// Size in bytes from which a file is converted in a temporary file instead of in memory.
pub const SPILL: u64 = 256 << 20;

/// Error of opening a file.
#[derive(Debug, Error)]
pub enum SpillError {
    /// The file is invalid.
    #[error(transparent)]
    File(#[from] LgsError),
    /// The temporary file cannot be written.
    #[error("its temporary copy in {}: {error}; TMPDIR names another folder", folder.display())]
    Temporary {
        /// Folder
        folder: PathBuf,
        /// Reason
        error: BinaryError,
    },
}

/// Reads a file. Files of [`SPILL`] bytes and more take the memory of one rank, and a temporary file in `TMPDIR`.
///
/// # Errors
/// See [`SpillError`].
pub fn open(path: &Path) -> Result<Schedule, SpillError> {
    open_above(path, SPILL)
}

fn open_above(path: &Path, spill: u64) -> Result<Schedule, SpillError> {
    let file = File::open(path).map_err(LgsError::Io)?;
    if file.metadata().map_err(LgsError::Io)?.len() < spill {
        let mut stream = BufReader::new(file);
        begin(&mut stream)?;
        return Ok(read(&mut stream)?);
    }
    let folder = std::env::temp_dir();
    let failed = |error| SpillError::Temporary { folder: folder.clone(), error };
    let temporary = temporary(&folder).map_err(|error| failed(error.into()))?;
    convert(&file, &temporary).map_err(|error| match error {
        Failure::Input(error) => SpillError::File(error),
        Failure::Output(error) => failed(error.into()),
    })?;
    binary::map(&temporary).map_err(failed)
}

/// Creates a file without a name, which disappears with its last user.
fn temporary(folder: &Path) -> io::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("spinkit-goal-{}-{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

enum Failure {
    Input(LgsError),
    Output(io::Error),
}

impl<E: Into<LgsError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Input(error.into())
    }
}

/// Converts a file to spinkit's form: the first pass over the input counts, the second writes.
fn convert(input: &File, output: &File) -> Result<(), Failure> {
    let mut stream = BufReader::with_capacity(1 << 20, input);
    let mut section = Vec::new();
    begin(&mut stream)?;
    let directory = Directory::read(&mut stream)?;
    let (mut ops, mut edges, mut wide) = (0, 0, 0);
    for rank in 0..directory.ranks {
        directory.section(rank, &mut stream, &mut section)?;
        let section = Section::new(rank, directory.start(rank), &section)?;
        ops += section.operations();
        edges += section.dependencies();
        wide += section.wide();
    }
    directory.ended(&mut stream)?;
    stream.seek(SeekFrom::Start(directory.start(0)))?;
    let mut appender = Appender::new(output, directory.ranks, [wide, ops, edges]).map_err(LgsError::Build)?;
    let mut builder = Builder::new(directory.ranks);
    for rank in 0..directory.ranks {
        directory.section(rank, &mut stream, &mut section)?;
        Section::new(rank, directory.start(rank), &section)?.add_to(&mut builder, directory.ranks)?;
        appender.add_rank(&mut builder).map_err(Failure::Output)?;
    }
    appender.finish(&builder).map_err(Failure::Output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, Spec, generate};
    use crate::{lgs, text};

    /// Returns a schedule with messages beyond 32 bits, wildcards, CPUs and NICs.
    fn schedule() -> Schedule {
        let text = "num_ranks 3
            rank 0 { a: calc 5000000000 cpu 3 b: send 5000000000b to 1 tag 7 nic 2 c: send 1b to 2 b requires a
                     c irequires b }
            rank 1 { a: recv 5000000000b from any tag any b: send 6000000000b to 2 tag 1 b requires a }
            rank 2 { a: recv 6000000000b from 1 tag 1 b: recv 1b from 0 b requires a }";
        text::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn both_ways_of_opening_give_the_same_tables() {
        let halo = Spec { ranks: 16, bytes: 100, dims: vec![4, 4], calc_ns: 7, iterations: 3, ..Spec::default() };
        for schedule in [schedule(), generate(Pattern::Halo, &halo).unwrap()] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("schedule.bin");
            let mut bytes = Vec::new();
            lgs::write(&schedule, &mut bytes).unwrap();
            fs::write(&path, bytes).unwrap();
            let [in_memory, spilled, original] =
                [open_above(&path, u64::MAX), open_above(&path, 0), Ok(schedule)].map(|schedule| {
                    let mut bytes = Vec::new();
                    binary::write(&schedule.unwrap(), &mut bytes).unwrap();
                    bytes
                });
            assert_eq!(in_memory, spilled);
            assert_eq!(spilled, original);
        }
    }
}

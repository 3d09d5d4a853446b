// SPDX-License-Identifier: Apache-2.0
//! PMI-1 connection of a rank to the simulator.

#![deny(clippy::cast_possible_truncation)] // values come from input

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::str::FromStr;

/// Fields that may contain blanks; each is the last field of its line.
const REST_OF_LINE: [&str; 3] = ["value", "val", "port"];

/// Key of a job's numbers of ranks, one for each program in rank order, separated by commas. A job with one program has
/// no such key.
pub const PROGRAMS: &str = "spin_programs";

/// Writes a line to standard error if it is open. `eprintln!` panics if the reader is gone.
pub fn say(line: &str) {
    _ = writeln!(io::stderr(), "{line}");
}

/// The process's end of the socket to the simulator.
pub struct Connection {
    /// Never closed, as another library of the process may use the descriptor later.
    reader: ManuallyDrop<BufReader<File>>,
}

/// Job of this process.
pub struct Job {
    /// Socket to the simulator.
    pub connection: Connection,
    /// Rank of this process.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// Name of the job's key-value space.
    pub space: String,
    /// Maximum lengths of the name of a space, a key and a value, in bytes.
    pub maxes: [usize; 3],
}

/// Fields of an answer.
#[derive(Debug, Default)]
pub struct Answer {
    fields: BTreeMap<String, String>,
}

impl Job {
    /// Joins the job named by the environment variables `PMI_FD`, `PMI_RANK` and `PMI_SIZE`.
    ///
    /// # Errors
    /// The reason, for the user.
    pub fn join() -> Result<Job, String> {
        let fd = environment("PMI_FD").ok_or("not started by spinrun (PMI_FD is not set)")?;
        let (Some(rank), Some(size)) = (environment("PMI_RANK"), environment("PMI_SIZE")) else {
            return Err("not started by spinrun (PMI_RANK and PMI_SIZE are not set)".into());
        };
        // SAFETY: spinrun leaves the descriptor open for the process.
        let mut connection = unsafe { Connection::new(fd) };
        let mut ask = |line, expected| connection.ask(line, expected).map_err(|error| lost(&error));
        if !ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?.is_ok() {
            return Err("spinrun does not speak PMI 1.1".into());
        }
        let maxes = ask("cmd=get_maxes", "maxes")?;
        let space = ask("cmd=get_my_kvsname", "my_kvsname")?;
        let maxes = ["kvsname_max", "keylen_max", "vallen_max"].map(|name| maxes.number(name).unwrap_or(0));
        let space = space.text("kvsname").unwrap_or_default().to_owned();
        Ok(Job { connection, rank, size, space, maxes })
    }
}

/// Returns the numeric value of an environment variable.
pub fn environment<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns the user's message for an error of [`Connection::ask`].
pub fn lost(error: &io::Error) -> String {
    format!("the connection to spinrun is lost: {error}")
}

impl Connection {
    /// Makes a connection from a descriptor.
    ///
    /// # Safety
    /// The descriptor must be that of the environment variable `PMI_FD`, and stay open.
    pub unsafe fn new(fd: RawFd) -> Connection {
        // SAFETY: the caller guarantees it; the descriptor is never closed here.
        Connection { reader: ManuallyDrop::new(BufReader::new(unsafe { File::from_raw_fd(fd) })) }
    }

    /// Sends a line.
    ///
    /// # Errors
    /// The system's error if the simulator is gone.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        self.reader.get_mut().write_all(format!("{line}\n").as_bytes())
    }

    /// Sends a line and waits for its answer, the command `expected`.
    ///
    /// # Errors
    /// The system's error if the simulator is gone, or an error that names an unexpected answer.
    pub fn ask(&mut self, line: &str, expected: &str) -> io::Result<Answer> {
        self.tell(line)?;
        let mut text = String::new();
        if self.reader.read_line(&mut text)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let answer = Answer::parse(text.trim_end_matches('\n'));
        match answer.text("cmd") {
            Some(command) if command == expected => Ok(answer),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("`{}` answers `{line}`", text.trim_end()))),
        }
    }
}

impl Answer {
    fn parse(line: &str) -> Answer {
        let mut fields = BTreeMap::new();
        let mut rest = line;
        while let Some((name, after)) = rest.trim_start().split_once('=') {
            let length =
                if REST_OF_LINE.contains(&name) { after.len() } else { after.find(' ').unwrap_or(after.len()) };
            fields.insert(name.into(), after[..length].into());
            rest = &after[length..];
        }
        Answer { fields }
    }

    /// Returns the value of a field.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// Returns the numeric value of a field.
    pub fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// Returns true if the request succeeded.
    pub fn is_ok(&self) -> bool {
        self.number("rc") == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn the_last_field_may_hold_blanks() {
        let answer = Answer::parse("cmd=get_result rc=0 msg=success value=two words = three");
        assert!(answer.is_ok());
        assert_eq!(answer.text("value"), Some("two words = three"));
        assert_eq!(answer.text("msg"), Some("success"));
        let answer = Answer::parse("cmd=getbyidx_results rc=-2 reason=no_more_keyvals");
        assert_eq!((answer.is_ok(), answer.number("rc"), answer.text("val")), (false, Some(-2), None));
    }
}

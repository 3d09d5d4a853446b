//! The connection of a process to the simulator, over which it speaks PMI-1 as a rank of its job.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::str::FromStr;

/// The fields that may contain blanks. They are the last ones of their line.
const REST_OF_LINE: [&str; 3] = ["value", "val", "port"];

/// Writes a line to standard error, if the user's process has it open: `eprintln!` panics where a reader is gone.
pub fn say(line: &str) {
    _ = writeln!(io::stderr(), "{line}");
}

/// The process's end of the socket to the simulator.
pub struct Connection {
    /// The file is never closed, as another library of the process may use its descriptor later.
    reader: ManuallyDrop<BufReader<File>>,
}

/// The job of this process.
pub struct Job {
    /// Its end of the socket.
    pub connection: Connection,
    /// Its rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// The name of the job's key-value space.
    pub space: String,
    /// The length limits of the name of a space, a key and a value, in bytes.
    pub maxes: [usize; 3],
}

/// The fields of an answer.
#[derive(Debug, Default)]
pub struct Answer {
    fields: BTreeMap<String, String>,
}

impl Job {
    /// Joins the job to which the environment variables `PMI_FD`, `PMI_RANK` and `PMI_SIZE` lead.
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

/// Returns an environment variable that is a number.
pub fn environment<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns a sentence for the user about an error of [`Connection::ask`].
pub fn lost(error: &io::Error) -> String {
    format!("the connection to spinrun is lost: {error}")
}

impl Connection {
    /// Makes a connection through this descriptor.
    ///
    /// # Safety
    /// The descriptor must be that of the environment variable `PMI_FD`, and stay open.
    pub unsafe fn new(fd: RawFd) -> Connection {
        // SAFETY: as the caller promises; it is never closed here.
        Connection { reader: ManuallyDrop::new(BufReader::new(unsafe { File::from_raw_fd(fd) })) }
    }

    /// Sends a line.
    ///
    /// # Errors
    /// The system's error when the simulator has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        self.reader.get_mut().write_all(format!("{line}\n").as_bytes())
    }

    /// Sends a line and waits for its answer, which is the command `expected`.
    ///
    /// # Errors
    /// The system's error when the simulator has ended, or an error that names an unexpected answer.
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

    /// Returns the value of a field that is a number.
    pub fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// Whether the request has succeeded.
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

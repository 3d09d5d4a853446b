//! The process's connection to the simulator.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};

/// The fields that may contain blanks. They are the last ones of their line.
const REST_OF_LINE: [&str; 3] = ["value", "val", "port"];

/// The process's end of the socket to the simulator.
pub struct Connection {
    /// The file is never closed, as another library of the process may use its descriptor later.
    reader: ManuallyDrop<BufReader<File>>,
}

/// The fields of an answer.
#[derive(Debug, Default)]
pub struct Answer {
    fields: BTreeMap<String, String>,
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
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
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

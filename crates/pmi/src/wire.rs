//! The process's connection to the simulator.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};

/// Fields that come last in their line and may hold blanks.
const REST_OF_LINE: [&str; 3] = ["value", "val", "port"];

/// One end of the socket whose other end the simulator has.
pub struct Connection {
    /// The descriptor is the process's: another library may speak through it later.
    reader: ManuallyDrop<BufReader<File>>,
}

/// The fields of an answer.
#[derive(Debug, Default)]
pub struct Answer {
    fields: BTreeMap<String, String>,
}

impl Connection {
    /// The connection through this descriptor.
    ///
    /// # Safety
    /// The descriptor is that of the environment variable `PMI_FD`, and stays open.
    pub unsafe fn new(fd: RawFd) -> Connection {
        // SAFETY: as the caller promises; it is never closed here.
        Connection { reader: ManuallyDrop::new(BufReader::new(unsafe { File::from_raw_fd(fd) })) }
    }

    /// Sends a line.
    ///
    /// # Errors
    /// When the simulator is gone.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        self.reader.get_mut().write_all(format!("{line}\n").as_bytes())
    }

    /// Sends a line and waits for its answer, which is the command `expected`.
    ///
    /// # Errors
    /// When the simulator is gone, or answers something else.
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

    /// A field.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// A field that is a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// Whether what was asked has been done.
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

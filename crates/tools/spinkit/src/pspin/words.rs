// SPDX-License-Identifier: Apache-2.0
//! Command line of `pspin-cc`, in the syntax that Makefiles use for GCC.

use std::ffi::OsString;
use std::path::PathBuf;

use spincc::{Error, Result};

/// Inputs and options of a compilation.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// HPU kind.
    pub kind: String,
    /// Sources of the program.
    pub sources: Vec<PathBuf>,
    /// Path of the program.
    pub output: PathBuf,
    /// Flags for compiling and linking.
    pub flags: Vec<OsString>,
    /// Set to print the commands.
    pub is_verbose: bool,
}

/// Flags that choose cores, start files or libraries, all of which the SDK supplies.
const OURS: [&str; 15] = [
    "-march=",
    "-mabi=",
    "-mcpu=",
    "-mtune=",
    "-mcmodel=",
    "-mno-",
    "-mdiv",
    "-mfdiv",
    "-msmall-data-limit",
    "-nostartfiles",
    "-nostdlib",
    "-nodefaultlibs",
    "-static",
    "-l",
    "-L",
];

/// Optimiser flags of GCC that Clang refuses.
const OF_GCC: [&str; 6] = ["-ftree-", "-fno-tree-", "-fipa-", "-fno-ipa-", "-fno-jump-tables-", "--param"];

/// Flags whose value is the next word.
const WITH_VALUE: [&str; 9] = ["-I", "-D", "-U", "-include", "-isystem", "-iquote", "-idirafter", "-x", "-Xclang"];

/// Parses a command line.
///
/// # Errors
/// [`Error::Usage`] when it has no source or no output, or a word lacks its value.
pub fn parse(words: Vec<OsString>) -> Result<Line> {
    let mut line = Line {
        kind: "rv32imac".to_owned(),
        sources: Vec::new(),
        output: PathBuf::new(),
        flags: Vec::new(),
        is_verbose: false,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let mut value = || words.next().ok_or_else(|| Error::Usage(format!("{text} needs a value")));
        match text.as_str() {
            "-o" => line.output = value()?.into(),
            "--hpu" => line.kind = value()?.to_string_lossy().into_owned(),
            "-v" | "--verbose" => line.is_verbose = true,
            // The SDK supplies the linker script.
            "-T" => drop(value()?),
            flag if WITH_VALUE.contains(&flag) => {
                let value = value()?;
                line.flags.extend([word, value]);
            }
            flag if OURS.iter().chain(&OF_GCC).any(|prefix| flag.starts_with(prefix)) => {}
            flag if flag.starts_with('-') => line.flags.push(word),
            _ => line.sources.push(word.into()),
        }
    }
    if line.sources.is_empty() {
        return Err(Error::Usage("no sources; SPIN_APP_SRCS in the Makefile names those of the handlers".to_owned()));
    }
    if line.output.as_os_str().is_empty() {
        return Err(Error::Usage("no -o FILE".to_owned()));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Line> {
        parse(words.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn words_of_makefiles_are_sorted() {
        let line =
            parsed("-march=rv32imcxpulpv2 -mabi=ilp32 -O3 -g -flto -D X=1 -DY -I inc a.c -T link.ld -lm -o out b.c");
        let expected = Line {
            kind: "rv32imac".to_owned(),
            sources: vec!["a.c".into(), "b.c".into()],
            output: "out".into(),
            flags: ["-O3", "-g", "-flto", "-D", "X=1", "-DY", "-I", "inc"].map(OsString::from).to_vec(),
            is_verbose: false,
        };
        assert_eq!(line.unwrap(), expected);
        let other = parsed("--hpu rv32imac-corev -fno-tree-loop-distribute-patterns -v x.c -o y").unwrap();
        assert_eq!((other.kind.as_str(), other.flags.len(), other.is_verbose), ("rv32imac-corev", 0, true));
    }

    #[test]
    fn what_is_missing_is_told() {
        let told = |words| parsed(words).unwrap_err().to_string();
        assert_eq!(told("-o out"), "no sources; SPIN_APP_SRCS in the Makefile names those of the handlers");
        assert_eq!(told("a.c"), "no -o FILE");
        assert_eq!(told("a.c -o"), "-o needs a value");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Cursor over GOAL text, and errors with their locations.

use thiserror::Error;

/// A problem in a text, and its location.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{line}:{column}: {problem}")]
pub struct TextError {
    /// Line, from 1
    pub line: usize,
    /// Column in bytes, from 1
    pub column: usize,
    /// Problem
    pub problem: Problem,
}

/// A problem in a text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Problem {
    /// The text differs from the expected one.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// Expected word or number
        expected: String,
        /// Text at this location
        found: String,
    },
    /// A number exceeds its limit.
    #[error("{what} {number} is too large: at most {most}")]
    TooLarge {
        /// Quantity
        what: &'static str,
        /// Number as in the text
        number: String,
        /// Limit
        most: u64,
    },
    /// A rank that does not exist.
    #[error("rank {rank} does not exist: num_ranks is {ranks}, ranks are numbered from 0")]
    NoSuchRank {
        /// Number as in the text
        rank: String,
        /// `num_ranks`
        ranks: u32,
    },
    /// A label that is defined twice in a rank.
    #[error("label {0} is defined twice in rank {1}")]
    LabelTwice(String, u32),
    /// A label that the rank does not define.
    #[error("label {0} is not defined in rank {1}")]
    NoSuchLabel(String, u32),
    /// An attribute that is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// An attribute that the operation does not support.
    #[error("{0} has no {1}")]
    NotHere(&'static str, &'static str),
    /// A required attribute is missing.
    #[error("{0} needs {1}")]
    Missing(&'static str, &'static str),
    /// A wildcard in `send` or `put`, which name one rank and one tag.
    #[error("only a receive may have any {0}")]
    Wildcard(&'static str),
    /// An unterminated comment.
    #[error("comment without end")]
    OpenComment,
    /// The text ends within a rank.
    #[error("the text ends within rank {0}: no }}")]
    OpenRank(u32),
    /// Invalid dependencies, sizes or ranks.
    #[error(transparent)]
    Build(#[from] crate::BuildError),
}

/// A problem and its byte offset.
pub(super) type Fault = Box<(usize, Problem)>;

/// A position in a text.
pub(super) struct Cursor<'a> {
    pub text: &'a [u8],
    pub at: usize,
}

const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "`byte` is below 256")]
        let character = byte as u8;
        table[byte] = character.is_ascii_alphanumeric() || matches!(character, b'_' | b'.');
        byte += 1;
    }
    table
};

impl<'a> Cursor<'a> {
    pub fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Returns the next byte, or 0 at the end.
    #[inline]
    pub fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Skips blanks and comments.
    #[inline]
    pub fn skip(&mut self) -> Result<(), Fault> {
        loop {
            match self.peek() {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'/' => {
                    let start = self.at;
                    self.comment()?;
                    if self.at == start {
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment, if present.
    #[cold]
    fn comment(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"//") {
            self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            let end = rest[2..].windows(2).position(|two| two == b"*/");
            self.at += end.ok_or_else(|| self.fault(Problem::OpenComment))? + 4;
        }
        Ok(())
    }

    /// Reads a word of letters, digits, `_` and `.`, which may be empty.
    #[inline]
    pub fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        while WORD[usize::from(self.peek())] {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Skips blanks and reads a word.
    #[inline]
    pub fn next_word(&mut self) -> Result<&'a [u8], Fault> {
        self.skip()?;
        Ok(self.word())
    }

    /// Skips blanks and reads the byte `expected`.
    pub fn expect_byte(&mut self, expected: u8) -> Result<(), Fault> {
        self.skip()?;
        if self.peek() != expected {
            return Err(self.expected(&(expected as char).to_string()));
        }
        self.at += 1;
        Ok(())
    }

    /// Skips blanks and reads the word `expected`.
    #[inline]
    pub fn expect_word(&mut self, expected: &str) -> Result<(), Fault> {
        self.skip()?;
        let start = self.at;
        if self.word() == expected.as_bytes() {
            return Ok(());
        }
        self.at = start;
        Err(self.expected(expected))
    }

    /// Skips blanks and reads a number of at most `most`.
    #[inline]
    pub fn number(&mut self, what: &'static str, most: u64) -> Result<u64, Fault> {
        self.skip()?;
        let start = self.at;
        let (mut value, mut fits) = (0u64, true);
        while let digit @ b'0'..=b'9' = self.peek() {
            match value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0'))) {
                Some(next) => value = next,
                None => fits = false,
            }
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected(what));
        }
        if !fits || value > most {
            let number = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
            return Err(Box::new((start, Problem::TooLarge { what, number, most })));
        }
        Ok(value)
    }

    /// Reads a number like [`Cursor::number`], in the type of its limit. It must not be followed by a letter.
    #[inline]
    pub fn whole_number<T: TryFrom<u64> + Into<u64>>(&mut self, what: &'static str, most: T) -> Result<T, Fault> {
        let value = T::try_from(self.number(what, most.into())?).map_err(|_| self.expected(what))?;
        if WORD[usize::from(self.peek())] {
            return Err(self.expected(&format!("the end of the {what}")));
        }
        Ok(value)
    }

    /// Reads a number of bytes, such as `8b`.
    #[inline]
    pub fn bytes(&mut self) -> Result<u64, Fault> {
        let value = self.number("size in bytes", u64::MAX >> 1)?;
        if self.peek() != b'b' {
            return Err(self.expected("b behind the number of bytes"));
        }
        self.at += 1;
        Ok(value)
    }

    /// Reads `-1` or `any`. Returns true if present.
    #[inline]
    pub fn takes_any(&mut self) -> Result<bool, Fault> {
        self.skip()?;
        let (start, first) = (self.at, self.peek());
        if first == b'-' {
            self.at += 1;
            if self.word() == b"1" {
                return Ok(true);
            }
        } else if first == b'a' && self.word() == b"any" {
            return Ok(true);
        }
        self.at = start;
        Ok(false)
    }

    /// Returns a problem at this position.
    #[cold]
    pub fn fault(&self, problem: Problem) -> Fault {
        Box::new((self.at, problem))
    }

    #[cold]
    pub fn expected(&self, expected: &str) -> Fault {
        let rest = &self.text[self.at.min(self.text.len())..];
        let word = rest.iter().take_while(|&&byte| WORD[usize::from(byte)]).count();
        let found = match rest {
            [] => "the end of the text".to_owned(),
            _ => format!("{:?}", String::from_utf8_lossy(&rest[..word.clamp(1, 40)])),
        };
        self.fault(Problem::Expected { expected: expected.to_owned(), found })
    }
}

/// A line, and a byte in it, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    line: u64,
    column: u64,
}

impl Place {
    pub const START: Place = Place { line: 1, column: 1 };

    /// Returns the position after a text that starts here.
    pub fn after(self, text: &[u8]) -> Place {
        let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let start = if lines == 0 { None } else { text.iter().rposition(|&byte| byte == b'\n') };
        let column = match start {
            Some(newline) => (text.len() - newline) as u64,
            None => self.column + text.len() as u64,
        };
        Place { line: self.line + lines, column }
    }

    /// Returns a problem at a byte of a text that starts here.
    pub fn located(self, text: &[u8], at: usize, problem: Problem) -> TextError {
        self.after(&text[..at.min(text.len())]).problem(problem)
    }

    /// Returns a problem here.
    pub fn problem(self, problem: Problem) -> TextError {
        let [line, column] = [self.line, self.column].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        TextError { line, column, problem }
    }
}

/// Formats a word of the text for a message.
pub(super) fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

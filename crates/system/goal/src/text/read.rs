// SPDX-License-Identifier: Apache-2.0
//! Reader of GOAL text.

use std::io::{self, Read};

use super::cursor::{Cursor, Fault, Place, Problem, TextError, shown};
use super::labels::Labels;
use super::nic::nic_op;
use crate::build::{BuildError, Builder};
use crate::op::{ANY, Action, MAX_CALC_NS, MAX_RANKS};
use crate::schedule::{Schedule, Wait};

/// Bytes of a text read at a time.
const PIECE: usize = 1 << 20;

/// Reads a schedule.
///
/// # Errors
/// If the text is not GOAL or the schedule is invalid, with the location.
pub fn read(text: &[u8]) -> Result<Schedule, TextError> {
    read_stream(&mut &*text).expect("bytes in memory can be read")
}

/// Reads a schedule from a stream. Only the text of the ranks being read is kept in memory.
///
/// # Errors
/// The outer error if reading fails; the inner one, with the location, if the text is not GOAL or the schedule is
/// invalid.
pub fn read_stream(stream: &mut impl Read) -> io::Result<Result<Schedule, TextError>> {
    read_pieces(stream, PIECE)
}

fn read_pieces(stream: &mut impl Read, piece: usize) -> io::Result<Result<Schedule, TextError>> {
    let mut ranks = Ranks { builder: None, numbered: Vec::new(), blocks: Vec::new(), place: Place::START };
    let (mut text, mut more, mut scanned) = (Vec::new(), piece, 0);
    loop {
        let is_last = stream.by_ref().take(more as u64).read_to_end(&mut text)? < more;
        let end = if is_last { Some(text.len()) } else { last_end(&text, &mut scanned) };
        let Some(end) = end else {
            // Long rank: reads on to its end.
            more = text.len();
            continue;
        };
        if let Err(fault) = ranks.read(&text[..end]) {
            return Ok(Err(ranks.place.located(&text, fault.0, fault.1)));
        }
        if is_last {
            return Ok(ranks.schedule());
        }
        text.drain(..end);
        (more, scanned) = (piece, scanned - end);
    }
}

/// Returns the end of the last complete rank in a text whose first `scanned` bytes contain no such end. Advances
/// `scanned` past the bytes that need no second scan.
fn last_end(text: &[u8], scanned: &mut usize) -> Option<usize> {
    let (mut at, mut last) = (*scanned, None);
    if !text[at..].contains(&b'/') {
        // Without comments only the last end matters.
        let end = text[at..].iter().rposition(|&byte| byte == b'}').map(|end| at + end + 1);
        *scanned = text.len();
        return end;
    }
    while let Some(found) = text[at..].iter().position(|&byte| byte == b'}' || byte == b'/') {
        at += found;
        *scanned = at;
        if text[at] == b'}' {
            at += 1;
            last = Some(at);
            continue;
        }
        let rest = &text[at..];
        let comment = match rest.get(1) {
            Some(b'/') => rest.iter().position(|&byte| byte == b'\n'),
            Some(b'*') => rest[2..].windows(2).position(|two| two == b"*/").map(|end| end + 4),
            Some(_) => Some(1),
            None => None,
        };
        let Some(length) = comment else { return last };
        at += length;
    }
    *scanned = text.len();
    last
}

/// Ranks read so far.
struct Ranks {
    /// `None` before `num_ranks`.
    builder: Option<Builder>,
    /// Table of [`Labels`].
    numbered: Vec<u32>,
    /// Each rank, and the position of its text.
    blocks: Vec<(u32, Place)>,
    /// Position of the remaining text.
    place: Place,
}

impl Ranks {
    /// Reads whole ranks; the first ones follow `num_ranks`.
    fn read(&mut self, text: &[u8]) -> Result<(), Fault> {
        let mut cursor = Cursor::new(text);
        let builder = match &mut self.builder {
            Some(builder) => builder,
            none => none.insert(Builder::new(num_ranks(&mut cursor)?)),
        };
        let labels = Labels::new(std::mem::take(&mut self.numbered));
        let mut reader = Reader { cursor, builder, labels, rank: 0, forward: Vec::new(), places: Vec::new() };
        let (mut place, mut known) = (self.place, 0);
        while let Some((rank, start)) = reader.next_rank()? {
            (place, known) = (place.after(&text[known..start]), start);
            self.blocks.push((rank, place));
        }
        self.place = place.after(&text[known..]);
        self.numbered = reader.labels.into_table();
        Ok(())
    }

    fn schedule(self) -> Result<Schedule, TextError> {
        let Ranks { builder, blocks, place, .. } = self;
        builder.expect("a text without num_ranks is wrong").finish().map_err(|error| {
            let second = |rank| blocks.iter().filter(|block| block.0 == rank).nth(1).map(|block| block.1);
            let at = if let BuildError::RankTwice(rank) = error { second(rank) } else { None };
            at.unwrap_or(place).problem(error.into())
        })
    }
}

/// Reads the number of ranks.
fn num_ranks(cursor: &mut Cursor) -> Result<u32, Fault> {
    cursor.expect_word("num_ranks")?;
    cursor.skip()?;
    let at = cursor.at;
    let ranks = cursor.whole_number("num_ranks", MAX_RANKS)?;
    if ranks == 0 {
        cursor.at = at;
        return Err(cursor.expected("at least one rank"));
    }
    Ok(ranks)
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    builder: &'a mut Builder,
    labels: Labels<'a>,
    /// Current rank.
    rank: u32,
    /// Dependencies of the rank, from the first with a not yet defined label on.
    forward: Vec<Forward<'a>>,
    /// Position of each dependency of the rank in the text.
    places: Vec<usize>,
}

/// `later requires earlier`, each label with its position in the text.
struct Forward<'a> {
    later: (usize, &'a [u8]),
    earlier: (usize, &'a [u8]),
    wait: Wait,
}

impl<'a> Reader<'a> {
    /// Reads the next rank, if any. Returns it and the start of its text.
    fn next_rank(&mut self) -> Result<Option<(u32, usize)>, Fault> {
        self.cursor.skip()?;
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        let start = self.cursor.at;
        self.cursor.expect_word("rank")?;
        self.cursor.skip()?;
        self.rank = self.cursor.rank(self.builder.ranks())?;
        self.cursor.expect_byte(b'{')?;
        self.block()?;
        Ok(Some((self.rank, start)))
    }

    /// Reads the operations of a rank up to its `}`.
    fn block(&mut self) -> Result<(), Fault> {
        self.builder.begin_rank(self.rank);
        self.labels.begin_rank(self.builder.len());
        self.places.clear();
        loop {
            self.cursor.skip()?;
            if self.cursor.peek() == b'}' {
                self.cursor.at += 1;
                break;
            }
            self.statement()?;
        }
        for Forward { later, earlier, wait } in std::mem::take(&mut self.forward) {
            let (later_op, earlier_op) = (self.find(later)?, self.find(earlier)?);
            self.builder.depend(later_op, earlier_op, wait);
            self.places.push(later.0);
        }
        self.builder.end_rank().map_err(|error| match error {
            BuildError::Cycle { dependency, .. } => Box::new((self.places[dependency], error.into())),
            _ => self.cursor.fault(error.into()),
        })
    }

    fn find(&self, (at, label): (usize, &[u8])) -> Result<u32, Fault> {
        self.labels.find(label).ok_or_else(|| Box::new((at, Problem::NoSuchLabel(shown(label), self.rank))))
    }

    /// Reads an operation, with or without label, or a dependency.
    #[inline]
    fn statement(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at;
        let word = self.cursor.word();
        if word.is_empty() {
            return Err(match self.cursor.is_at_end() {
                true => self.cursor.fault(Problem::OpenRank(self.rank)),
                false => self.cursor.expected("an operation, a label or }"),
            });
        }
        self.cursor.skip()?;
        if self.cursor.peek() == b':' {
            self.cursor.at += 1;
            self.cursor.skip()?;
            let verb_at = self.cursor.at;
            let verb = self.cursor.word();
            if !self.operation(verb)? {
                self.cursor.at = verb_at;
                return Err(self.cursor.expected("an operation"));
            }
            let op = self.builder.len() - 1;
            if !self.labels.define(word, op) {
                return Err(Box::new((start, Problem::LabelTwice(shown(word), self.rank))));
            }
            return Ok(());
        }
        let second_at = self.cursor.at;
        let wait = match self.cursor.word() {
            b"requires" => Wait::Done,
            b"irequires" => Wait::Started,
            _ => {
                self.cursor.at = start + word.len();
                if self.operation(word)? {
                    return Ok(());
                }
                self.cursor.at = start;
                if [b"calc" as &[u8], b"rank"].contains(&word) {
                    return Err(self.cursor.expected("an operation or a label"));
                }
                self.cursor.at = second_at;
                return Err(self.cursor.expected("an operation, or `:`, requires or irequires behind a label"));
            }
        };
        self.cursor.skip()?;
        let earlier = (self.cursor.at, self.cursor.word());
        if earlier.1.is_empty() {
            return Err(self.cursor.expected("a label"));
        }
        let later = (start, word);
        match (self.labels.find(later.1), self.labels.find(earlier.1)) {
            // After the first forward dependency all others are deferred too, as dependents become ready in statement
            // order.
            (Some(later), Some(earlier)) if self.forward.is_empty() => {
                self.builder.depend(later, earlier, wait);
                self.places.push(start);
            }
            _ => self.forward.push(Forward { later, earlier, wait }),
        }
        Ok(())
    }

    /// Reads an operation after its verb. Returns false if `verb` is not one.
    #[inline]
    fn operation(&mut self, verb: &[u8]) -> Result<bool, Fault> {
        let ranks = self.builder.ranks();
        let cursor = &mut self.cursor;
        let start = cursor.at;
        let (action, attributes) = match verb {
            b"send" => {
                let bytes = cursor.bytes()?;
                cursor.expect_word("to")?;
                if cursor.takes_any()? {
                    return Err(Box::new((start, Problem::Wildcard("rank"))));
                }
                let to = cursor.rank(ranks)?;
                let attributes = cursor.attributes("send", true)?;
                let tag = attributes.tag.unwrap_or(0);
                if tag == ANY {
                    return Err(Box::new((start, Problem::Wildcard("tag"))));
                }
                (Action::Send { bytes, to, tag, space: attributes.space.unwrap_or(0) }, attributes)
            }
            b"recv" => {
                let bytes = cursor.bytes()?;
                cursor.expect_word("from")?;
                let from = if cursor.takes_any()? { None } else { Some(cursor.rank(ranks)?) };
                let attributes = cursor.attributes("recv", true)?;
                let tag = Some(attributes.tag.unwrap_or(0)).filter(|&tag| tag != ANY);
                (Action::Recv { bytes, from, tag, space: attributes.space.unwrap_or(0) }, attributes)
            }
            b"calc" => {
                let ns = cursor.whole_number("calc", MAX_CALC_NS)?;
                (Action::Calc(ns), cursor.attributes("calc", false)?)
            }
            _ => {
                let Some((op, attributes)) = nic_op(cursor, verb, ranks)? else { return Ok(false) };
                let (cpu, nic) = attributes.resources();
                let added = self.builder.add(Action::Nic(&op), cpu, nic);
                return added.map(|_| true).map_err(|error| self.cursor.fault(error.into()));
            }
        };
        let (cpu, nic) = attributes.resources();
        self.builder.add(action, cpu, nic).map(|_| true).map_err(|error| self.cursor.fault(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the schedule or the error, reading in pieces of this size.
    fn by(text: &str, piece: usize) -> Result<Vec<u8>, String> {
        let schedule = read_pieces(&mut text.as_bytes(), piece).unwrap().map_err(|error| error.to_string())?;
        let mut written = Vec::new();
        super::super::write(&schedule, 0..schedule.ranks(), &mut written).unwrap();
        Ok(written)
    }

    #[test]
    fn pieces_of_any_size_give_the_same_schedule_and_the_same_errors() {
        let good = "num_ranks 3 // }\nrank 1 { /* } */ a: calc 1\n b: calc 2 b requires a }\n/* } rank */ rank 0 {}\n\
            rank 2 { l1: calc 3 //}\n l2: calc 4\nl2 requires l1\nx: calc 5 x requires l2 }\n// the end";
        assert!(by(good, good.len() + 1).is_ok());
        let wrong = [
            good.replace("calc 4", "calc x"),
            good.replace("x requires l2 }", "x requires l2"),
            good.replace("rank 2", "rank 1"),
            good.replace("rank 2", "rank 3"),
            good.replace("rank 0 {}", "}"),
            good.replace("// the end", "/* the end"),
            good.replace("l2 requires l1", "l1 requires l2\nl2 requires l1"),
            good.replace("num_ranks 3", "num_ranks 4"),
            good.replace("/* } */", "/ "),
            String::new(),
        ];
        for text in wrong.iter().map(String::as_str).chain([good]) {
            let whole = by(text, text.len() + 1);
            assert_eq!(whole.is_ok(), text == good, "{text}");
            for piece in 1..=text.len() {
                assert_eq!(by(text, piece), whole, "{piece}: {text}");
            }
        }
    }
}

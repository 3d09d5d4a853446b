use super::cursor::{Cursor, Fault, Problem, TextError, located, shown};
use super::labels::Labels;
use super::nic::nic_op;
use crate::build::{BuildError, Builder};
use crate::op::{ANY, Action, MAX_CALC_NS, MAX_RANKS};
use crate::schedule::{Schedule, Wait};

/// Reads a schedule.
///
/// # Errors
/// When the text is not GOAL or the schedule is impossible, with the place.
pub fn read(text: &[u8]) -> Result<Schedule, TextError> {
    Reader::new(text).and_then(Reader::schedule).map_err(|fault| located(text, fault.0, fault.1))
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    builder: Builder,
    labels: Labels<'a>,
    /// The rank that is being read.
    rank: u32,
    /// The dependencies of the rank from the first one on whose label was not yet defined.
    forward: Vec<Forward<'a>>,
    /// The place of each dependency of the rank in the text.
    places: Vec<usize>,
}

/// `later requires earlier`, each label with its place in the text.
struct Forward<'a> {
    later: (usize, &'a [u8]),
    earlier: (usize, &'a [u8]),
    wait: Wait,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Result<Reader<'a>, Fault> {
        let mut cursor = Cursor::new(text);
        cursor.expect_word("num_ranks")?;
        cursor.skip()?;
        let at = cursor.at;
        let ranks = cursor.whole_number("num_ranks", u64::from(MAX_RANKS))? as u32;
        if ranks == 0 {
            cursor.at = at;
            return Err(cursor.expected("at least one rank"));
        }
        let builder = Builder::new(ranks);
        let (labels, forward, places) = (Labels::default(), Vec::new(), Vec::new());
        Ok(Reader { cursor, builder, labels, rank: 0, forward, places })
    }

    fn schedule(mut self) -> Result<Schedule, Fault> {
        let mut blocks = Vec::new();
        loop {
            self.cursor.skip()?;
            if self.cursor.is_at_end() {
                break;
            }
            let start = self.cursor.at;
            self.cursor.expect_word("rank")?;
            self.cursor.skip()?;
            self.rank = self.cursor.rank(self.builder.ranks())?;
            self.cursor.expect_byte(b'{')?;
            blocks.push((self.rank, start));
            self.block()?;
        }
        let end = self.cursor.at;
        self.builder.finish().map_err(|error| {
            let second = |rank| blocks.iter().filter(|block| block.0 == rank).nth(1).map(|block| block.1);
            let at = if let BuildError::RankTwice(rank) = error { second(rank) } else { None };
            Box::new((at.unwrap_or(end), error.into()))
        })
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
            // After the first forward dependency all others are deferred too, as dependents become ready in the order of the
            // statements.
            (Some(later), Some(earlier)) if self.forward.is_empty() => {
                self.builder.depend(later, earlier, wait);
                self.places.push(start);
            }
            _ => self.forward.push(Forward { later, earlier, wait }),
        }
        Ok(())
    }

    /// Reads an operation from behind its verb. Returns false if `verb` is not one.
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

// SPDX-License-Identifier: Apache-2.0
//! Reader of Portals and sPIN operations in GOAL text.

use super::attributes::Attributes;
use super::cursor::{Cursor, Fault, Problem, shown};
use crate::nic::{ARGS, Append, HANDLERS, List, NicOp, Verb};
use crate::op::ANY;

/// Optional attributes after the operands.
#[derive(Default)]
struct Details {
    handlers: [Option<Box<str>>; 3],
    args: [Option<u64>; 4],
    memory: Option<u64>,
    /// Rank, or `None` for any.
    allowed: Option<Option<u32>>,
    counter: Option<u32>,
    use_once: Option<()>,
    when: Option<(u32, u64)>,
}

/// Reads one operation in the format that [`NicOp`] writes. Returns `None` for any other text.
pub(crate) fn read_nic_op(text: &[u8], ranks: u32) -> Option<NicOp> {
    let mut cursor = Cursor::new(text);
    let verb = cursor.word();
    let (op, _) = nic_op(&mut cursor, verb, ranks).ok()??;
    cursor.is_at_end().then_some(op)
}

/// Reads an operation of the Portals and sPIN extensions after its verb. Returns `None` if `verb` is not one of them.
pub(super) fn nic_op(cursor: &mut Cursor, verb: &[u8], ranks: u32) -> Result<Option<(NicOp, Attributes)>, Fault> {
    let start = cursor.at;
    let name = match verb {
        b"append" => "append",
        b"tappend" => "tappend",
        b"put" => "put",
        b"tput" => "tput",
        b"get" => "get",
        b"tget" => "tget",
        b"test" => "test",
        _ => return Ok(None),
    };
    let (mut details, mut attributes) = (Details::default(), Attributes::default());
    let mut verb = match name {
        "append" | "tappend" => {
            let bytes = cursor.bytes()?;
            cursor.expect_word("to")?;
            let (at, list) = (cursor.at, cursor.next_word()?);
            let list = match list {
                b"priority_list" => List::Priority,
                b"overflow_list" => List::Overflow,
                _ => {
                    cursor.at = at;
                    cursor.skip()?;
                    return Err(cursor.expected("priority_list or overflow_list"));
                }
            };
            let handlers = [None, None, None];
            Verb::Append(Append { bytes, list, handlers, memory: None, allowed: None, use_once: false })
        }
        "put" | "tput" => {
            let bytes = cursor.bytes()?;
            cursor.expect_word("to")?;
            Verb::Put { bytes, to: cursor.rank(ranks)? }
        }
        "get" | "tget" => {
            let bytes = cursor.bytes()?;
            cursor.expect_word("from")?;
            Verb::Get { bytes, from: cursor.rank(ranks)? }
        }
        _ => {
            let counter = cursor.counter()?;
            cursor.expect_word("for")?;
            Verb::Test { counter, reaches: cursor.whole_number("number of events", u64::MAX)? }
        }
    };
    while details.one(cursor, ranks)? || cursor.attribute(&mut attributes)? {}

    let is_triggered = name.starts_with('t') && name != "test";
    let missing = |what| Err(Box::new((start, Problem::Missing(name, what))));
    let misplaced = |what| Err(Box::new((start, Problem::NotHere(name, what))));
    if let Verb::Append(append) = &mut verb {
        append.handlers = details.handlers;
        append.memory = details.memory;
        append.use_once = details.use_once.is_some();
        match details.allowed {
            Some(allowed) => append.allowed = allowed,
            None => return missing("allowed"),
        }
        if details.counter.is_none() {
            return missing("ct");
        }
    } else {
        for (name, handler) in HANDLERS.iter().zip(&details.handlers) {
            if handler.is_some() {
                return misplaced(name);
            }
        }
        for (what, given) in [
            ("mem", details.memory.is_some()),
            ("allowed", details.allowed.is_some()),
            ("use_once", details.use_once.is_some()),
        ] {
            if given {
                return misplaced(what);
            }
        }
    }
    let is_test = matches!(verb, Verb::Test { .. });
    match (is_triggered, details.when) {
        (true, None) => return missing("when"),
        (false, Some(_)) => return misplaced("when"),
        _ => {}
    }
    match attributes.tag {
        None if !is_test => return missing("tag"),
        Some(_) if is_test => return misplaced("tag"),
        Some(ANY) => return Err(Box::new((start, Problem::Wildcard("tag")))),
        _ => {}
    }
    if is_test && (details.counter.is_some() || details.args != [None; 4]) {
        return misplaced(if details.counter.is_some() { "ct" } else { "arg" });
    }
    let tag = attributes.tag.unwrap_or(0);
    let op = NicOp { verb, when: details.when, args: details.args, counter: details.counter, tag };
    Ok(Some((op, attributes)))
}

impl Details {
    /// Reads one of the details, if present.
    fn one(&mut self, cursor: &mut Cursor, ranks: u32) -> Result<bool, Fault> {
        cursor.skip()?;
        let start = cursor.at;
        let word = cursor.word();
        cursor.skip()?;
        let is_label = cursor.peek() == b':';
        let twice = match word {
            _ if is_label => {
                cursor.at = start;
                return Ok(false);
            }
            b"hh" | b"ph" | b"ch" => {
                let number = HANDLERS.iter().position(|name| name.as_bytes() == word).unwrap_or(0);
                let name = cursor.word();
                if name.is_empty() {
                    return Err(cursor.expected("the name of a handler"));
                }
                self.handlers[number].replace(shown(name).into()).map(|_| HANDLERS[number])
            }
            b"arg1" | b"arg2" | b"arg3" | b"arg4" => {
                let number = usize::from(word[3] - b'1');
                self.args[number].replace(cursor.whole_number("argument", u64::MAX)?).map(|_| ARGS[number])
            }
            b"mem" => self.memory.replace(cursor.whole_number("mem", u64::MAX)?).map(|_| "mem"),
            b"allowed" => {
                let allowed = if cursor.takes_any()? { None } else { Some(cursor.rank(ranks)?) };
                self.allowed.replace(allowed).map(|_| "allowed")
            }
            b"ct" => self.counter.replace(cursor.counter()?).map(|_| "ct"),
            b"use_once" => self.use_once.replace(()).map(|()| "use_once"),
            b"when" => {
                let counter = cursor.counter()?;
                cursor.expect_word("reaches")?;
                let reaches = cursor.whole_number("number of events", u64::MAX)?;
                self.when.replace((counter, reaches)).map(|_| "when")
            }
            _ => {
                cursor.at = start;
                return Ok(false);
            }
        };
        match twice {
            Some(name) => Err(Box::new((start, Problem::Twice(name)))),
            None => Ok(true),
        }
    }
}

impl Cursor<'_> {
    /// Reads a counter number.
    fn counter(&mut self) -> Result<u32, Fault> {
        self.whole_number("counter", u32::MAX)
    }
}

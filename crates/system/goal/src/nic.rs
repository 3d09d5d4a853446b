// SPDX-License-Identifier: Apache-2.0
//! Operations of Portals 4 and sPIN cards.

use std::fmt;

/// An operation of the Portals 4 and sPIN extensions of GOAL (LogGOPSim 2). It requires a card model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicOp {
    /// Verb with its operands.
    pub verb: Verb,
    /// For `tappend`, `tput` and `tget`: counter `.0` triggers the operation when it reaches `.1`.
    pub when: Option<(u32, u64)>,
    /// `arg1` to `arg4`: handler arguments.
    pub args: [Option<u64>; 4],
    /// `ct`: counter of the operation's events.
    pub counter: Option<u32>,
    /// `tag`: match bits.
    pub tag: u32,
}

/// Verb of a card operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Appends an entry to a list of the portal table.
    Append(Append),
    /// Writes to a rank.
    Put {
        /// Bytes
        bytes: u64,
        /// Target
        to: u32,
    },
    /// Reads from a rank.
    Get {
        /// Bytes
        bytes: u64,
        /// Target
        from: u32,
    },
    /// Blocks the CPU until a counter reaches a value.
    Test {
        /// Counter
        counter: u32,
        /// Value
        reaches: u64,
    },
}

/// An entry to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Size of the buffer in bytes.
    pub bytes: u64,
    /// List that receives the entry.
    pub list: List,
    /// `hh`, `ph`, `ch`: header, payload and completion handler by name or number.
    pub handlers: [Option<Box<str>>; 3],
    /// `mem`: bytes of handler memory.
    pub memory: Option<u64>,
    /// `allowed`: rank whose messages match; `None` for any rank.
    pub allowed: Option<u32>,
    /// `use_once`: true if the first message unlinks the entry.
    pub use_once: bool,
}

/// A list of a portal table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Searched first.
    Priority,
    /// Searched if no entry of the priority list matches.
    Overflow,
}

/// Names of the handlers of an [`Append`], in the order of its field.
pub(crate) const HANDLERS: [&str; 3] = ["hh", "ph", "ch"];
/// Names of [`NicOp::args`].
pub(crate) const ARGS: [&str; 4] = ["arg1", "arg2", "arg3", "arg4"];

impl NicOp {
    /// Returns true if the operation has a tag.
    pub(crate) fn is_tagged(&self) -> bool {
        !matches!(self.verb, Verb::Test { .. })
    }
}

impl fmt::Display for NicOp {
    /// Formats the operation as GOAL text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let triggered = if self.when.is_some() { "t" } else { "" };
        match &self.verb {
            Verb::Append(append) => write!(f, "{triggered}append {}b to {}", append.bytes, append.list)?,
            Verb::Put { bytes, to } => write!(f, "{triggered}put {bytes}b to {to}")?,
            Verb::Get { bytes, from } => write!(f, "{triggered}get {bytes}b from {from}")?,
            Verb::Test { counter, reaches } => write!(f, "test {counter} for {reaches}")?,
        }
        if let Some((counter, reaches)) = self.when {
            write!(f, " when {counter} reaches {reaches}")?;
        }
        if let Verb::Append(append) = &self.verb {
            for (name, handler) in HANDLERS.iter().zip(&append.handlers) {
                if let Some(handler) = handler {
                    write!(f, " {name} {handler}")?;
                }
            }
        }
        for (name, arg) in ARGS.iter().zip(self.args) {
            if let Some(arg) = arg {
                write!(f, " {name} {arg}")?;
            }
        }
        if let Verb::Append(append) = &self.verb {
            if let Some(memory) = append.memory {
                write!(f, " mem {memory}")?;
            }
            match append.allowed {
                Some(rank) => write!(f, " allowed {rank}")?,
                None => f.write_str(" allowed any")?,
            }
        }
        if let Some(counter) = self.counter {
            write!(f, " ct {counter}")?;
        }
        if matches!(&self.verb, Verb::Append(append) if append.use_once) {
            f.write_str(" use_once")?;
        }
        if self.is_tagged() { write!(f, " tag {}", self.tag) } else { Ok(()) }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            List::Priority => "priority_list",
            List::Overflow => "overflow_list",
        })
    }
}

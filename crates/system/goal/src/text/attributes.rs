// SPDX-License-Identifier: Apache-2.0
//! Attributes of operations in GOAL text.

use super::cursor::{Cursor, Fault, Problem};
use crate::op::{ANY, MAX_SPACE};

/// Attributes of an operation.
#[derive(Default)]
pub(super) struct Attributes {
    pub tag: Option<u32>,
    cpu: Option<u8>,
    nic: Option<u8>,
    pub space: Option<u16>,
}

impl Attributes {
    /// Returns the CPU and NIC numbers.
    pub fn resources(&self) -> (u8, u8) {
        (self.cpu.unwrap_or(0), self.nic.unwrap_or(0))
    }
}

impl<'a> Cursor<'a> {
    /// Reads a rank number.
    #[inline]
    pub fn rank(&mut self, ranks: u32) -> Result<u32, Fault> {
        self.skip()?;
        let start = self.at;
        match self.whole_number("rank", ranks - 1) {
            Ok(rank) => Ok(rank),
            Err(fault) => Err(match *fault {
                (at, Problem::TooLarge { number, .. }) => Box::new((at, Problem::NoSuchRank { rank: number, ranks })),
                fault => Box::new((start, fault.1)),
            }),
        }
    }

    /// Reads `tag`, `cpu`, `nic` and `space` in any order, each at most once.
    #[inline]
    pub fn attributes(&mut self, verb: &'static str, is_message: bool) -> Result<Attributes, Fault> {
        let mut attributes = Attributes::default();
        loop {
            self.skip()?;
            let start = self.at;
            if !self.attribute(&mut attributes)? {
                return Ok(attributes);
            }
            let is_of_message = attributes.tag.is_some() || attributes.space.is_some();
            if is_of_message && !is_message {
                let name = if attributes.tag.is_some() { "tag" } else { "space" };
                return Err(Box::new((start, Problem::NotHere(verb, name))));
            }
        }
    }

    /// Reads one of these attributes, if present.
    #[inline]
    pub fn attribute(&mut self, attributes: &mut Attributes) -> Result<bool, Fault> {
        self.skip()?;
        let start = self.at;
        if !matches!(self.peek(), b't' | b'c' | b'n' | b's') {
            return Ok(false);
        }
        let word = self.word();
        if !matches!(word, b"tag" | b"cpu" | b"nic" | b"space") {
            self.at = start;
            return Ok(false);
        }
        self.skip()?;
        if self.peek() == b':' {
            self.at = start;
            return Ok(false);
        }
        let twice = match word {
            b"tag" => {
                let any = self.takes_any()?;
                let tag = if any { ANY } else { self.whole_number("tag", ANY - 1)? };
                attributes.tag.replace(tag).map(|_| "tag")
            }
            b"cpu" => attributes.cpu.replace(self.whole_number("cpu", u8::MAX)?).map(|_| "cpu"),
            b"nic" => attributes.nic.replace(self.whole_number("nic", u8::MAX)?).map(|_| "nic"),
            _ => {
                let space = self.whole_number("space", MAX_SPACE)?;
                attributes.space.replace(space).map(|_| "space")
            }
        };
        match twice {
            Some(name) => Err(Box::new((start, Problem::Twice(name)))),
            None => Ok(true),
        }
    }
}

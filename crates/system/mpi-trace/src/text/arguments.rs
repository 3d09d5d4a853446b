// SPDX-License-Identifier: Apache-2.0
//! Arguments of a call in a liballprof trace.

use std::collections::HashMap;

use super::calls::{self, Call, Signature};
use super::line::Line;
use crate::error::Damage;

/// Relevant arguments of a call, by kind and in their order.
#[derive(Debug, Default)]
pub struct Arguments {
    pub counts: Vec<i64>,
    /// Sizes of datatypes in bytes.
    pub types: Vec<i64>,
    pub ranks: Vec<i64>,
    pub tags: Vec<i64>,
    pub comm: Option<CommUse>,
    /// Address of the requests, and of a communicator or window.
    pub request: Option<u64>,
    pub made: Option<u64>,
    /// Address of a matched message.
    pub message: Option<u64>,
    pub window: Option<i64>,
    pub keys: Vec<i64>,
    /// Counts of a variant with `v`; empty if the trace has only their address.
    pub lists: Vec<Vec<i64>>,
    numbers: Vec<i64>,
    /// Functions found so far.
    names: HashMap<String, Option<Signature>>,
}

/// A communicator argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommUse {
    pub handle: i64,
    pub rank: u32,
    pub size: u32,
    pub field: usize,
}

impl Arguments {
    /// Reads the arguments of a line, between the times.
    pub fn read(&mut self, line: &Line, name: &str, letters: &str, tail: &str) -> Result<(), Damage> {
        for list in [&mut self.counts, &mut self.types, &mut self.ranks, &mut self.tags, &mut self.keys] {
            list.clear();
        }
        self.lists.clear();
        (self.comm, self.request, self.made, self.message, self.window) = (None, None, None, None, None);
        let letters = || letters.bytes().chain(tail.bytes());
        let doubles = letters().filter(|letter| matches!(letter, b'v' | b'x')).count();
        let (count, found) = (letters().count(), line.fields() - 2);
        let has_lists = found == count + doubles;
        if !has_lists && found != count {
            let expected = count + if found > count { doubles } else { 0 };
            let next =
                letters().nth(found).map_or(String::new(), |letter| format!("; {} is next", calls::meaning(letter)));
            let what = format!("{name} has {expected} arguments, the line {found}{next}");
            return Err(line.damage_in(Some(found.min(expected) + 1), what));
        }
        let mut field = 1;
        for letter in letters() {
            let skips = has_lists && matches!(letter, b'v' | b'x');
            field += usize::from(skips);
            self.one(line, letter, field, has_lists)?;
            field += 1;
        }
        Ok(())
    }

    fn one(&mut self, line: &Line, letter: u8, field: usize, has_lists: bool) -> Result<(), Damage> {
        if matches!(letter, b'b' | b'x') {
            return Ok(());
        }
        let expected = || line.damage_in(Some(field), format!("{} is expected here", calls::meaning(letter)));
        if letter == b'v' && !has_lists {
            self.lists.push(Vec::new());
            return Ok(());
        }
        line.numbers(field, &mut self.numbers)?;
        match (letter, &self.numbers[..]) {
            (b'v', all) if all.iter().all(|&count| count >= 0) => self.lists.push(all.to_vec()),
            // liballprof 2 records only the size.
            (b'd', &[_, size, _] | &[size]) if size >= 0 => self.types.push(size),
            (b'c', &[handle, rank, size]) => match (u32::try_from(rank), u32::try_from(size)) {
                (Ok(rank), Ok(size)) if rank < size && size <= goal::MAX_RANKS => {
                    self.comm = Some(CommUse { handle, rank, size, field });
                }
                _ => return Err(expected()),
            },
            (b'n', &[count]) if count >= 0 => self.counts.push(count),
            (b'r', &[rank]) => self.ranks.push(rank),
            (b't', &[tag]) => self.tags.push(tag),
            (b'k', &[key]) => self.keys.push(key),
            (b'q', &[address]) => self.request = Some(address as u64),
            (b'm' | b'a', &[address]) => self.made = Some(address as u64),
            (b'g', &[address]) => self.message = Some(address as u64),
            (b'w', &[handle]) => self.window = Some(handle),
            _ => return Err(expected()),
        }
        Ok(())
    }
}

/// Returns the call of a line, with its arguments.
pub fn parse(line: &Line, arguments: &mut Arguments) -> Result<Call, Damage> {
    let name = line.name()?;
    let found = match arguments.names.get(name) {
        Some(found) => *found,
        None => *arguments.names.entry(name.into()).or_insert_with(|| calls::find(name)),
    };
    let Some((call, letters, tail)) = found else {
        return Err(line.damage_in(None, format!("{name} is no function of MPI")));
    };
    match call {
        Call::Local | Call::Other => {}
        Call::Untold(why) => return Err(line.damage_in(None, format!("{name}: {why}"))),
        _ => arguments.read(line, name, letters, tail)?,
    }
    Ok(call)
}

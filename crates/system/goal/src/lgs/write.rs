// SPDX-License-Identifier: Apache-2.0
//! Writer, byte for byte as `txt2bin`.

use std::io::{self, Write};

use thiserror::Error;

use super::{ANY, HEADER, MAGIC, kind, node};
use crate::op::{Action, Kind};
use crate::schedule::{Schedule, Wait};

/// Error of writing a schedule for LogGOPSim.
#[derive(Debug, Error)]
pub enum LgsWriteError {
    /// An operation of a card.
    #[error("{0}: LogGOPSim's binary form has no operations of cards; write text instead")]
    Card(String),
    /// Wildcards can match messages of other spaces.
    #[error(
        "{0}: LogGOPSim has no matching spaces, so a receive of any tag could take messages of another space; import \
         without wildcards (--wildcards resolve), or write text instead"
    )]
    AnyTag(String),
    /// Tag and space do not fit into a tag.
    #[error(
        "matching spaces up to {space} and tags up to {tag} do not fit into LogGOPSim's tags of 32 bits; write text \
         instead"
    )]
    Tags {
        /// Highest space
        space: u16,
        /// Highest tag
        tag: u32,
    },
    /// Writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a schedule. Tags above those of space 0 replace matching spaces. Memory holds the directory and one rank.
///
/// # Errors
/// See [`LgsWriteError`]. Nothing is written for a schedule that the form cannot express.
pub fn write(schedule: &Schedule, out: &mut impl Write) -> Result<(), LgsWriteError> {
    if let Some(op) = schedule.first_of_card() {
        return Err(LgsWriteError::Card(schedule.describe(op)));
    }
    let tags = Tags::of(schedule)?;
    out.write_all(&MAGIC)?;
    out.write_all(&schedule.ranks().to_le_bytes())?;
    // A schedule has 1 to 256 of each, so the highest numbers fit.
    out.write_all(&[schedule.cpus(), schedule.nics()].map(|count| u8::try_from(count - 1).unwrap_or(u8::MAX)))?;
    let mut waits = Vec::new();
    let mut start = HEADER as u64 + 16 * u64::from(schedule.ranks());
    for rank in 0..schedule.ranks() {
        let edges = count_waits(schedule, rank, &mut waits);
        let roots = waits.iter().filter(|&&count| count == 0).count() as u64;
        let end = start + 8 + 4 * roots + (waits.len() * node::LENGTH) as u64 + 4 * edges;
        out.write_all(&start.to_le_bytes())?;
        out.write_all(&end.to_le_bytes())?;
        start = end;
    }
    for rank in 0..schedule.ranks() {
        count_waits(schedule, rank, &mut waits);
        write_rank(schedule, rank, &waits, &tags, out)?;
    }
    Ok(())
}

/// Counts the operations that each operation of a rank waits for. Returns the sum.
fn count_waits(schedule: &Schedule, rank: u32, waits: &mut Vec<u32>) -> u64 {
    let ops = schedule.of_rank(rank);
    waits.clear();
    waits.resize(ops.len(), 0);
    let mut edges = 0;
    for (later, _) in ops.clone().flat_map(|op| schedule.dependents(op)) {
        waits[(later - ops.start) as usize] += 1;
        edges += 1;
    }
    edges
}

fn write_rank(schedule: &Schedule, rank: u32, waits: &[u32], tags: &Tags, out: &mut impl Write) -> io::Result<()> {
    let ops = schedule.of_rank(rank);
    let roots = || (0u32..).zip(waits).filter(|(_, count)| **count == 0).map(|(index, _)| index);
    out.write_all(&(ops.end - ops.start).to_le_bytes())?;
    out.write_all(&u32::try_from(roots().count()).unwrap_or(u32::MAX).to_le_bytes())?;
    roots().try_for_each(|root| out.write_all(&root.to_le_bytes()))?;
    let mut edge = 0u32;
    for (op, waits) in ops.clone().zip(waits) {
        let (kind, peer, size, tag) = match schedule.action(op) {
            Action::Send { bytes, to, tag, space } => (kind::SEND, to, bytes, tags.tag(space, tag)),
            Action::Recv { bytes, from, tag, space } => {
                (kind::RECV, from.unwrap_or(ANY), bytes, tag.map_or(ANY, |tag| tags.tag(space, tag)))
            }
            Action::Calc(ns) => (kind::CALC, 0, ns, 0),
            Action::Nic(_) => unreachable!("refused above"),
        };
        let record = &schedule.ops[op as usize];
        let mut bytes = [0; node::LENGTH];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(node::WAITS, &waits.to_le_bytes());
        put(node::KIND, &[kind]);
        put(node::PEER, &peer.to_le_bytes());
        put(node::SIZE, &size.to_le_bytes());
        put(node::TAG, &tag.to_le_bytes());
        put(node::CPU, &[u8::try_from(record.cpu()).unwrap_or(u8::MAX)]);
        put(node::NIC, &[u8::try_from(record.nic()).unwrap_or(u8::MAX)]);
        for (wait, field) in [(Wait::Done, node::ON_DONE), (Wait::Started, node::ON_START)] {
            let mut count = 0u32;
            schedule.dependents(op).filter(|dependent| dependent.1 == wait).for_each(|_| count += 1);
            put(field, &count.to_le_bytes());
            put(field + 4, &edge.to_le_bytes());
            edge += count;
        }
        out.write_all(&bytes)?;
    }
    for op in ops.clone() {
        for wait in [Wait::Done, Wait::Started] {
            for (later, _) in schedule.dependents(op).filter(|dependent| dependent.1 == wait) {
                out.write_all(&(later - ops.start).to_le_bytes())?;
            }
        }
    }
    Ok(())
}

/// Replacement of matching spaces by tags.
struct Tags {
    /// Bits of the original tags, below the space.
    bits: u32,
}

impl Tags {
    fn of(schedule: &Schedule) -> Result<Tags, LgsWriteError> {
        let (mut space, mut tag, mut any_tag) = (0, 0, None);
        for op in 0..u32::try_from(schedule.len()).unwrap_or(u32::MAX) {
            let record = &schedule.ops[op as usize];
            if !matches!(record.kind(), Kind::Send | Kind::Recv) {
                continue;
            }
            space = space.max(record.space());
            match record.tag {
                ANY => any_tag = any_tag.or(Some(op)),
                number => tag = tag.max(number),
            }
        }
        if space == 0 {
            return Ok(Tags { bits: 0 });
        }
        if let Some(op) = any_tag {
            return Err(LgsWriteError::AnyTag(schedule.describe(op)));
        }
        let bits = u32::BITS - tag.leading_zeros();
        // All bits set are the wildcard.
        match bits + (u32::BITS - space.leading_zeros()) < u32::BITS {
            true => Ok(Tags { bits }),
            false => Err(LgsWriteError::Tags { space: u16::try_from(space).unwrap_or(u16::MAX), tag }),
        }
    }

    fn tag(&self, space: u16, tag: u32) -> u32 {
        if space == 0 { tag } else { u32::from(space) << self.bits | tag }
    }
}

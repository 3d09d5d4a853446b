// SPDX-License-Identifier: Apache-2.0
//! Reader, one rank at a time.

use std::io::{self, Read};

use thiserror::Error;

use super::{ANY, HEADER, MAGIC, kind, node};
use crate::build::{BuildError, Builder};
use crate::op::{Action, MAX_CALC_NS, MAX_OPS, MAX_RANKS};
use crate::schedule::{Schedule, Wait};

/// Bytes of a node in the files of LogGOPSim's version with Portals 4 and sPIN operations.
const NODE_OF_VERSION_2: u64 = 104;

/// Error of an invalid file.
#[derive(Debug, Error)]
pub enum LgsError {
    /// The file contradicts itself.
    #[error("byte {at}: {problem}: truncated or damaged; run txt2bin again, or give its text")]
    Damaged {
        /// Offset in the file
        at: u64,
        /// Contradiction
        problem: String,
    },
    /// LogGOPSim's version with card operations wrote the file.
    #[error(
        "byte {0}: a binary schedule of LogGOPSim 2, whose operations have {NODE_OF_VERSION_2} bytes instead of 39: \
         give the text from which it was made"
    )]
    Version2(u64),
    /// Too large, or a cycle of dependencies.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a schedule from a stream, after the [`MAGIC`] number. Memory holds the tables and the section of one rank.
///
/// # Errors
/// See [`LgsError`].
pub fn read(stream: &mut impl Read) -> Result<Schedule, LgsError> {
    let directory = Directory::read(stream)?;
    let mut builder = Builder::new(directory.ranks);
    let mut section = Vec::new();
    for rank in 0..directory.ranks {
        directory.section(rank, stream, &mut section)?;
        let section = Section::new(rank, directory.start(rank), &section)?;
        section.add_to(&mut builder, directory.ranks)?;
    }
    directory.ended(stream)?;
    Ok(builder.finish()?)
}

/// Sections of a file.
pub(super) struct Directory {
    pub ranks: u32,
    /// Start of each rank's section in the file, and the end of the last.
    bounds: Vec<u64>,
}

impl Directory {
    /// Reads header and directory, which follow the first number.
    pub fn read(stream: &mut impl Read) -> Result<Directory, LgsError> {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).map_err(|_| damaged(8, "the header is incomplete"))?;
        let ranks = number32(&header, 0);
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(damaged(8, format!("{ranks} ranks, but there are 1 to {MAX_RANKS}")));
        }
        let mut table = Vec::new();
        stream.take(16 * u64::from(ranks)).read_to_end(&mut table)?;
        if table.len() as u64 != 16 * u64::from(ranks) {
            return Err(damaged(14, format!("the directory of {ranks} ranks is incomplete")));
        }
        let mut bounds = vec![14 + 16 * u64::from(ranks)];
        for (rank, entry) in table.chunks_exact(16).enumerate() {
            let at = 14 + 16 * rank as u64;
            let [start, end] = [0, 8].map(|field| number64(entry, field).checked_add(8));
            let expected = bounds[rank];
            match (start, end) {
                (Some(start), Some(end)) if start == expected && end >= start + 8 => bounds.push(end),
                _ => {
                    let problem =
                        format!("the section of rank {rank} does not start at byte {expected}, behind the previous");
                    return Err(damaged(at, problem));
                }
            }
        }
        Ok(Directory { ranks, bounds })
    }

    /// Returns the start of a rank's section in the file.
    pub fn start(&self, rank: u32) -> u64 {
        self.bounds[rank as usize]
    }

    /// Reads the section of a rank.
    pub fn section(&self, rank: u32, stream: &mut impl Read, section: &mut Vec<u8>) -> Result<(), LgsError> {
        let (start, end) = (self.bounds[rank as usize], self.bounds[rank as usize + 1]);
        section.clear();
        stream.take(end - start).read_to_end(section)?;
        let found = start + section.len() as u64;
        match found == end {
            true => Ok(()),
            false => {
                Err(damaged(found, format!("the file ends in the section of rank {rank}, which ends at byte {end}")))
            }
        }
    }

    /// Checks that the stream has ended.
    pub fn ended(&self, stream: &mut impl Read) -> Result<(), LgsError> {
        let end = *self.bounds.last().expect("a schedule has a rank");
        match stream.take(1).read_to_end(&mut Vec::new())? {
            0 => Ok(()),
            _ => Err(damaged(end, "bytes follow the section of the last rank")),
        }
    }
}

/// Section of a rank, with checked bounds.
pub(super) struct Section<'a> {
    rank: u32,
    at: u64,
    roots: &'a [u8],
    nodes: &'a [u8],
    edges: &'a [u8],
}

impl<'a> Section<'a> {
    /// Divides the bytes of a section, which starts at `at` in the file.
    pub fn new(rank: u32, at: u64, bytes: &'a [u8]) -> Result<Section<'a>, LgsError> {
        let [count, roots] = [0, 4].map(|field| u64::from(number32(bytes, field)));
        let length = bytes.len() as u64;
        let nodes_at = 8 + 4 * roots;
        let edges_at = nodes_at + count * node::LENGTH as u64;
        let is_whole = edges_at <= length && roots <= count && (length - edges_at).is_multiple_of(4);
        let (Ok(nodes_at), Ok(edges_at)) = (usize::try_from(nodes_at), usize::try_from(edges_at)) else {
            return Err(damaged(at, format!("rank {rank}: more operations than an address space")));
        };
        if is_whole {
            let (roots, nodes, edges) = (&bytes[8..nodes_at], &bytes[nodes_at..edges_at], &bytes[edges_at..]);
            let section = Section { rank, at, roots, nodes, edges };
            if section.dependents() == section.edges.len() as u64 / 4 {
                return Ok(section);
            }
        }
        if is_version_2(bytes, nodes_at, count) {
            return Err(LgsError::Version2(at));
        }
        let problem = format!("rank {rank}: its section of {length} bytes does not fit its {count} operations");
        Err(damaged(at, problem))
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> usize {
        self.nodes.len() / node::LENGTH
    }

    /// Returns the number of dependencies.
    pub fn dependencies(&self) -> usize {
        self.edges.len() / 4
    }

    /// Returns the number of messages with sizes beyond 32 bits.
    pub fn wide(&self) -> usize {
        let is_wide = |node: &&[u8]| node[node::KIND] != kind::CALC && number64(node, node::SIZE) > u32::MAX.into();
        self.nodes.chunks_exact(node::LENGTH).filter(is_wide).count()
    }

    /// Returns the sum of the numbers of dependents.
    fn dependents(&self) -> u64 {
        let of_node =
            |node: &[u8]| u64::from(number32(node, node::ON_DONE)) + u64::from(number32(node, node::ON_START));
        self.nodes.chunks_exact(node::LENGTH).map(of_node).sum()
    }

    /// Adds the rank to a schedule.
    pub fn add_to(&self, builder: &mut Builder, ranks: u32) -> Result<(), LgsError> {
        builder.begin_rank(self.rank);
        let first = builder.len();
        let count = u32::try_from(self.operations()).ok().filter(|&count| count as usize <= MAX_OPS);
        let count = count.ok_or(BuildError::TooLarge)?;
        for (index, node) in (0..count).zip(self.nodes.chunks_exact(node::LENGTH)) {
            let action = action(node, ranks).map_err(|problem| self.damaged(index, problem))?;
            builder.add(action, node[node::CPU], node[node::NIC])?;
        }
        let mut waits = vec![0u32; count as usize];
        for (index, node) in (0..count).zip(self.nodes.chunks_exact(node::LENGTH)) {
            for (wait, field) in [(Wait::Done, node::ON_DONE), (Wait::Started, node::ON_START)] {
                for later in self.later(index, node, field)? {
                    if later >= count {
                        let problem = format!("its dependent {later} is not among the {count} operations");
                        return Err(self.damaged(index, problem));
                    }
                    waits[later as usize] += 1;
                    builder.depend(first + later, first + index, wait);
                }
            }
        }
        for (index, node) in (0..count).zip(self.nodes.chunks_exact(node::LENGTH)) {
            let (stated, found) = (number32(node, node::WAITS), waits[index as usize]);
            if stated != found {
                return Err(self.damaged(index, format!("it waits for {stated} operations, but {found} name it")));
            }
        }
        let roots = self.roots.chunks_exact(4).map(|root| number32(root, 0));
        if !roots.eq((0..count).filter(|&index| waits[index as usize] == 0)) {
            let problem = format!("rank {}: its list of operations without dependencies is wrong", self.rank);
            return Err(damaged(self.at + 8, problem));
        }
        Ok(builder.end_rank()?)
    }

    /// Returns the dependents that a node lists in `field` and the field behind it.
    fn later(&self, index: u32, node: &[u8], field: usize) -> Result<impl Iterator<Item = u32> + use<'a>, LgsError> {
        let count = number32(node, field) as usize;
        // txt2bin's predecessor wrote an undefined position for no dependents.
        let from = if count == 0 { 0 } else { number32(node, field + 4) as usize };
        let edges = from.checked_mul(4).and_then(|start| self.edges.get(start..start.checked_add(count * 4)?));
        let edges = edges.ok_or_else(|| self.damaged(index, "its dependents are behind the section's end"))?;
        Ok(edges.chunks_exact(4).map(|edge| number32(edge, 0)))
    }

    fn damaged(&self, index: u32, problem: impl Into<String>) -> LgsError {
        let at = self.at + 8 + self.roots.len() as u64 + u64::from(index) * node::LENGTH as u64;
        damaged(at, format!("rank {}, operation {}: {}", self.rank, u64::from(index) + 1, problem.into()))
    }
}

/// Returns the action of a node, or the problem with it.
fn action(node: &[u8], ranks: u32) -> Result<Action<'static>, String> {
    let (size, peer, tag) = (number64(node, node::SIZE), number32(node, node::PEER), number32(node, node::TAG));
    let known = |peer: u32| match peer < ranks {
        true => Ok(peer),
        false => Err(format!("rank {peer} does not exist: there are {ranks}, numbered from 0")),
    };
    // As in text.
    if size > i64::MAX.cast_unsigned() && node[node::KIND] != kind::CALC {
        return Err(format!("a message of {size} bytes; the most are {}", i64::MAX));
    }
    match node[node::KIND] {
        kind::CALC if size > MAX_CALC_NS => Err(format!("a calculation of {size} ns; the most are {MAX_CALC_NS}")),
        kind::CALC => Ok(Action::Calc(size)),
        kind::SEND if tag == ANY => Err("a send needs a tag that is no wildcard".into()),
        kind::SEND => Ok(Action::Send { bytes: size, to: known(peer)?, tag, space: 0 }),
        kind::RECV => {
            let from = if peer == ANY { None } else { Some(known(peer)?) };
            Ok(Action::Recv { bytes: size, from, tag: (tag != ANY).then_some(tag), space: 0 })
        }
        other => Err(format!("kind {other} is none of send (1), recv (2) and calc (3)")),
    }
}

/// Returns true if a section fits the longer nodes of LogGOPSim 2. They have the same fields, then those of cards.
fn is_version_2(bytes: &[u8], nodes_at: usize, count: u64) -> bool {
    let Some(rest) = bytes.get(nodes_at..) else { return false };
    let Some(length) = count.checked_mul(NODE_OF_VERSION_2).filter(|&length| length <= rest.len() as u64) else {
        return false;
    };
    count > 0 && (rest.len() as u64 - length).is_multiple_of(4) && (rest.len() as u64 - length) / 4 < 4 * count
}

fn damaged(at: u64, problem: impl Into<String>) -> LgsError {
    LgsError::Damaged { at, problem: problem.into() }
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Reads the first number of a file.
pub(super) fn begin(stream: &mut impl Read) -> Result<(), LgsError> {
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic)?;
    match magic == MAGIC {
        true => Ok(()),
        false => Err(damaged(0, "it does not begin with the number 4223")),
    }
}

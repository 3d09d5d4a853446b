// SPDX-License-Identifier: Apache-2.0
//! Binary schedule files, mapped into memory and executed in place.
//!
//! Little-endian: a [`Header`], then contiguous tables with the entry counts of the header. Opening a file validates it
//! completely, so that a truncated or damaged file is an error and never gives a wrong result.

#![deny(clippy::cast_possible_truncation)] // values come from input

mod append;

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use crate::nic::NicOp;
use crate::op::{ANY, Kind, MAX_CALC_NS, MAX_OPS, MAX_RANKS, ON_START, Op};
use crate::schedule::{Bytes, Schedule, Table};
use crate::text::read_nic_op;

pub(crate) use append::Appender;

/// First bytes of a file. They are not text, and a transfer that converts line ends damages them.
pub const MAGIC: [u8; 8] = *b"\x89GOAL\r\n\x1a";
/// Format version.
const VERSION: u32 = 1;

#[cfg(target_endian = "big")]
compile_error!("tables are used as they are in the file: little-endian");

/// The 64-byte header of a file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
struct Header {
    magic: [u8; 8],
    version: u32,
    ranks: u32,
    ops: u64,
    edges: u64,
    wide: u64,
    /// Bytes of the card operations, which are lines of GOAL text.
    nic_text: u64,
    cpus: u16,
    nics: u16,
    has_wildcards: u32,
    /// Checksum of everything else.
    checksum: u64,
}

/// Error of an invalid file.
#[derive(Debug, Error)]
pub enum BinaryError {
    /// The file does not start with the magic bytes.
    #[error("not a binary GOAL file")]
    NotBinary,
    /// Another version of spinkit wrote the file.
    #[error("binary GOAL of version {0}; this spinkit reads version {VERSION}: convert the text again")]
    Version(u32),
    /// The file is shorter or longer than its header states.
    #[error("{found} bytes, but its header says {expected}: truncated or damaged")]
    Length {
        /// Actual size in bytes
        found: u64,
        /// Size in bytes according to the header
        expected: u64,
    },
    /// Checksum or contents are invalid.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a schedule.
///
/// # Errors
/// If writing fails.
#[expect(clippy::cast_possible_truncation, reason = "a schedule has at most 256 CPUs and NICs")]
pub fn write(schedule: &Schedule, out: &mut impl Write) -> io::Result<()> {
    let nic_text: String = schedule.nic_ops.iter().map(|op| format!("{op}\n")).collect();
    let mut header = Header {
        magic: MAGIC,
        version: VERSION,
        ranks: schedule.ranks(),
        ops: schedule.len() as u64,
        edges: schedule.edges.len() as u64,
        wide: schedule.wide.len() as u64,
        nic_text: nic_text.len() as u64,
        cpus: schedule.cpus as u16,
        nics: schedule.nics as u16,
        has_wildcards: schedule.has_wildcards.into(),
        checksum: 0,
    };
    let tables: [&[u8]; 5] = [
        bytemuck::cast_slice(&schedule.wide),
        bytemuck::cast_slice(&schedule.ops),
        bytemuck::cast_slice(&schedule.edges),
        bytemuck::cast_slice(&schedule.ranks),
        nic_text.as_bytes(),
    ];
    header.checksum = checksum(&header, &tables);
    out.write_all(bytemuck::bytes_of(&header))?;
    tables.iter().try_for_each(|table| out.write_all(table))
}

/// Maps a file.
///
/// # Errors
/// See [`BinaryError`].
pub fn open(path: &Path) -> Result<Schedule, BinaryError> {
    map(&File::open(path)?)
}

/// Maps an open file.
///
/// # Errors
/// See [`BinaryError`].
pub(crate) fn map(file: &File) -> Result<Schedule, BinaryError> {
    // SAFETY: another program that changes the file while it is mapped could invalidate the checks. All later accesses
    // are bounds-checked as well, so the worst case is a wrong result or a panic.
    let map = unsafe { memmap2::Mmap::map(file)? };
    load(Bytes::Mapped(map))
}

/// Reads a stream to its end, after `start`.
///
/// # Errors
/// See [`BinaryError`].
pub fn read(start: &[u8], rest: &mut impl Read) -> Result<Schedule, BinaryError> {
    const STEP: usize = 1 << 20;
    let mut words = vec![0; start.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..start.len()].copy_from_slice(start);
    let mut len = start.len();
    loop {
        if len + STEP > words.len() * 8 {
            words.resize((words.len() * 2).max(STEP / 4), 0);
        }
        match rest.read(&mut bytemuck::cast_slice_mut(&mut words)[len..]) {
            Ok(0) => return load(Bytes::Read(words, len)),
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the header of a file after checking its version and counts.
fn header(bytes: &[u8]) -> Result<Header, BinaryError> {
    let header: Header = match bytes.get(..size_of::<Header>()) {
        Some(start) if start.starts_with(&MAGIC) => bytemuck::pod_read_unaligned(start),
        _ => return Err(BinaryError::NotBinary),
    };
    if header.version != VERSION {
        return Err(BinaryError::Version(header.version));
    }
    let damaged = |what| Err(BinaryError::Damaged(what));
    let most = MAX_OPS as u64;
    let counts = [header.ops, header.edges, header.wide, header.nic_text, header.ranks.into()];
    if counts.iter().any(|&count| count > most) || header.ranks == 0 || header.ranks > MAX_RANKS {
        return damaged("sizes beyond all limits");
    }
    if ![header.cpus, header.nics].iter().all(|count| (1..=256).contains(count)) {
        return damaged("number of CPUs or NICs");
    }
    Ok(header)
}

fn load(bytes: Bytes) -> Result<Schedule, BinaryError> {
    let header = header(&bytes)?;
    let damaged = |what| Err(BinaryError::Damaged(what));
    let (parts, end) = parts(&header);
    if end != bytes.len() {
        return Err(BinaryError::Length { found: bytes.len() as u64, expected: end as u64 });
    }
    let tables = parts.each_ref().map(|range| &bytes[range.clone()]);
    if checksum(&header, &tables) != header.checksum {
        return damaged("wrong checksum");
    }
    let nic_ops = std::str::from_utf8(tables[4]).ok().and_then(|text| {
        text.lines().map(|line| read_nic_op(line.as_bytes(), header.ranks)).collect::<Option<Vec<NicOp>>>()
    });
    let Some(nic_ops) = nic_ops else { return damaged("an operation of a card") };
    let bytes = Arc::new(bytes);
    let [wide, ops, edges, ranks, _] = parts;
    let schedule = Schedule {
        wide: Table::Mapped(bytes.clone(), wide),
        ops: Table::Mapped(bytes.clone(), ops),
        edges: Table::Mapped(bytes.clone(), edges),
        ranks: Table::Mapped(bytes, ranks),
        nic_ops,
        cpus: header.cpus.into(),
        nics: header.nics.into(),
        has_wildcards: header.has_wildcards != 0,
        largest: OnceLock::new(),
    };
    check(&schedule).map_err(BinaryError::Damaged)?;
    Ok(schedule)
}

/// Returns the ranges of the tables in the file, in the order of [`write`], and their end. The counts must have been
/// checked.
#[expect(clippy::cast_possible_truncation, reason = "counts of a checked header are below MAX_OPS, a usize")]
fn parts(header: &Header) -> ([Range<usize>; 5], usize) {
    let mut end = size_of::<Header>();
    let lengths = [
        header.wide as usize * 8,
        (header.ops as usize + 1) * size_of::<Op>(),
        header.edges as usize * 4,
        (header.ranks as usize + 1) * 4,
        header.nic_text as usize,
    ];
    let parts = lengths.map(|length| {
        end += length;
        end - length..end
    });
    (parts, end)
}

/// Updates the checksum of a file with modified tables, so that only its contents can be invalid. Ignores bytes that
/// are no file of this format, or of another length than their header states.
pub fn seal(bytes: &mut [u8]) {
    let Ok(mut header) = header(bytes) else { return };
    let (parts, end) = parts(&header);
    if end == bytes.len() {
        header.checksum = checksum(&header, &parts.each_ref().map(|range| &bytes[range.clone()]));
        bytes[..size_of::<Header>()].copy_from_slice(bytemuck::bytes_of(&header));
    }
}

/// Checks the invariants that the engines rely on. The checksum is not sufficient, as a file may be malicious.
fn check(schedule: &Schedule) -> Result<(), &'static str> {
    let (ops, edges, ranks) = (&*schedule.ops, &*schedule.edges, &*schedule.ranks);
    let count = u32::try_from(ranks.len() - 1).map_err(|_| "the number of ranks")?;
    if ranks[0] != 0 || *ranks.last().expect("not empty") as usize != schedule.len() || !ranks.is_sorted() {
        return Err("the table of ranks");
    }
    if ops[0].edges != 0 || ops[schedule.len()].edges as usize != edges.len() {
        return Err("the table of dependencies");
    }
    for rank in 0..count {
        let of_rank = schedule.of_rank(rank);
        let mut backwards = false;
        for op in of_rank.clone() {
            let record = &ops[op as usize];
            let is_message = matches!(record.kind(), Kind::Send | Kind::Recv);
            let is_receive = record.kind() == Kind::Recv;
            let fine = record.rank == rank
                && !record.has_unused_bits()
                && record.cpu() < schedule.cpus
                && record.nic() < schedule.nics
                && (!is_message || record.peer < count || (is_receive && record.peer == ANY && schedule.has_wildcards))
                && (!is_message || record.tag != ANY || (is_receive && schedule.has_wildcards))
                && (!record.is_wide() || (record.size as usize) < schedule.wide.len())
                && (record.kind() != Kind::Calc || record.calc_ns() <= MAX_CALC_NS)
                && (record.kind() != Kind::Nic || (record.size as usize) < schedule.nic_ops.len());
            if !fine {
                return Err("an operation");
            }
            if record.edges > ops[op as usize + 1].edges || ops[op as usize + 1].edges as usize > edges.len() {
                return Err("the table of dependencies");
            }
            let mut on_done = false;
            for edge in &edges[record.edges as usize..ops[op as usize + 1].edges as usize] {
                let later = edge & !ON_START;
                if !of_rank.contains(&later) || (on_done && edge & ON_START != 0) {
                    return Err("a dependency");
                }
                on_done |= edge & ON_START == 0;
                backwards |= later <= op;
            }
        }
        if backwards && has_cycle(schedule, of_rank) {
            return Err("a cycle of dependencies");
        }
    }
    Ok(())
}

fn has_cycle(schedule: &Schedule, of_rank: Range<u32>) -> bool {
    let mut waits = vec![0u32; of_rank.len()];
    for (later, _) in of_rank.clone().flat_map(|op| schedule.dependents(op)) {
        waits[(later - of_rank.start) as usize] += 1;
    }
    let mut free: Vec<u32> = of_rank.clone().filter(|op| waits[(op - of_rank.start) as usize] == 0).collect();
    let mut passed = 0;
    while let Some(op) = free.pop() {
        passed += 1;
        for (later, _) in schedule.dependents(op) {
            let waits = &mut waits[(later - of_rank.start) as usize];
            *waits -= 1;
            if *waits == 0 {
                free.push(later);
            }
        }
    }
    passed < of_rank.len()
}

/// Returns the checksum of the header, without its own field, and of all tables.
fn checksum(header: &Header, tables: &[&[u8]]) -> u64 {
    let header = Header { checksum: 0, ..*header };
    tables.iter().fold(hash(0, bytemuck::bytes_of(&header)), |sum, table| hash(sum, table))
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hasher = Hasher::new(seed, bytes.len() as u64);
    let (blocks, tail) = bytes.split_at(bytes.len() - bytes.len() % BLOCK);
    hasher.add(blocks);
    hasher.finish(tail)
}

/// Bytes that the lanes of a [`Hasher`] take together.
const BLOCK: usize = 32;

/// Hashes in four independent multiplication chains, so that the checksum is as fast as reading memory.
struct Hasher {
    seed: u64,
    lanes: [u64; 4],
}

impl Hasher {
    fn new(seed: u64, length: u64) -> Hasher {
        Hasher { seed, lanes: [seed, !seed, seed.rotate_left(32), length] }
    }

    fn step(sum: u64, word: u64) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
    }

    /// Adds whole blocks.
    fn add(&mut self, blocks: &[u8]) {
        for block in blocks.chunks_exact(BLOCK) {
            for (lane, bytes) in self.lanes.iter_mut().zip(block.chunks_exact(8)) {
                *lane = Hasher::step(*lane, word(bytes));
            }
        }
    }

    /// Adds the bytes behind the last whole block, and returns the hash.
    fn finish(self, tail: &[u8]) -> u64 {
        let tail = tail.chunks(8).fold(self.seed, |sum, bytes| Hasher::step(sum, word(bytes)));
        self.lanes.iter().fold(tail, |sum, &lane| Hasher::step(sum, lane))
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

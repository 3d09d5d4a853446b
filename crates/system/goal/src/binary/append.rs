// SPDX-License-Identifier: Apache-2.0
//! Writer of schedules that do not fit into memory, rank by rank.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{BLOCK, Hasher, Header, MAGIC, VERSION, hash};
use crate::build::{BuildError, Builder};
use crate::op::{MAX_OPS, Op};

/// Bytes of a table that wait for being written.
const BUFFER: usize = 1 << 20;

/// Writes a schedule without operations of cards to a file; the counts of all entries are known before.
pub(crate) struct Appender<'a> {
    file: &'a File,
    wide: Column,
    ops: Column,
    edges: Column,
    ranks: Column,
    header: Header,
    /// Entries written so far, in the order wide, ops, edges.
    written: [usize; 3],
}

/// Table that is written from its start to its end.
struct Column {
    start: u64,
    at: u64,
    buffer: Vec<u8>,
}

impl Column {
    fn new(start: u64) -> Column {
        Column { start, at: start, buffer: Vec::with_capacity(BUFFER) }
    }

    fn push(&mut self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.flush(file) } else { Ok(()) }
    }

    fn flush(&mut self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Returns the hash of the table, which is read back.
    fn hash(&self, file: &File, seed: u64) -> io::Result<u64> {
        const CHUNK: u64 = (BUFFER / BLOCK * BLOCK) as u64;
        let mut hasher = Hasher::new(seed, self.at - self.start);
        let (mut at, mut bytes) = (self.start, Vec::new());
        while at < self.at {
            bytes.resize(usize::try_from(CHUNK.min(self.at - at)).unwrap_or(BUFFER), 0);
            file.read_exact_at(&mut bytes, at)?;
            at += bytes.len() as u64;
            let (blocks, tail) = bytes.split_at(bytes.len() - bytes.len() % BLOCK);
            hasher.add(blocks);
            if at == self.at {
                return Ok(hasher.finish(tail));
            }
        }
        Ok(hasher.finish(&[]))
    }
}

impl Appender<'_> {
    /// Prepares the tables of a schedule with these numbers of wide sizes, operations and dependencies.
    pub fn new(file: &File, ranks: u32, [wide, ops, edges]: [usize; 3]) -> Result<Appender<'_>, BuildError> {
        if ops > MAX_OPS || edges > MAX_OPS {
            return Err(BuildError::TooLarge);
        }
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            ranks,
            ops: ops as u64,
            edges: edges as u64,
            wide: wide as u64,
            nic_text: 0,
            cpus: 1,
            nics: 1,
            has_wildcards: 0,
            checksum: 0,
        };
        let (parts, _) = super::parts(&header);
        let [wide, ops, edges, ranks, _] = parts.map(|part| Column::new(part.start as u64));
        Ok(Appender { file, wide, ops, edges, ranks, header, written: [0; 3] })
    }

    /// Writes the only rank of a builder, and empties the builder.
    pub fn add_rank(&mut self, builder: &mut Builder) -> io::Result<()> {
        let tables = builder.take_rank();
        let [first_wide, first_op, first_edge] = self.written.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        self.ranks.push(self.file, &first_op.to_le_bytes())?;
        for op in &mut *tables.ops {
            op.edges += first_edge;
            if op.is_wide() {
                op.size += first_wide;
            }
        }
        for edge in &mut *tables.edges {
            *edge += first_op;
        }
        self.ops.push(self.file, bytemuck::cast_slice(tables.ops))?;
        self.edges.push(self.file, bytemuck::cast_slice(tables.edges))?;
        self.wide.push(self.file, bytemuck::cast_slice(tables.wide))?;
        let added = [tables.wide.len(), tables.ops.len(), tables.edges.len()];
        self.written.iter_mut().zip(added).for_each(|(count, more)| *count += more);
        builder.clear_rank();
        Ok(())
    }

    /// Writes the remaining entries and the header. The builder knows the highest CPU and NIC.
    pub fn finish(mut self, builder: &Builder) -> io::Result<()> {
        let [_, ops, edges] = self.written.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let end = Op { edges, ..Op::default() };
        self.ops.push(self.file, bytemuck::bytes_of(&end))?;
        self.ranks.push(self.file, &ops.to_le_bytes())?;
        let mut columns = [self.wide, self.ops, self.edges, self.ranks];
        columns.iter_mut().try_for_each(|column| column.flush(self.file))?;
        let counts = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let (cpus, nics, has_wildcards) = builder.resources();
        let mut header =
            Header { cpus: counts(cpus), nics: counts(nics), has_wildcards: has_wildcards.into(), ..self.header };
        let mut sum = hash(0, bytemuck::bytes_of(&header));
        for column in &columns {
            sum = column.hash(self.file, sum)?;
        }
        header.checksum = hash(sum, &[]);
        self.file.write_all_at(bytemuck::bytes_of(&header), 0)
    }
}

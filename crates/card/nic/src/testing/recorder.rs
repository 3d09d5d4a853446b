use std::collections::HashMap;
use std::ops::Range;

use sim::Time;

use super::bench::Surroundings;
use crate::message::Packet;
use crate::ports::{MemoryFault, Notice, PacketId, Slice, Track};

/// Bytes of host memory that are kept together.
const PAGE: usize = 4096;

/// Surroundings that keep what the cards tell them. Every byte of host memory is there, and 0 until it is written.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Latency between any two nodes. `None`: packets that leave are recorded and reach nobody.
    pub latency: Option<Time>,
    memory: HashMap<(usize, u64), Box<[u8; PAGE]>>,
    /// What cards have written to host memory, in the order of the writes.
    pub writes: Vec<HostStore>,
    /// First address that cannot be accessed.
    pub missing: Option<u64>,
    /// Packets in the order in which cards put them on the wire.
    pub departures: Vec<Departure>,
    /// What hosts were told, with time and node.
    pub notices: Vec<(Time, usize, Notice)>,
    /// Warnings, in their order.
    pub warnings: Vec<String>,
    /// Slices of the timeline, in the order in which they were told.
    pub slices: Vec<Seen>,
}

/// A write of a card to host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStore {
    /// When the bytes were in host memory.
    pub at: Time,
    /// Node whose memory was written.
    pub node: usize,
    /// Address of the first byte.
    pub start: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// A packet that has left a card.
#[derive(Clone, Debug)]
pub struct Departure {
    /// When its first byte left.
    pub at: Time,
    /// The packet.
    pub packet: Packet,
}

/// A slice of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Node that it belongs to.
    pub node: usize,
    /// Row.
    pub track: Track,
    /// First instant.
    pub start: Time,
    /// Last instant.
    pub end: Time,
    /// What happened.
    pub name: String,
    /// Packet that it belongs to.
    pub packet: Option<PacketId>,
}

impl Recorder {
    /// Surroundings in which packets travel for `latency`.
    pub fn connected(latency: Time) -> Recorder {
        Recorder { latency: Some(latency), ..Recorder::default() }
    }

    /// Sets bytes of host memory, as its process would.
    pub fn store(&mut self, node: usize, start: u64, bytes: &[u8]) {
        for_pages(start, bytes.len(), |page, places, part| {
            let page = self.memory.entry((node, page)).or_insert_with(|| Box::new([0; PAGE]));
            page[places].copy_from_slice(&bytes[part]);
        });
    }

    /// Fills host memory with bytes that depend on their addresses and are not 0.
    pub fn fill(&mut self, node: usize, start: u64, bytes: u64) {
        let pattern: Vec<u8> = (start..start + bytes).map(|at| at as u8 | 1).collect();
        self.store(node, start, &pattern);
    }

    /// Bytes of host memory.
    pub fn load(&self, node: usize, start: u64, bytes: u64) -> Vec<u8> {
        let mut out = vec![0; bytes as usize];
        for_pages(start, out.len(), |page, places, part| {
            if let Some(page) = self.memory.get(&(node, page)) {
                out[part].copy_from_slice(&page[places]);
            }
        });
        out
    }

    /// Number of bytes that cards have written to the memory of a node's host.
    pub fn written(&self, node: usize) -> u64 {
        self.writes.iter().filter(|write| write.node == node).map(|write| write.bytes).sum()
    }

    /// Start and end of the slices of a node's row, in the order in which they were told.
    pub fn row(&self, node: usize, track: Track) -> Vec<(Time, Time)> {
        let of_row = self.slices.iter().filter(|slice| slice.node == node && slice.track == track);
        of_row.map(|slice| (slice.start, slice.end)).collect()
    }

    /// The slices with this name: row, start and end, in the order in which they were told.
    pub fn named(&self, name: &str) -> Vec<(Track, Time, Time)> {
        let of_name = self.slices.iter().filter(|slice| slice.name == name);
        of_name.map(|slice| (slice.track, slice.start, slice.end)).collect()
    }

    fn check(&self, addr: u64, len: usize) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr, len: len as u64 };
        let last = addr.checked_add((len as u64).saturating_sub(1)).ok_or(fault)?;
        if self.missing.is_some_and(|missing| last >= missing) { Err(fault) } else { Ok(()) }
    }
}

impl Surroundings for Recorder {
    fn read(&mut self, node: usize, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.check(addr, out.len())?;
        out.copy_from_slice(&self.load(node, addr, out.len() as u64));
        Ok(())
    }

    fn write(&mut self, now: Time, node: usize, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.check(addr, bytes.len())?;
        self.store(node, addr, bytes);
        self.writes.push(HostStore { at: now, node, start: addr, bytes: bytes.len() as u64 });
        Ok(())
    }

    fn latency(&self, _: usize, _: usize) -> Option<Time> {
        self.latency
    }

    fn transmitted(&mut self, _: Time, depart: Time, packet: &Packet) {
        self.departures.push(Departure { at: depart, packet: packet.clone() });
    }

    fn notified(&mut self, now: Time, node: usize, notice: Notice) {
        self.notices.push((now, node, notice));
    }

    fn warned(&mut self, _: Time, _: usize, message: String) {
        self.warnings.push(message);
    }

    fn sliced(&mut self, node: usize, slice: Slice<'_>) {
        let Slice { track, start, end, name, packet, .. } = slice;
        self.slices.push(Seen { node, track, start, end, name: name.to_owned(), packet });
    }
}

/// Calls `act` for each page of a range: its number, the places in it, and their places in the range.
fn for_pages(start: u64, len: usize, mut act: impl FnMut(u64, Range<usize>, Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = start.wrapping_add(done as u64);
        let place = (at % PAGE as u64) as usize;
        let bytes = (PAGE - place).min(len - done);
        act(at / PAGE as u64, place..place + bytes, done..done + bytes);
        done += bytes;
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Surroundings that record the actions of cards.

use std::collections::HashMap;
use std::ops::Range;

use sim::Time;

use super::bench::Surroundings;
use crate::message::Packet;
use crate::ports::{MemoryFault, Notice, PacketId, Slice, Track};

/// Page size of the sparse host memory in bytes.
const PAGE: usize = 4096;

/// Surroundings that record the actions of cards. Every byte of host memory exists, and is 0 until written.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Latency between any two nodes. `None`: departing packets are recorded and dropped.
    pub latency: Option<Time>,
    memory: HashMap<(usize, u64), Box<[u8; PAGE]>>,
    /// Writes of cards to host memory, in order.
    pub writes: Vec<HostStore>,
    /// First inaccessible address.
    pub missing: Option<u64>,
    /// Packets in the order of their transmission.
    pub departures: Vec<Departure>,
    /// Notifications of hosts, with time and node.
    pub notices: Vec<(Time, usize, Notice)>,
    /// Warnings, in order.
    pub warnings: Vec<String>,
    /// Slices of the timeline, in recording order.
    pub slices: Vec<Seen>,
}

/// A write of a card to host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStore {
    /// Time at which the bytes were in host memory.
    pub at: Time,
    /// Node whose memory was written.
    pub node: usize,
    /// Address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// A packet that left a card.
#[derive(Clone, Debug)]
pub struct Departure {
    /// Departure time of its first byte.
    pub at: Time,
    /// The packet.
    pub packet: Packet,
}

/// A slice of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Node of the slice.
    pub node: usize,
    /// Row.
    pub track: Track,
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
    /// Activity.
    pub name: String,
    /// Packet of the slice.
    pub packet: Option<PacketId>,
}

impl Recorder {
    /// Creates surroundings with this latency of packets.
    pub fn connected(latency: Time) -> Recorder {
        Recorder { latency: Some(latency), ..Recorder::default() }
    }

    /// Sets bytes of host memory, as the host's process would.
    pub fn store(&mut self, node: usize, start: u64, bytes: &[u8]) {
        for_pages(start, bytes.len(), |page, places, part| {
            let page = self.memory.entry((node, page)).or_insert_with(|| Box::new([0; PAGE]));
            page[places].copy_from_slice(&bytes[part]);
        });
    }

    /// Fills host memory with nonzero bytes that depend on their addresses.
    pub fn fill(&mut self, node: usize, start: u64, bytes: u64) {
        let pattern: Vec<u8> = (start..start + bytes).map(|at| at as u8 | 1).collect();
        self.store(node, start, &pattern);
    }

    /// Returns bytes of host memory.
    pub fn load(&self, node: usize, start: u64, bytes: u64) -> Vec<u8> {
        let mut out = vec![0; bytes as usize];
        for_pages(start, out.len(), |page, places, part| {
            if let Some(page) = self.memory.get(&(node, page)) {
                out[part].copy_from_slice(&page[places]);
            }
        });
        out
    }

    /// Returns the number of bytes that cards wrote to the memory of a node's host.
    pub fn written(&self, node: usize) -> u64 {
        self.writes.iter().filter(|write| write.node == node).map(|write| write.bytes).sum()
    }

    /// Returns start and end of the slices of a node's row, in recording order.
    pub fn row(&self, node: usize, track: Track) -> Vec<(Time, Time)> {
        let of_row = self.slices.iter().filter(|slice| slice.node == node && slice.track == track);
        of_row.map(|slice| (slice.start, slice.end)).collect()
    }

    /// Returns row, start and end of the slices with this name, in recording order.
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

/// Calls `act` for each page of a range, with the page number, the byte range in the page, and the byte range in the
/// whole range.
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

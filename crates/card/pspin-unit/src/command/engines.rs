// SPDX-License-Identifier: Apache-2.0
//! Engines that read the data of commands through the NIC–host interconnect (§III-C): the NIC's outbound engine and the
//! off-cluster DMA engine. They share one read port of each memory round robin, beat by beat.
//!
//! A chosen beat is read from its memory in the next cycle, or later on a bank conflict in L2, which also stalls all
//! other beats of its engine and of its memory. After `read_cycles` the data emerges as a stream of full beats that
//! begins with the first byte of the range.

use std::collections::VecDeque;

use machine::Pspin;
use sim::Clock;

use super::kinds::{Command, Issued, Through};
use super::lanes::Lanes;
use crate::arbiter::RoundRobin;
use crate::cycle::Cycle;
use crate::her::Range;
use crate::memory::{Arena, Place};
use crate::rate::Rate;

/// Maximum number of an engine's beats that are chosen and have not left.
const ROOM: usize = 8;

/// Resources that a port requests from its memory for a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Port and banks of an L1, in the next cycle. Always granted for L2.
    Next,
    /// Banks of L2, in this cycle. Always granted for L1, which has reserved them.
    Now,
}

/// A beat at the output of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Command of the beat.
    pub issued: Issued,
    /// Number of bytes that leave the engine; `None` if no full beat of the stream is available.
    pub bytes: Option<u32>,
    /// Set when all data of the command is available; its last bytes may need one more beat.
    pub ends: bool,
    /// Set for the first beat of the command's data.
    pub is_first: bool,
    /// Set for the last beat of the stream.
    pub is_last: bool,
}

/// A beat that is read.
#[derive(Clone, Copy)]
struct Beat {
    /// Cycle in which it is at the output.
    at: Cycle,
    is_first: bool,
    is_last: bool,
}

/// One engine, which reads the data of its commands in order.
struct Engine {
    commands: VecDeque<(Cycle, Issued)>,
    /// Commands by tenant, which `commands` takes part by part.
    lanes: Option<Lanes>,
    /// Address of the first command's next beat, and number of beats left; 0 before it begins.
    next: u32,
    left: u32,
    /// First cycle in which the next command may begin, and the later one that applies if it reads another memory than
    /// the previous command.
    from: Cycle,
    turned: Cycle,
    memory: Option<Place>,
    /// Commands with a chosen beat, and beats that are read.
    sending: VecDeque<Issued>,
    beats: VecDeque<Beat>,
    /// Number of beats chosen that have not left, and the cycle in which one last left.
    taken: usize,
    gone: Cycle,
    /// Set when the last bytes of a stream follow in an additional beat.
    has_rest: bool,
}

impl Engine {
    fn new(lanes: Option<Lanes>) -> Engine {
        Engine {
            commands: VecDeque::new(),
            lanes,
            next: 0,
            left: 0,
            from: Cycle::ZERO,
            turned: Cycle::ZERO,
            memory: None,
            sending: VecDeque::new(),
            beats: VecDeque::new(),
            taken: 0,
            gone: Cycle::NEVER,
            has_rest: false,
        }
    }

    /// Returns the cycle in which the engine chooses its next beat, if it has room.
    fn wake(&self) -> Cycle {
        let Some((at, issued)) = self.commands.front() else {
            return self.lanes.as_ref().map_or(Cycle::NEVER, Lanes::wake);
        };
        match () {
            () if self.left > 0 => *at,
            () if self.turned <= self.from || self.memory == memory(issued) => self.from.max(*at),
            () => self.turned.max(*at),
        }
    }

    fn wants(&self, now: Cycle) -> bool {
        self.wake() <= now && self.taken + usize::from(self.gone == now) < ROOM
    }

    /// Returns the address of the next beat, aligned to `width` bytes.
    fn address(&self, width: u32) -> u32 {
        if self.left > 0 {
            return self.next;
        }
        let data = self.commands.front().map(|(_, issued)| issued.range()).unwrap_or_default();
        data.address - data.address % width
    }

    /// Returns the beat at the output in cycle `now`.
    fn output(&self, now: Cycle, width: u32) -> Option<Output> {
        let Beat { is_first, is_last, .. } = *self.beats.front().filter(|beat| beat.at <= now)?;
        let issued = *self.sending.front()?;
        let data = issued.range();
        let (offset, end) = (data.address % width, (data.address.wrapping_add(data.size.max(1) - 1)) % width + 1);
        // A beat of the stream joins the end of the previous word and the start of this one.
        let is_alone = is_first || offset == 0 || self.has_rest;
        let leaves = !is_alone || is_last || offset == 0;
        let leaves_rest = is_last && !is_alone && end > offset;
        let bytes = match () {
            () if data.size == 0 => 0,
            () if is_last && !leaves_rest => end + if is_alone { 0 } else { width } - offset,
            () => width,
        };
        Some(Output {
            issued,
            bytes: leaves.then_some(bytes),
            ends: is_last && !self.has_rest,
            is_first,
            is_last: is_last && !leaves_rest,
        })
    }

    /// Removes the beat from the output in cycle `now`.
    fn leave(&mut self, now: Cycle, output: &Output) {
        self.has_rest = output.ends && !output.is_last;
        if self.has_rest {
            return;
        }
        self.beats.pop_front();
        (self.taken, self.gone) = (self.taken - 1, now);
        if output.is_last {
            self.sending.pop_front();
        }
    }
}

/// A chosen beat, read in the next cycle at the earliest.
#[derive(Clone, Copy)]
struct Chosen {
    port: usize,
    address: u32,
    is_first: bool,
    is_last: bool,
    /// Tenant of a packet of which this is the last beat.
    completes: Option<u32>,
}

/// Both engines and the read ports.
pub struct Engines {
    engines: [Engine; 2],
    /// Arbiter of each port.
    arbiters: Vec<RoundRobin>,
    /// Chosen beat of each engine.
    chosen: [Option<Chosen>; 2],
    beat: u32,
    read_cycles: u64,
    /// Cycles between a packet that the outbound engine reads from L1, or from L2, and the next one from another
    /// memory.
    turns: [u64; 2],
    /// Cycles between a copy that the off-cluster DMA engine reads from L1, or from L2, and the next copy.
    gaps: [u64; 2],
    rate: Rate,
}

/// Index of the outbound engine; the other one is the off-cluster DMA engine.
pub const OUTBOUND: usize = 0;

impl Engines {
    /// Creates idle engines.
    pub fn new(unit: &Pspin, clock: Clock) -> Engines {
        Engines {
            engines: [Engine::new(Lanes::new(&unit.sharing)), Engine::new(Lanes::new(&unit.sharing))],
            arbiters: vec![RoundRobin::default(); L1_PORTS + unit.units.clusters as usize],
            chosen: [None; 2],
            beat: unit.nhi.width_bits / 8,
            read_cycles: u64::from(unit.commands.read_cycles),
            turns: [u64::from(unit.outbound.l1_gap_cycles), u64::from(unit.outbound.l2_gap_cycles)],
            gaps: [u64::from(unit.off_cluster.l1_gap_cycles), u64::from(unit.off_cluster.l2_gap_cycles)],
            rate: Rate::new(unit.outbound.gap_per_byte, clock),
        }
    }

    /// Returns the next cycle in which a beat may be chosen, read, or leave.
    #[inline]
    pub fn wake(&self) -> Cycle {
        if self.chosen.iter().any(Option::is_some) {
            return Cycle::ZERO;
        }
        let of = |engine: &Engine| engine.wake().min(engine.beats.front().map_or(Cycle::NEVER, |beat| beat.at));
        of(&self.engines[0]).min(of(&self.engines[1]))
    }

    /// Queues a command at an engine, which chooses its first beat in cycle `now` at the earliest.
    pub fn push(&mut self, engine: usize, now: Cycle, issued: Issued) {
        let engine = &mut self.engines[engine];
        match &mut engine.lanes {
            Some(lanes) => lanes.push(now, issued),
            None => engine.commands.push_back((now, issued)),
        }
    }

    /// Returns the beat at the output of an engine in cycle `now`.
    #[inline]
    pub fn output(&self, engine: usize, now: Cycle) -> Option<Output> {
        self.engines[engine].output(now, self.beat)
    }

    /// Removes the beat from the output of an engine in cycle `now`.
    pub fn leave(&mut self, engine: usize, now: Cycle, output: &Output) {
        self.engines[engine].leave(now, output);
    }

    /// Reads the chosen beats, and chooses the next ones, in cycle `now`. `gives` returns true if a memory grants the
    /// resources for a beat. Returns the tenant of a packet whose last beat is read.
    pub fn step(&mut self, now: Cycle, mut gives: impl FnMut(u32, Need) -> bool) -> Option<u32> {
        let mut has_read = None;
        for (index, engine) in self.engines.iter_mut().enumerate() {
            let Some(Chosen { address, is_first, is_last, completes, .. }) = self.chosen[index] else { continue };
            if gives(address, Need::Now) {
                engine.beats.push_back(Beat { at: now + self.read_cycles, is_first, is_last });
                has_read = has_read.or(completes.filter(|_| index == OUTBOUND));
                self.chosen[index] = None;
            }
        }
        for engine in &mut self.engines {
            if let (Some(lanes), true) = (&mut engine.lanes, engine.commands.is_empty()) {
                engine.commands.extend(lanes.next(now));
            }
        }
        let waiting = self.chosen.map(|chosen| chosen.map(|chosen| chosen.port));
        let asks = [0, 1].map(|index| {
            let wants = waiting[index].is_none() && self.engines[index].wants(now);
            wants.then(|| self.port(self.engines[index].address(self.beat)))
        });
        for (index, port) in asks.into_iter().enumerate() {
            let Some(port) = port.filter(|port| !waiting.contains(&Some(*port))) else { continue };
            let requests = u64::from(asks[0] == Some(port)) | u64::from(asks[1] == Some(port)) << 1;
            let arbiter = &mut self.arbiters[port];
            if arbiter.choice(requests) == Some(index as u32) {
                arbiter.grant(index as u32);
                self.choose(index, port, now, &mut gives);
                // One grant per port and cycle.
                if requests == 0b11 {
                    break;
                }
            }
        }
        has_read
    }

    /// Returns the index of the read port at an address; the L1 ports follow the others, by cluster.
    fn port(&self, address: u32) -> usize {
        match Arena::place(address) {
            Some(Place::L1(cluster)) if L1_PORTS + usize::from(cluster) < self.arbiters.len() => {
                L1_PORTS + usize::from(cluster)
            }
            Some(Place::Handler) => 0,
            _ => 1,
        }
    }

    fn choose(&mut self, choice: usize, port: usize, now: Cycle, mut gives: impl FnMut(u32, Need) -> bool) {
        let engine = &mut self.engines[choice];
        let Some((_, issued)) = engine.commands.front().copied() else { return };
        let data = issued.range();
        let all = beats(data, self.beat);
        if engine.left == 0 {
            (engine.next, engine.left) = (engine.address(self.beat), all);
            if choice == OUTBOUND {
                self.rate.take(now, data.size);
            }
        }
        let address = engine.next;
        if !gives(address, Need::Next) {
            return;
        }
        let (is_first, is_last) = (engine.left == all, engine.left == 1);
        engine.next = engine.next.wrapping_add(self.beat);
        engine.left -= 1;
        engine.taken += 1;
        if is_first {
            engine.sending.push_back(issued);
        }
        if is_last {
            engine.commands.pop_front();
            engine.from = now + 1_u64;
            let is_l2 = usize::from(data.address >= Arena::start(Place::Handler));
            if choice == OUTBOUND {
                engine.turned = engine.from + self.turns[is_l2];
                engine.memory = memory(&issued);
                engine.from = engine.from.max(self.rate.free());
            } else {
                engine.from += self.gaps[is_l2];
            }
        }
        let completes = (is_last && issued.completes()).then_some(issued.tenant);
        self.chosen[choice] = Some(Chosen { port, address, is_first, is_last, completes });
    }
}

impl Output {
    /// Returns true if a command for a card leaves the unit with this beat: a packet with its last data, a copy to the
    /// host with its first beat.
    pub fn leaves_for_card(&self) -> bool {
        match self.issued.command {
            Command::Card { through: Through::OffCluster, .. } => self.is_first,
            Command::Card { through: Through::Outbound, .. } => self.ends,
            _ => false,
        }
    }
}

/// Number of ports other than those of L1: L2 handler memory, and the packet buffer, which shares its port with program
/// memory.
const L1_PORTS: usize = 2;

/// Returns the memory from which a command reads its data.
fn memory(issued: &Issued) -> Option<Place> {
    Arena::place(issued.range().address)
}

/// Returns the number of beats of a range: the aligned words of `width` bytes that it touches, at least one.
pub fn beats(range: Range, width: u32) -> u32 {
    let last = range.address.wrapping_add(range.size.max(1) - 1) / width;
    last.wrapping_sub(range.address / width) + 1
}

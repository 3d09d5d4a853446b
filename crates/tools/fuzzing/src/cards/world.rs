// SPDX-License-Identifier: Apache-2.0
//! Surroundings of the cards: a network, and hosts whose memory is accessible only in the ranges named by the program.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use abi::portals::Handle;
use net::Latency;
use nic::testing::{Bench, BenchPorts, Surroundings};
use nic::{CardModel, MemoryFault, Nic, Notice, Packet, Slice};
use sim::Time;

/// Start of a host's memory, and its size in bytes.
pub const START: u64 = 0x10_0000;
pub const BYTES: usize = 64 << 10;

/// Range of host memory named by a call.
#[derive(Clone, Copy, Debug)]
struct Named {
    start: u64,
    length: u64,
    /// Object that uses it; `None` for the duration of one call.
    holder: Option<Handle>,
}

/// Process on a node.
#[derive(Debug)]
pub struct Host {
    pub memory: Vec<u8>,
    named: Vec<Named>,
    /// Set after the end of the process.
    pub dead: bool,
}

impl Host {
    /// Permits the card to access this range while `holder` exists or a message to it is in flight.
    pub fn name(&mut self, start: u64, length: u64, holder: Option<Handle>) {
        self.named.push(Named { start, length, holder });
    }

    /// Removes the ranges named only for a call.
    pub fn end_call(&mut self) {
        self.named.retain(|named| named.holder.is_some());
    }

    fn touch(&self, addr: u64, len: usize) -> Result<std::ops::Range<usize>, MemoryFault> {
        let fault = MemoryFault { addr, len: len as u64 };
        let at = addr.checked_sub(START).filter(|_| !self.dead).ok_or(fault)?;
        let end = at.checked_add(len as u64).filter(|end| *end <= BYTES as u64).ok_or(fault)?;
        let within = |named: &Named| {
            addr.checked_sub(named.start).is_some_and(|at| at.saturating_add(len as u64) <= named.length)
        };
        assert!(len == 0 || self.named.iter().any(within), "{len} bytes at {addr:#x} are not the card's to touch");
        Ok(at as usize..end as usize)
    }
}

/// Surroundings of the cards.
pub struct Around {
    network: Latency,
    pub hosts: Vec<Host>,
    /// Ordered digest of all externally visible effects.
    seen: DefaultHasher,
    transmitted: u64,
}

/// Cards, hosts, and messages in flight.
pub struct World {
    pub bench: Bench<Around>,
    /// Numbers of injected messages, packets and bytes.
    injected: [u64; 3],
}

impl World {
    pub fn new(machine: &Rc<CardModel>, nodes: u32) -> World {
        let host =
            || Host { memory: (0..BYTES).map(|at| (at * 7 % 251) as u8).collect(), named: Vec::new(), dead: false };
        let around = Around {
            network: Latency::new(&machine.network, nodes as usize).expect("a network of so few nodes"),
            hosts: (0..nodes).map(|_| host()).collect(),
            seen: DefaultHasher::new(),
            transmitted: 0,
        };
        World { bench: Bench::new(machine, nodes, 7, around), injected: [0; 3] }
    }

    /// Returns the host of a node.
    pub fn host(&mut self, node: usize) -> &mut Host {
        &mut self.bench.around.hosts[node]
    }

    /// Runs an action of a card.
    pub fn act<R>(&mut self, node: usize, act: impl FnOnce(&mut Nic, &mut BenchPorts<'_, Around>) -> R) -> R {
        let result = self.bench.act(node, act);
        self.host(node).end_call();
        result
    }

    /// Returns the id of the next injected message.
    pub fn foreign_id(&self) -> u64 {
        let [messages, ..] = self.injected;
        u64::MAX - messages
    }

    /// Delivers an injected packet to its card.
    pub fn inject(&mut self, packet: Packet) {
        let counts = [packet.is_header().into(), 1, packet.data.len() as u64];
        self.injected.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.bench.arrive(self.bench.now, packet);
    }

    /// Handles at most `most` events. Returns true if nothing is left to do. CPUs complete the work of cards at once.
    pub fn run(&mut self, most: usize) -> bool {
        self.bench.around.hosts.iter_mut().for_each(Host::end_call);
        for _ in 0..most {
            let worked = self.bench.step() || (0..self.bench.cards.len()).any(|node| self.bench.complete(node));
            if !worked {
                self.forget_dead();
                return true;
            }
        }
        false
    }

    /// Removes ranges without an object while nothing is in flight: further accesses are errors.
    fn forget_dead(&mut self) {
        for (card, host) in self.bench.cards.iter_mut().zip(&mut self.bench.around.hosts) {
            host.named.retain(|named| named.holder.is_some_and(|holder| card.ni_handle(holder).is_ok()));
        }
    }

    /// Checks the invariants when nothing is left to do.
    pub fn check_counts(&self) {
        let stats: Vec<_> = self.bench.cards.iter().map(Nic::stats).collect();
        let sums = |count: fn(&nic::Stats) -> u64| stats.iter().map(count).sum::<u64>();
        let ([messages, packets, bytes], transmitted) = (self.injected, self.bench.around.transmitted);
        assert_eq!(sums(|stats| stats.counts.packets_sent), transmitted, "packets sent");
        assert_eq!(sums(|stats| stats.counts.packets_received), transmitted + packets, "packets received");
        assert_eq!(sums(|stats| stats.counts.bytes_sent) + bytes, sums(|stats| stats.counts.bytes_received), "bytes");
        assert_eq!(
            sums(|stats| stats.counts.messages_sent) + messages,
            sums(|stats| stats.counts.messages_received),
            "messages"
        );
    }

    /// Returns the digest of all effects.
    pub fn digest(&self) -> u64 {
        let mut all = self.bench.around.seen.clone();
        self.bench.now.hash(&mut all);
        self.bench.around.hosts.iter().for_each(|host| host.memory.hash(&mut all));
        all.finish()
    }
}

impl Surroundings for Around {
    fn read(&mut self, node: usize, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let host = &self.hosts[node];
        let range = host.touch(addr, out.len())?;
        out.copy_from_slice(&host.memory[range]);
        Ok(())
    }

    fn write(&mut self, now: Time, node: usize, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let host = &mut self.hosts[node];
        let range = host.touch(addr, bytes.len())?;
        (now, addr, bytes).hash(&mut self.seen);
        host.memory[range].copy_from_slice(bytes);
        Ok(())
    }

    fn latency(&self, from: usize, to: usize) -> Option<Time> {
        assert!(to < self.network.nodes(), "a packet for node {to}, which does not exist");
        Some(self.network.of_packet(from, to))
    }

    fn transmitted(&mut self, _: Time, depart: Time, packet: &Packet) {
        (depart, packet.header.target, packet.offset, &packet.data).hash(&mut self.seen);
        self.transmitted += 1;
    }

    fn notified(&mut self, now: Time, _: usize, notice: Notice) {
        (now, format!("{notice:?}")).hash(&mut self.seen);
    }

    fn warned(&mut self, now: Time, _: usize, message: String) {
        (now, message).hash(&mut self.seen);
    }

    fn sliced(&mut self, _: usize, slice: Slice<'_>) {
        (slice.start, slice.end, slice.name).hash(&mut self.seen);
    }
}

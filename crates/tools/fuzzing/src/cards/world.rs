// SPDX-License-Identifier: Apache-2.0
//! The surroundings of the cards: a network, and hosts whose memory may be accessed only where the program has named
//! it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use abi::portals::Handle;
use machine::Machine;
use net::Latency;
use nic::testing::{Bench, BenchPorts, Surroundings};
use nic::{MemoryFault, Nic, Notice, Packet, Slice};
use sim::Time;

/// The start of a host's memory, and its size in bytes.
pub const START: u64 = 0x10_0000;
pub const BYTES: usize = 64 << 10;

/// A range of host memory that a call has named.
#[derive(Clone, Copy, Debug)]
struct Named {
    start: u64,
    length: u64,
    /// The object that uses it; `None` for the duration of one call.
    holder: Option<Handle>,
}

/// The process on a node.
#[derive(Debug)]
pub struct Host {
    pub memory: Vec<u8>,
    named: Vec<Named>,
    /// Whether the process has ended.
    pub dead: bool,
}

impl Host {
    /// Permits the card to access this range, for as long as `holder` exists or a message to it is in flight.
    pub fn name(&mut self, start: u64, length: u64, holder: Option<Handle>) {
        self.named.push(Named { start, length, holder });
    }

    /// Removes the ranges that were named only for a call.
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

/// The surroundings of the cards.
pub struct Around {
    network: Latency,
    pub hosts: Vec<Host>,
    /// A digest of everything that is visible from outside, in its order.
    seen: DefaultHasher,
    transmitted: u64,
}

/// The cards, their hosts, and the messages in flight.
pub struct World {
    pub bench: Bench<Around>,
    /// The numbers of messages, packets and bytes that no card has sent.
    injected: [u64; 3],
}

impl World {
    pub fn new(machine: &Rc<Machine>, nodes: u32) -> World {
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

    /// The host of a node.
    pub fn host(&mut self, node: usize) -> &mut Host {
        &mut self.bench.around.hosts[node]
    }

    /// Lets a card act.
    pub fn act<R>(&mut self, node: usize, act: impl FnOnce(&mut Nic, &mut BenchPorts<'_, Around>) -> R) -> R {
        let result = self.bench.act(node, act);
        self.host(node).end_call();
        result
    }

    /// The number of the next message that no card has sent.
    pub fn foreign_id(&self) -> u64 {
        let [messages, ..] = self.injected;
        u64::MAX - messages
    }

    /// Delivers a packet to its card.
    pub fn inject(&mut self, packet: Packet) {
        let counts = [packet.is_header().into(), 1, packet.data.len() as u64];
        self.injected.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.bench.arrive(self.bench.now, packet);
    }

    /// Handles at most `most` events. Returns whether nothing is left to do. The CPUs complete the work of cards at
    /// once.
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

    /// Removes ranges that no object uses, when nothing is in flight: they must not be accessed any more.
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
        assert_eq!(sums(|stats| stats.packets_sent), transmitted, "packets sent");
        assert_eq!(sums(|stats| stats.packets_received), transmitted + packets, "packets received");
        assert_eq!(sums(|stats| stats.bytes_sent) + bytes, sums(|stats| stats.bytes_received), "bytes");
        assert_eq!(sums(|stats| stats.messages_sent) + messages, sums(|stats| stats.messages_received), "messages");
    }

    /// The digest of everything that has happened.
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

//! What cards see around them: a queue of events, a network, and hosts whose memory may be touched only where the program
//! has named it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use abi::portals::Handle;
use machine::Machine;
use net::Network;
use nic::{Card, CardEvent, MemoryFault, Notice, Packet, Ports, Slice};
use sim::{EventQueue, Time};

/// Where a host's memory starts, and its bytes.
pub const START: u64 = 0x10_0000;
pub const BYTES: usize = 64 << 10;

/// A range of host memory that a call has named.
#[derive(Clone, Copy, Debug)]
struct Named {
    start: u64,
    length: u64,
    /// The object that holds it; `None` for the length of one call.
    holder: Option<Handle>,
}

/// A process.
#[derive(Debug)]
pub struct Host {
    pub memory: Vec<u8>,
    named: Vec<Named>,
    /// Whether the process has ended.
    pub dead: bool,
}

impl Host {
    /// From now on the card may touch this range, for as long as `holder` lives or a message to it is under way.
    pub fn name(&mut self, start: u64, length: u64, holder: Option<Handle>) {
        self.named.push(Named { start, length, holder });
    }

    /// Forgets what was named only for a call.
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

/// Cards, their hosts, and what is under way.
pub struct World {
    network: Network,
    queue: EventQueue<(u32, CardEvent)>,
    pub cards: Vec<Card>,
    pub hosts: Vec<Host>,
    pub now: Time,
    /// Everything that can be seen from outside, in its order.
    seen: DefaultHasher,
    transmitted: u64,
    /// Messages, packets and bytes that no card has sent.
    injected: [u64; 3],
}

impl World {
    pub fn new(machine: &Rc<Machine>, nodes: u32) -> World {
        let host =
            || Host { memory: (0..BYTES).map(|at| (at * 7 % 251) as u8).collect(), named: Vec::new(), dead: false };
        World {
            network: Network::new(&machine.network, nodes as usize).expect("a network of so few nodes"),
            queue: EventQueue::default(),
            cards: (0..nodes).map(|node| Card::new(machine.clone(), node, nodes, 7)).collect(),
            hosts: (0..nodes).map(|_| host()).collect(),
            now: Time::ZERO,
            seen: DefaultHasher::new(),
            transmitted: 0,
            injected: [0; 3],
        }
    }

    /// Lets a card act.
    pub fn act<R>(&mut self, node: usize, act: impl FnOnce(&mut Card, &mut WorldPorts<'_>) -> R) -> R {
        let World { network, queue, cards, hosts, now, seen, transmitted, .. } = self;
        let host = &mut hosts[node];
        let mut ports = WorldPorts { now: *now, node, network, queue, host, seen, transmitted };
        let result = act(&mut cards[node], &mut ports);
        host.end_call();
        result
    }

    /// The number of the next message that no card has sent.
    pub fn foreign_id(&self) -> u64 {
        let [messages, ..] = self.injected;
        u64::MAX - messages
    }

    /// Puts a packet before a card.
    pub fn inject(&mut self, node: usize, packet: Packet) {
        let counts = [packet.is_header().into(), 1, packet.data.len() as u64];
        self.injected.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.queue.push(self.now, (node as u32, CardEvent::Arrive(Box::new(packet))));
    }

    /// Handles at most `most` events; whether nothing is left to do. The CPUs do at once what cards leave to them.
    pub fn run(&mut self, most: usize) -> bool {
        for _ in 0..most {
            match self.queue.pop() {
                Some((at, (node, event))) => {
                    assert!(at >= self.now, "an event of {at:?} at {:?}", self.now);
                    self.now = at;
                    self.act(node as usize, |card, ports| card.handle(event, ports));
                }
                None => match self.cards.iter().position(|card| card.next_completion().is_some()) {
                    Some(node) => self.complete(node),
                    None => {
                        self.forget_dead();
                        return true;
                    }
                },
            }
        }
        false
    }

    /// Lets a CPU do a piece of work of its card.
    pub fn complete(&mut self, node: usize) {
        self.act(node, |card, ports| card.process_completion(ports));
    }

    /// While nothing is under way, what no object holds is not to be touched any more.
    fn forget_dead(&mut self) {
        for (card, host) in self.cards.iter_mut().zip(&mut self.hosts) {
            host.named.retain(|named| named.holder.is_some_and(|holder| card.ni_handle(holder).is_ok()));
        }
    }

    /// What must hold when nothing is left to do.
    pub fn check_counts(&self) {
        let stats: Vec<_> = self.cards.iter().map(Card::stats).collect();
        let sums = |count: fn(&nic::Stats) -> u64| stats.iter().map(count).sum::<u64>();
        let [messages, packets, bytes] = self.injected;
        assert_eq!(sums(|stats| stats.packets_sent), self.transmitted, "packets sent");
        assert_eq!(sums(|stats| stats.packets_received), self.transmitted + packets, "packets received");
        assert_eq!(sums(|stats| stats.bytes_sent) + bytes, sums(|stats| stats.bytes_received), "bytes");
        assert_eq!(sums(|stats| stats.messages_sent) + messages, sums(|stats| stats.messages_received), "messages");
    }

    /// Stands for everything that has happened.
    pub fn digest(&self) -> u64 {
        let mut all = self.seen.clone();
        self.now.hash(&mut all);
        self.hosts.iter().for_each(|host| host.memory.hash(&mut all));
        all.finish()
    }
}

/// What one card sees.
pub struct WorldPorts<'a> {
    now: Time,
    node: usize,
    network: &'a Network,
    queue: &'a mut EventQueue<(u32, CardEvent)>,
    host: &'a mut Host,
    seen: &'a mut DefaultHasher,
    transmitted: &'a mut u64,
}

impl Ports for WorldPorts<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn schedule(&mut self, at: Time, event: CardEvent) {
        assert!(at >= self.now, "an event for {at:?} at {:?}", self.now);
        self.queue.push(at, (self.node as u32, event));
    }

    fn transmit(&mut self, depart: Time, packet: Box<Packet>) {
        let target = packet.header.target;
        assert!(depart >= self.now && (target as usize) < self.network.nodes());
        (depart, target, packet.offset, &packet.data).hash(self.seen);
        *self.transmitted += 1;
        let arrival = depart + self.network.latency(self.node, target as usize);
        self.queue.push(arrival, (target, CardEvent::Arrive(packet)));
    }

    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let range = self.host.touch(addr, out.len())?;
        out.copy_from_slice(&self.host.memory[range]);
        Ok(())
    }

    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let range = self.host.touch(addr, bytes.len())?;
        (self.now, addr, bytes).hash(self.seen);
        self.host.memory[range].copy_from_slice(bytes);
        Ok(())
    }

    fn notify(&mut self, notice: Notice) {
        (self.now, format!("{notice:?}")).hash(self.seen);
    }

    fn warn(&mut self, message: String) {
        (self.now, message).hash(self.seen);
    }

    fn tracing(&self) -> bool {
        true
    }

    fn slice(&mut self, slice: Slice<'_>) {
        assert!(slice.start <= slice.end, "{slice:?} ends before it starts");
        (slice.start, slice.end, slice.name).hash(self.seen);
    }
}

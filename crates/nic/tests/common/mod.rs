//! Cards in one process, with memories of their own and a network of constant latency.
#![allow(dead_code)] // no test uses everything

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use abi::portals::{self as ptl, AckReq, Handle, List, Process, ni};
use nic::{Card, CardEvent, MemoryFault, NewEntry, Notice, Packet, Ports, Slice, Target};
use sim::{EventQueue, Time};

/// Latency of the network.
const LATENCY: Time = Time::from_ns(100);

/// What an event belongs to.
type Due = (usize, CardEvent);

/// Cards, and what is around them.
pub struct Rig {
    pub cards: Vec<Card>,
    pub around: Around,
    /// The logical, matching interface that every card has first.
    pub ni: Handle,
}

/// What cards see of the world.
#[derive(Default)]
pub struct Around {
    pub now: Time,
    /// From this address on nothing can be read.
    pub missing: Option<u64>,
    /// Bytes of the nodes' memories, by node and address; what is not there is 0.
    pub memory: BTreeMap<(usize, u64), u8>,
    pub warnings: Vec<String>,
    /// When the first byte of each packet left, its bytes, and its offset in its message.
    pub departures: Vec<(Time, usize, u64)>,
    /// Most events that have waited at one time.
    pub most_events: usize,
    queue: EventQueue<Due>,
}

/// What the card of one node sees.
pub struct View<'a> {
    node: usize,
    around: &'a mut Around,
}

impl Ports for View<'_> {
    fn now(&self) -> Time {
        self.around.now
    }

    fn schedule(&mut self, at: Time, event: CardEvent) {
        self.around.push(at, (self.node, event));
    }

    fn transmit(&mut self, depart: Time, packet: Box<Packet>) {
        self.around.departures.push((depart, packet.data.len(), packet.offset));
        let target = packet.header.target as usize;
        self.around.push(depart + LATENCY, (target, CardEvent::Arrive(packet)));
    }

    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let last = last_byte(addr, out.len())?;
        if self.around.missing.is_some_and(|missing| last >= missing) {
            return Err(MemoryFault { addr, len: out.len() as u64 });
        }
        for (byte, at) in out.iter_mut().zip(0..) {
            *byte = self.around.memory.get(&(self.node, addr + at)).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        last_byte(addr, bytes.len())?;
        let places = (0..).map(|byte| (self.node, addr.wrapping_add(byte)));
        self.around.memory.extend(places.zip(bytes.iter().copied()));
        Ok(())
    }

    fn notify(&mut self, _: Notice) {}

    fn warn(&mut self, message: String) {
        self.around.warnings.push(message);
    }

    fn tracing(&self) -> bool {
        false
    }

    fn slice(&mut self, _: Slice<'_>) {}
}

/// The address of the last byte of an access to memory.
fn last_byte(addr: u64, len: usize) -> Result<u64, MemoryFault> {
    addr.checked_add((len as u64).saturating_sub(1)).ok_or(MemoryFault { addr, len: len as u64 })
}

impl Around {
    fn push(&mut self, at: Time, due: Due) {
        self.queue.push(at, due);
        self.most_events = self.most_events.max(self.queue.len());
    }

    pub fn fill(&mut self, node: usize, start: u64, bytes: u64) {
        self.memory.extend((start..start + bytes).map(|at| ((node, at), at as u8 | 1)));
    }
}

impl Rig {
    /// Cards of the default machine with these parameters changed, each with an interface and portal table entry 0.
    pub fn new(nodes: usize, settings: &[&str]) -> Rig {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let machine = Rc::new(machine::Machine::load("sc17-int", &[folder], &settings).unwrap());
        let cards = (0..nodes).map(|node| Card::new(machine.clone(), node as u32, nodes as u32, 0)).collect();
        let mut rig = Rig { cards, around: Around::default(), ni: ptl::INVALID_HANDLE };
        for node in 0..nodes {
            rig.ni = rig.open(node);
        }
        rig
    }

    /// Opens the interface of a node; its portal table entry 0 has no queue.
    pub fn open(&mut self, node: usize) -> Handle {
        let map: Rc<[Process]> =
            (0..self.cards.len() as u32).map(|nid| Process { nid, pid: nic::api::DEFAULT_PID }).collect();
        let card = &mut self.cards[node];
        let (ni, _) = card.ni_init(ptl::IFACE_DEFAULT, ni::MATCHING | ni::LOGICAL, ptl::ID_ANY, None).unwrap();
        card.set_map(ni, map).unwrap();
        assert_eq!(card.pt_alloc(ni, 0, ptl::EQ_NONE, 0), Ok(0));
        ni
    }

    /// Has a card do something.
    pub fn act<R>(&mut self, node: usize, act: impl FnOnce(&mut Card, &mut View<'_>) -> R) -> R {
        act(&mut self.cards[node], &mut View { node, around: &mut self.around })
    }

    /// Handles all events up to `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.around.queue.peek_time().is_some_and(|at| at <= end) {
            let Some((at, (node, event))) = self.around.queue.pop() else { return };
            self.around.now = at;
            self.act(node, |card, ports| card.handle(event, ports));
        }
        self.around.now = self.around.now.max(end);
    }

    /// Handles all events; the time of the last.
    pub fn run(&mut self) -> Time {
        while let Some(at) = self.around.queue.peek_time() {
            self.run_until(at);
        }
        self.around.now
    }

    /// An entry that takes everything, at the end of the priority list of portal table entry 0.
    pub fn append(&mut self, node: usize, ni: Handle, start: u64, length: u64, options: u32, ct: Handle) -> Handle {
        self.append_iovec(node, ni, start, length, options, ct).unwrap()
    }

    /// The same when it may be refused.
    pub fn append_iovec(
        &mut self,
        node: usize,
        ni: Handle,
        start: u64,
        length: u64,
        options: u32,
        ct: Handle,
    ) -> Result<Handle, ptl::Rc> {
        let options = ptl::me::OP_PUT | ptl::me::OP_GET | options;
        let le = ptl::Le { start, length, ct_handle: ct, uid: ptl::ID_ANY, options, pad: 0 };
        let match_id = Process { nid: ptl::ID_ANY, pid: ptl::ID_ANY };
        let me = ptl::Me { le, match_id, ..ptl::Me::default() };
        let new = NewEntry { me, matching: true, pt_index: 0, user_ptr: 0 };
        self.act(node, |card, ports| card.append(ni, new, List::Priority as u64, None, ports))
    }

    /// A memory descriptor that counts what is acknowledged or replied.
    pub fn bind(&mut self, node: usize, start: u64, length: u64, ct: Handle) -> Handle {
        let options = ptl::md::EVENT_CT_ACK | ptl::md::EVENT_CT_REPLY;
        let md = ptl::Md { start, length, options, eq_handle: ptl::EQ_NONE, ct_handle: ct, ..ptl::Md::default() };
        let ni = self.ni;
        self.act(node, |card, ports| card.md_bind(ni, md, ports)).unwrap()
    }

    /// A put of the first bytes of `md` to an offset at node `to`, acknowledged on its counter if it has one.
    pub fn put(&mut self, node: usize, md: Handle, length: u64, to: u32, offset: u64, ack: AckReq) {
        let target = target(to, offset);
        self.act(node, |card, ports| {
            let transfer = card.put(md, 0, length, ack as u64, target).unwrap();
            card.start(transfer, ports.now(), ports);
        });
    }

    /// A get of as many bytes to the start of `md`.
    pub fn get(&mut self, node: usize, md: Handle, length: u64, from: u32, offset: u64) {
        let target = target(from, offset);
        self.act(node, |card, ports| {
            let transfer = card.get(md, 0, length, target).unwrap();
            card.start(transfer, ports.now(), ports);
        });
    }

    /// Success and failure of a counter.
    pub fn count(&mut self, node: usize, ct: Handle) -> (u64, u64) {
        let value = self.cards[node].ct_value(ct).unwrap();
        (value.success, value.failure)
    }

    pub fn counter(&mut self, node: usize, ni: Handle) -> Handle {
        self.cards[node].ct_alloc(ni).unwrap()
    }
}

/// Portal table entry 0 of a node.
pub fn target(nid: u32, remote_offset: u64) -> Target {
    let process = Process { nid, pid: 0 };
    Target { process, pt_index: 0, match_bits: 0, remote_offset, user_ptr: 0, hdr_data: 0 }
}

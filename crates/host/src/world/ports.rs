use net::Network;
use nic::{CardEvent, MemoryFault, Notice, Packet, Ports, Slice, Timeline};
use sim::{EventQueue, Time};

use super::{Event, Warnings};
use crate::job::Job;

/// What the card of `node` sees of the world.
pub struct WorldPorts<'a> {
    pub now: Time,
    pub node: usize,
    /// Whether the node's process has ended: its memory is gone.
    pub dead: bool,
    pub queue: &'a mut EventQueue<Event>,
    pub network: &'a Network,
    pub job: &'a mut Job,
    pub notices: &'a mut Vec<Notice>,
    pub timeline: &'a mut Timeline,
    pub warnings: &'a mut Warnings,
}

impl Ports for WorldPorts<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn schedule(&mut self, at: Time, event: CardEvent) {
        self.queue.push(at, Event::Card(self.node as u32, event));
    }

    fn transmit(&mut self, depart: Time, packet: Box<Packet>) {
        let target = packet.header.target;
        let arrival = depart + self.network.latency(self.node, target as usize);
        self.queue.push(arrival, Event::Card(target, CardEvent::Arrive(packet)));
    }

    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr, len: out.len() as u64 };
        if self.dead {
            return Err(fault);
        }
        self.job.read(self.node, addr, out).map_err(|_| fault)
    }

    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr, len: bytes.len() as u64 };
        if self.dead {
            return Err(fault);
        }
        self.job.write(self.node, addr, bytes).map_err(|_| fault)
    }

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn warn(&mut self, message: String) {
        self.warnings.add(message);
    }

    fn tracing(&self) -> bool {
        self.timeline.is_on()
    }

    fn slice(&mut self, slice: Slice<'_>) {
        self.timeline.slice(self.node, slice);
    }
}

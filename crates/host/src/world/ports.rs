use net::{Injection, Interconnect};
use nic::{CardEvent, Departure, MemoryFault, Notice, Packet, Ports, Slice, Timeline};
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
    pub interconnect: &'a mut Interconnect,
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

    fn inject(&mut self, target: u32, bytes: u64, gap: Time) -> Option<Departure> {
        let packet = Injection { from: self.node as u32, to: target, bytes, gap };
        let net::Departure { ticket, start, end } = self.interconnect.inject(self.now, packet)?;
        Some(Departure { ticket, start, end })
    }

    fn transmit(&mut self, departure: Departure, packet: Box<Packet>) {
        let target = packet.header.target;
        let Departure { ticket, start, end } = departure;
        let arrival = self.interconnect.transmit(self.node as u32, target, net::Departure { ticket, start, end });
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

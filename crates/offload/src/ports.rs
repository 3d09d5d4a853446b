use net::{Injection, Interconnect};
use nic::{CardEvent, Departure, MemoryFault, Notice, Packet, Ports, Slice, Timeline};
use sim::{EventQueue, Time};

use crate::memory::HostMemory;
use crate::world::Event;

/// What the card of `node` sees of the world.
pub(crate) struct WorldPorts<'a> {
    pub now: Time,
    pub node: u32,
    pub queue: &'a mut EventQueue<Event>,
    pub interconnect: &'a mut Interconnect,
    pub memory: &'a mut HostMemory,
    pub notices: &'a mut Vec<Notice>,
    pub timeline: &'a mut Timeline,
    /// The first thing that went wrong in a handler.
    pub fault: &'a mut Option<(Time, String)>,
}

impl Ports for WorldPorts<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn schedule(&mut self, at: Time, event: CardEvent) {
        self.queue.push(at, Event::Card(self.node, event));
    }

    fn inject(&mut self, target: u32, bytes: u64, gap: Time) -> Option<Departure> {
        let packet = Injection { from: self.node, to: target, bytes, gap };
        let net::Departure { ticket, start, end } = self.interconnect.inject(self.now, packet)?;
        Some(Departure { ticket, start, end })
    }

    fn transmit(&mut self, departure: Departure, packet: Box<Packet>) {
        let target = packet.header.target;
        let Departure { ticket, start, end } = departure;
        let arrival = self.interconnect.transmit(self.node, target, net::Departure { ticket, start, end });
        self.queue.push(arrival, Event::Card(target, CardEvent::Arrive(packet)));
    }

    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.memory.read(self.node, addr, out);
        Ok(())
    }

    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.memory.write(self.node, addr, bytes);
        Ok(())
    }

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn warn(&mut self, message: String) {
        // All memory is there, so only handlers can go wrong.
        self.fault.get_or_insert((self.now, message));
    }

    fn tracing(&self) -> bool {
        self.timeline.is_on()
    }

    fn slice(&mut self, slice: Slice<'_>) {
        self.timeline.slice(self.node as usize, slice);
    }
}

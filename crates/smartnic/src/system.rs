//! The unit with its NIC and its host, in one loop.

use std::rc::Rc;

use accel::pspin::command::Send;
use accel::pspin::cores::Cores;
use accel::pspin::her::{DriverEvent, Feedback, HpuId};
use accel::pspin::observe::Observer;
use accel::pspin::{Cycle, HostFault, Outside, Pspin};
use machine::Pspin as Config;
use sim::{Clock, Time};
use thiserror::Error;

use crate::host::{Host, HostMemory};
use crate::inbound::{Arrival, Done, Inbound};
use crate::report::Latencies;

/// A packet that has left for the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When its last byte was read.
    pub at: Cycle,
    /// The HPU whose handler sent it.
    pub hpu: HpuId,
    /// Where it goes.
    pub send: Send,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What came out of the unit and has not been taken.
struct Surroundings<H> {
    host: H,
    feedback: Vec<(Cycle, Feedback)>,
    sent: Vec<Sent>,
    events: Vec<(Cycle, DriverEvent)>,
}

impl<H: Host> Outside for Surroundings<H> {
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool {
        self.feedback.push((at, *feedback));
        true
    }

    fn raise(&mut self, at: Cycle, event: DriverEvent) {
        self.events.push((at, event));
    }

    fn send(&mut self, at: Cycle, hpu: HpuId, send: Send, packet: &[u8]) {
        self.sent.push(Sent { at, hpu, send, bytes: packet.to_vec() });
    }

    fn host_write(&mut self, at: Cycle, address: u64, data: &[u8]) -> Result<(), HostFault> {
        self.host.card_writes(at, address, data)
    }

    fn host_read(&mut self, at: Cycle, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        self.host.card_reads(at, address, data)
    }
}

/// The error of a run that does not end.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// Nothing will happen any more, but packets are inside.
    #[error("nothing happens after cycle {cycle}, but {inside} packets are in the unit: this is a defect of the model")]
    Stuck {
        /// The cycle.
        cycle: u64,
        /// The packets.
        inside: u64,
    },
}

/// A card: the unit, its inbound engine, and its host.
pub struct System<C, O = (), H = HostMemory> {
    unit: Pspin<C, O>,
    inbound: Inbound,
    outside: Surroundings<H>,
    /// From the first byte of a packet to its feedback, and from its request to its feedback.
    latencies: [Latencies; 2],
}

impl<C: Cores, O: Observer> System<C, O> {
    /// A card whose HPUs boot, with memory of the host of which nothing is registered.
    pub fn new(config: Rc<Config>, clock: Clock, cores: C, observer: O) -> System<C, O> {
        System::with_host(config, clock, cores, observer, HostMemory::default())
    }
}

impl<C: Cores, O: Observer, H: Host> System<C, O, H> {
    /// A card whose HPUs boot, at this host.
    pub fn with_host(config: Rc<Config>, clock: Clock, cores: C, observer: O, host: H) -> System<C, O, H> {
        let mut unit = Pspin::new(config.clone(), clock, cores, observer);
        unit.boot();
        let latencies = [Latencies::default(), Latencies::default()];
        let outside = Surroundings { host, feedback: Vec::new(), sent: Vec::new(), events: Vec::new() };
        System { unit, inbound: Inbound::new(config, clock), outside, latencies }
    }

    /// Lets the HPUs boot, before any packet, until all of them wait for their first task. Returns whether they do before
    /// cycle `until`.
    pub fn boot(&mut self, until: Cycle) -> bool {
        loop {
            let next = self.unit.next();
            if next >= until {
                return next == Cycle::NEVER;
            }
            self.unit.advance(next + 1_u64, &mut self.outside);
        }
    }

    /// The unit.
    pub fn unit(&mut self) -> &mut Pspin<C, O> {
        &mut self.unit
    }

    /// The inbound engine.
    pub fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// The host.
    pub fn host(&mut self) -> &mut H {
        &mut self.outside.host
    }

    /// A packet will arrive.
    pub fn push(&mut self, packet: Arrival) {
        self.inbound.push(packet, Time::ZERO);
    }

    /// A packet will arrive, and the one behind it no sooner than `gap` after the beginning of this one.
    pub fn push_apart(&mut self, packet: Arrival, gap: Time) {
        self.inbound.push(packet, gap);
    }

    /// Takes the packets that have left since the last time.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.outside.sent)
    }

    /// Takes what the driver was told since the last time.
    pub fn take_events(&mut self) -> Vec<(Cycle, DriverEvent)> {
        std::mem::take(&mut self.outside.events)
    }

    /// Times of packets: from their first byte to the feedback.
    pub fn packet_latencies(&self) -> &Latencies {
        &self.latencies[0]
    }

    /// Times of packets: from their request to the feedback.
    pub fn request_latencies(&self) -> &Latencies {
        &self.latencies[1]
    }

    /// Simulates the cycles before `until`, but no further than the end of the first in which something goes out; `done` is told
    /// about each packet that the unit is done with. Returns whether anything is left to do.
    ///
    /// # Errors
    /// [`RunError::Stuck`] when packets are inside and nothing will happen.
    pub fn advance(&mut self, until: Cycle, mut done: impl FnMut(Cycle, Done)) -> Result<bool, RunError> {
        let waits = self.inbound.step(&mut self.unit);
        let (now, next) = (self.unit.now(), self.unit.next());
        if next == Cycle::NEVER && (waits || self.inbound.is_idle()) {
            let (cycle, inside) = (now.0, self.inbound.inside() as u64);
            return if inside == 0 && !waits { Ok(false) } else { Err(RunError::Stuck { cycle, inside }) };
        }
        let retry = if waits { next.max(now) + 1_u64 } else { Cycle::NEVER };
        let next = self.inbound.next_after(now).min(retry);
        let known = self.outside.events.len();
        self.unit.advance(next.min(until), &mut self.outside);
        for (at, feedback) in self.outside.feedback.drain(..) {
            if let Some(packet) = self.inbound.feedback(&feedback) {
                self.latencies[0].add(at - packet.arrived);
                self.latencies[1].add(at - packet.submitted);
                done(at, packet);
            }
        }
        for (_, event) in &self.outside.events[known..] {
            if let DriverEvent::Idle { message, is_free: true, .. } = event {
                self.inbound.forget(*message);
            }
        }
        Ok(true)
    }
}

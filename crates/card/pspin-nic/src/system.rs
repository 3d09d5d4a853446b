// SPDX-License-Identifier: Apache-2.0
//! Main loop of the unit with its NIC and its host.

use std::rc::Rc;

use machine::Pspin as Config;
use pspin_unit::command::Send;
use pspin_unit::core::Hpus;
use pspin_unit::her::{DriverEvent, Feedback, HpuId, TaskOutcome};
use pspin_unit::observe::Observer;
use pspin_unit::{By, Cycle, HostFault, Outside, Port, Pspin, Unit};
use sim::{Clock, Time};
use thiserror::Error;

use crate::host::{Host, HostMemory};
use crate::inbound::{Arrival, Done, Inbound, Waits};
use crate::report::{Commands, DonePackets, Dropped, Flow, Latencies, Packets, Passed, Report, Throughput};
use crate::tenants::{Times, jain};
use crate::watch::Watch;

/// Packet sent to the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Cycle at which its last byte was read.
    pub at: Cycle,
    /// HPU whose handler sent it.
    pub hpu: HpuId,
    /// Destination and other parameters of the send.
    pub send: Send,
    /// Bytes of the packet.
    pub bytes: Vec<u8>,
}

/// Returns true if a beat may pass a port in a cycle.
type Readiness = Box<dyn Fn(Cycle, Port) -> bool>;

/// Outputs of the unit that the caller has not taken yet.
struct Surroundings<H> {
    host: H,
    is_ready: Option<Readiness>,
    feedback: Vec<(Cycle, Feedback)>,
    sent: Vec<Sent>,
    events: Vec<(Cycle, DriverEvent)>,
    /// Set when a program requests the end of the run.
    terminated: Option<RunError>,
    traffic: Traffic,
}

/// Traffic counts of the unit.
#[derive(Clone, Copy, Default)]
struct Traffic {
    /// Packets sent to the network.
    sent: Flow,
    /// Handlers' writes to host memory.
    written: Flow,
    /// Handlers' reads from host memory.
    read: Flow,
}

impl<H: Host> Outside for Surroundings<H> {
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool {
        if !self.is_ready(at, Port::Feedback) {
            return false;
        }
        self.feedback.push((at, *feedback));
        true
    }

    fn raise(&mut self, at: Cycle, event: DriverEvent) {
        if let DriverEvent::Terminated { hpu: HpuId { cluster, hpu } } = event {
            self.terminated.get_or_insert(RunError::Terminated { cluster, hpu, cycle: at.0 });
        }
        self.events.push((at, event));
    }

    fn is_ready(&self, at: Cycle, port: Port) -> bool {
        self.is_ready.as_ref().is_none_or(|is_ready| is_ready(at, port))
    }

    fn send(&mut self, at: Cycle, hpu: HpuId, send: Send, packet: &[u8]) {
        self.traffic.sent.pass(at.0, packet.len() as u64);
        self.sent.push(Sent { at, hpu, send, bytes: packet.to_vec() });
    }

    fn host_write(&mut self, at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault> {
        // The unit itself reports failures to the host.
        if by.is_some() {
            self.traffic.written.pass(at.0, data.len() as u64);
        }
        self.host.card_writes(at, by, address, data)
    }

    fn host_read(&mut self, at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        self.traffic.read.pass(at.0, data.len() as u64);
        self.host.card_reads(at, by, address, data)
    }
}

/// Error of a run that gets stuck or ends early.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// No further event is due, but packets are inside.
    #[error("nothing happens after cycle {cycle}, but {inside} packets are in the unit: this is a defect of the model")]
    Stuck {
        /// Cycle of the last event.
        cycle: u64,
        /// Number of packets inside.
        inside: u64,
    },
    /// A program requested the end of the run.
    #[error("the program ended the run with TERMINATE on HPU {hpu} of cluster {cluster} in cycle {cycle}")]
    Terminated {
        /// The cluster.
        cluster: u16,
        /// The HPU within the cluster.
        hpu: u16,
        /// The cycle of the store.
        cycle: u64,
    },
    /// The simulation of the hardware failed.
    #[error("{0}")]
    Hardware(String),
}

/// After the boot, time advances to a multiple of this number of cycles.
pub const BOOTED: u64 = 1_000;

/// Card: the unit, its inbound engine, and its host.
pub struct System<U, H = HostMemory> {
    unit: U,
    inbound: Inbound,
    outside: Surroundings<H>,
    /// Latencies from the first byte of a packet to its feedback.
    packet_latencies: Latencies,
    /// Latencies from the request of a packet to its feedback.
    request_latencies: Latencies,
    /// Times of each tenant's packets.
    times: Vec<Times>,
    /// Arrival cycle of the first packet, and cycle of the last feedback.
    first: Option<Cycle>,
    last: Cycle,
    /// Packets whose last handler returned.
    done: DonePackets,
    idle_resets: u64,
    /// Instructions executed before the first packet.
    boot_instructions: u64,
}

impl<O: Observer> System<Pspin<Hpus, O>> {
    /// Creates a card with the model of the unit, booting HPUs, and host memory with nothing registered.
    pub fn new(config: Rc<Config>, clock: Clock, cores: Hpus, observer: O) -> System<Pspin<Hpus, O>> {
        System::with_host(config, clock, cores, observer, HostMemory::default())
    }
}

impl<O: Observer, H: Host> System<Pspin<Hpus, O>, H> {
    /// Creates a card with the model of the unit, booting HPUs, and this host.
    pub fn with_host(config: Rc<Config>, clock: Clock, cores: Hpus, observer: O, host: H) -> System<Pspin<Hpus, O>, H> {
        let mut unit = Pspin::new(config.clone(), clock, cores, observer);
        unit.boot();
        System::around(unit, config, clock, host)
    }
}

impl<U: Unit, H: Host> System<U, H> {
    /// Creates a card with this unit, booting HPUs, and this host.
    pub fn around(unit: U, config: Rc<Config>, clock: Clock, host: H) -> System<U, H> {
        let outside = Surroundings {
            host,
            is_ready: None,
            feedback: Vec::new(),
            sent: Vec::new(),
            events: Vec::new(),
            terminated: None,
            traffic: Traffic::default(),
        };
        System {
            inbound: Inbound::new(config, clock),
            unit,
            outside,
            packet_latencies: Latencies::default(),
            request_latencies: Latencies::default(),
            times: Vec::new(),
            first: None,
            last: Cycle::ZERO,
            done: DonePackets::default(),
            idle_resets: 0,
            boot_instructions: 0,
        }
    }

    /// Boots the HPUs until all of them wait for their first task. Returns `false` if they do not before cycle `until`.
    /// Time then advances to a multiple of [`BOOTED`], so that units with different boot times get packets in the same
    /// cycles.
    pub fn boot(&mut self, until: Cycle) -> bool {
        loop {
            let next = self.unit.next();
            if next >= until {
                self.boot_instructions = self.unit.instructions();
                let has_booted = next == Cycle::NEVER;
                if has_booted {
                    self.pass(Cycle(self.unit.now().0.next_multiple_of(BOOTED)));
                }
                return has_booted;
            }
            self.unit.advance(next + 1_u64, &mut self.outside);
        }
    }

    /// Advances time to cycle `until`. The caller guarantees that no event is due before.
    pub fn pass(&mut self, until: Cycle) {
        self.unit.advance(until, &mut self.outside);
    }

    /// Returns the unit.
    pub fn unit(&mut self) -> &mut U {
        &mut self.unit
    }

    /// Returns the inbound engine.
    pub fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Returns the host.
    pub fn host(&mut self) -> &mut H {
        &mut self.outside.host
    }

    /// Applies back-pressure at the ports of NIC and host: `is_ready` returns the cycles in which a port is ready.
    pub fn hold(&mut self, is_ready: impl Fn(Cycle, Port) -> bool + 'static) {
        self.outside.is_ready = Some(Box::new(is_ready));
    }

    /// Queues an arriving packet.
    pub fn push(&mut self, packet: Arrival) {
        self.push_apart(packet, Time::ZERO);
    }

    /// Queues an arriving packet; the next one begins at least `gap` after the beginning of this one.
    pub fn push_apart(&mut self, packet: Arrival, gap: Time) {
        self.unit.prepare(&packet.context);
        self.inbound.push(packet, gap);
    }

    /// Takes the packets sent since the last call.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.outside.sent)
    }

    /// Takes the driver events since the last call.
    pub fn take_events(&mut self) -> Vec<(Cycle, DriverEvent)> {
        std::mem::take(&mut self.outside.events)
    }

    /// Returns packet latencies from the first byte to the feedback.
    pub fn packet_latencies(&self) -> &Latencies {
        &self.packet_latencies
    }

    /// Returns packet latencies from the request to the feedback.
    pub fn request_latencies(&self) -> &Latencies {
        &self.request_latencies
    }

    /// Simulates the cycles before `until`, but at most to the end of the first cycle with an output; calls `done` for
    /// each packet that the unit finishes. Returns true if work remains.
    ///
    /// # Errors
    /// [`RunError::Stuck`] when packets are inside and no event is due, [`RunError::Terminated`], and
    /// [`RunError::Hardware`].
    pub fn advance(&mut self, until: Cycle, mut done: impl FnMut(Cycle, Done)) -> Result<bool, RunError> {
        let waits = self.inbound.step(&mut self.unit);
        if let Some(reason) = self.unit.failure() {
            return Err(RunError::Hardware(reason.to_owned()));
        }
        let (now, next) = (self.unit.now(), self.unit.next());
        if next == Cycle::NEVER && self.inbound.next_after(now) == Cycle::NEVER {
            let (cycle, inside) = (now.0, self.inbound.inside() as u64);
            return if inside == 0 && waits == Waits::No { Ok(false) } else { Err(RunError::Stuck { cycle, inside }) };
        }
        let retry = match waits {
            Waits::No => Cycle::NEVER,
            Waits::Unit => next.max(now) + 1_u64,
            Waits::Cycle => now + 1_u64,
        };
        let next = self.inbound.next_after(now).min(retry);
        let known = self.outside.events.len();
        self.unit.advance(next.min(until), &mut self.outside);
        for (at, feedback) in self.outside.feedback.drain(..) {
            if let Some(packet) = self.inbound.feedback(&feedback) {
                self.first.get_or_insert(packet.arrived);
                self.last = at;
                if feedback.outcome == TaskOutcome::Done {
                    self.done.add(packet.written.0, at.0, packet.bytes.into());
                }
                self.packet_latencies.add(at - packet.arrived);
                self.request_latencies.add(at - packet.submitted);
                let tenant = packet.tenant as usize;
                self.times.resize_with(self.times.len().max(tenant + 1), Times::default);
                self.times[tenant].add(packet.arrived, at);
                done(at, packet);
            }
        }
        for (_, event) in &self.outside.events[known..] {
            if let DriverEvent::Idle { message, is_free, .. } = event {
                self.idle_resets += 1;
                if *is_free {
                    self.inbound.forget(*message);
                }
            }
        }
        self.outside.terminated.clone().map_or(Ok(true), Err)
    }
}

impl<U: Unit<Observer = Watch>, H: Host> System<U, H> {
    /// Returns the instruction at which the watchdog last killed a handler on an HPU, or the handler's first one if the
    /// unit cannot tell.
    pub fn killed_at(&mut self, hpu: HpuId) -> u32 {
        self.unit.killed_at(hpu).unwrap_or_else(|| self.unit.observer().entry(hpu))
    }

    /// Returns the results of the run so far.
    pub fn report(&mut self, machine: &str, clock: Clock) -> Report {
        let ns = clock.time(1_000_000).as_ns_f64() / 1e6;
        let cycles = self.first.map_or(0, |first| self.last - first);
        let inbound = self.inbound.counts();
        let counters = *self.unit.counters();
        let dropped = Dropped {
            l2: inbound.dropped_l2,
            queues: inbound.dropped_queues,
            messages: inbound.dropped_messages,
            size: inbound.dropped_size,
            ..Dropped::default()
        };
        let packets = Packets {
            arrived: inbound.arrived,
            bytes: inbound.bytes,
            done: counters.done,
            skipped: counters.skipped,
            faulted: counters.faulted,
            timed_out: counters.timed_out,
            reset: counters.reset,
            to_host: 0,
            dropped,
            waited: inbound.waited,
            marked: inbound.marked,
        };
        let Traffic { sent, written, read } = self.outside.traffic;
        let end = [sent, written, read].iter().map(Flow::last).fold(self.last.0, u64::max);
        let all = self.first.map_or(0, |first| end - first.0);
        let rates = |packets: Passed, [sent, written, read]: [Passed; 3]| Throughput {
            in_gbit_s: packets.gbit_s(ns),
            out_gbit_s: sent.gbit_s(ns),
            host_write_gbit_s: written.gbit_s(ns),
            host_read_gbit_s: read.gbit_s(ns),
            packets_per_us: packets.per_us(ns),
        };
        let flows = [sent, written, read];
        let run_throughput = rates(self.done.over(all), flows.map(|flow| flow.over(all)));
        let throughput = rates(self.done.steady(), flows.map(|flow| flow.steady()));
        let cores = self.unit.core_counters();
        let instructions = self.unit.instructions() - self.boot_instructions;
        let (latency_ns, request_ns) = (self.packet_latencies.summary(ns), self.request_latencies.summary(ns));
        let l2_peak_bytes = self.inbound.peak_bytes();
        let idle_resets = self.idle_resets;
        let watch = self.unit.observer();
        let tenants = watch.accounts().report(ns, &self.times);
        let commands = Commands {
            sent_bytes: sent.bytes,
            host_write_bytes: written.bytes,
            host_read_bytes: read.bytes,
            ..watch.commands()
        };
        Report {
            machine: machine.to_owned(),
            engine: String::new(),
            cycles,
            packets,
            latency_ns,
            request_ns,
            stage_cycles: watch.stages(),
            handler_cycles: watch.handlers(),
            run_throughput,
            throughput,
            hpus: watch.hpus(cycles),
            instructions,
            ipc: instructions as f64 / watch.cycles().max(1) as f64,
            l1_accesses: cores.local,
            l1_conflicts: cores.conflicts,
            remote_accesses: cores.remote,
            icache_misses: cores.misses,
            commands,
            energy: watch.activity(instructions, &cores).energy(all as f64 * ns, packets.arrived),
            faults: watch.failed(),
            watchdog: watch.killed(),
            idle_resets,
            l2_peak_bytes,
            jain: jain(&tenants),
            tenants,
        }
    }
}

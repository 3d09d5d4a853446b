//! The unit with its NIC and its host, in one loop.

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
use crate::watch::Watch;

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

/// Whether a beat may move through a port in a cycle.
type Moves = Box<dyn Fn(Cycle, Port) -> bool>;

/// What came out of the unit and has not been taken.
struct Surroundings<H> {
    host: H,
    moves: Option<Moves>,
    feedback: Vec<(Cycle, Feedback)>,
    sent: Vec<Sent>,
    events: Vec<(Cycle, DriverEvent)>,
    /// A program has asked for the end of the run.
    terminated: Option<RunError>,
    /// Packets that have left, and data that handlers have written to the host and read from it.
    flows: [Flow; 3],
}

impl<H: Host> Outside for Surroundings<H> {
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool {
        if !self.moves(at, Port::Feedback) {
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

    fn moves(&self, at: Cycle, port: Port) -> bool {
        self.moves.as_ref().is_none_or(|moves| moves(at, port))
    }

    fn send(&mut self, at: Cycle, hpu: HpuId, send: Send, packet: &[u8]) {
        self.flows[0].pass(at.0, packet.len() as u64);
        self.sent.push(Sent { at, hpu, send, bytes: packet.to_vec() });
    }

    fn host_write(&mut self, at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault> {
        // The unit itself tells the host about failures.
        if by.is_some() {
            self.flows[1].pass(at.0, data.len() as u64);
        }
        self.host.card_writes(at, by, address, data)
    }

    fn host_read(&mut self, at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        self.flows[2].pass(at.0, data.len() as u64);
        self.host.card_reads(at, by, address, data)
    }
}

/// The error of a run that does not end, or ends too early.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// Nothing will happen any more, but packets are inside.
    #[error("nothing happens after cycle {cycle}, but {inside} packets are in the unit: this is a defect of the model")]
    Stuck {
        /// The cycle.
        cycle: u64,
        /// The packets.
        inside: u64,
    },
    /// A program has asked for the end of the run.
    #[error("the program ended the run with TERMINATE on HPU {hpu} of cluster {cluster} in cycle {cycle}")]
    Terminated {
        /// The cluster.
        cluster: u16,
        /// The HPU within the cluster.
        hpu: u16,
        /// The cycle of the store.
        cycle: u64,
    },
    /// The simulation of the hardware has failed.
    #[error("{0}")]
    Hardware(String),
}

/// After the boot, time goes on to a multiple of these cycles.
pub const BOOTED: u64 = 1_000;

/// A card: the unit, its inbound engine, and its host.
pub struct System<U, H = HostMemory> {
    unit: U,
    inbound: Inbound,
    outside: Surroundings<H>,
    /// From the first byte of a packet to its feedback, and from its request to its feedback.
    latencies: [Latencies; 2],
    /// When the first packet arrived, and when the last one was fed back.
    first: Option<Cycle>,
    last: Cycle,
    /// Packets whose last handler returned.
    done: DonePackets,
    idle_resets: u64,
    /// Instructions that were executed before the first packet.
    boot_instructions: u64,
}

impl<O: Observer> System<Pspin<Hpus, O>> {
    /// A card with the model of the unit whose HPUs boot, with memory of the host of which nothing is registered.
    pub fn new(config: Rc<Config>, clock: Clock, cores: Hpus, observer: O) -> System<Pspin<Hpus, O>> {
        System::with_host(config, clock, cores, observer, HostMemory::default())
    }
}

impl<O: Observer, H: Host> System<Pspin<Hpus, O>, H> {
    /// A card with the model of the unit whose HPUs boot, at this host.
    pub fn with_host(config: Rc<Config>, clock: Clock, cores: Hpus, observer: O, host: H) -> System<Pspin<Hpus, O>, H> {
        let mut unit = Pspin::new(config.clone(), clock, cores, observer);
        unit.boot();
        System::around(unit, config, clock, host)
    }
}

impl<U: Unit, H: Host> System<U, H> {
    /// A card with this unit, whose HPUs boot, at this host.
    pub fn around(unit: U, config: Rc<Config>, clock: Clock, host: H) -> System<U, H> {
        let latencies = [Latencies::default(), Latencies::default()];
        let outside = Surroundings {
            host,
            moves: None,
            feedback: Vec::new(),
            sent: Vec::new(),
            events: Vec::new(),
            terminated: None,
            flows: Default::default(),
        };
        System {
            inbound: Inbound::new(config, clock),
            unit,
            outside,
            latencies,
            first: None,
            last: Cycle::ZERO,
            done: DonePackets::default(),
            idle_resets: 0,
            boot_instructions: 0,
        }
    }

    /// Lets the HPUs boot, before any packet, until all of them wait for their first task. Returns whether they do before
    /// cycle `until`. Time goes on to a multiple of [`BOOTED`], so that packets come in the same cycles to units that boot in others.
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

    /// Time passes up to cycle `until`. The caller knows that nothing happens before.
    pub fn pass(&mut self, until: Cycle) {
        self.unit.advance(until, &mut self.outside);
    }

    /// The unit.
    pub fn unit(&mut self) -> &mut U {
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

    /// NIC and host let beats wait: `moves` says in which cycles a port goes on.
    pub fn hold(&mut self, moves: impl Fn(Cycle, Port) -> bool + 'static) {
        self.outside.moves = Some(Box::new(moves));
    }

    /// A packet will arrive.
    pub fn push(&mut self, packet: Arrival) {
        self.push_apart(packet, Time::ZERO);
    }

    /// A packet will arrive, and the one behind it no sooner than `gap` after the beginning of this one.
    pub fn push_apart(&mut self, packet: Arrival, gap: Time) {
        self.unit.prepare(&packet.context);
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
    /// [`RunError::Stuck`] when packets are inside and nothing will happen, [`RunError::Terminated`], and [`RunError::Hardware`].
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
                self.latencies[0].add(at - packet.arrived);
                self.latencies[1].add(at - packet.submitted);
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
    /// The instruction at which the watchdog has found the handler that it has killed last on an HPU: the first one of the handler
    /// where the unit does not know.
    pub fn killed_at(&mut self, hpu: HpuId) -> u32 {
        self.unit.killed_at(hpu).unwrap_or_else(|| self.unit.observer().entry(hpu))
    }

    /// What the run has shown so far.
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
        let [sent, written, read] = self.outside.flows;
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
        let [latency_ns, request_ns] = [&self.latencies[0], &self.latencies[1]].map(|times| times.summary(ns));
        let l2_peak_bytes = self.inbound.peak_bytes();
        let idle_resets = self.idle_resets;
        let watch = self.unit.observer();
        let commands = Commands {
            sent_bytes: sent.bytes,
            host_write_bytes: written.bytes,
            host_read_bytes: read.bytes,
            ..watch.commands()
        };
        Report {
            machine: machine.to_owned(),
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
            faults: watch.failed(),
            watchdog: watch.killed(),
            idle_resets,
            l2_peak_bytes,
        }
    }
}

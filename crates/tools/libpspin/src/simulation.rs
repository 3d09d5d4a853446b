// SPDX-License-Identifier: Apache-2.0
//! Main loop of the card and the driver's requests.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use hpu::Program;
use output::Cache;
use pspin_nic::inbound::{Arrival, Done};
use pspin_nic::program::Loaded;
use pspin_nic::system::System;
use pspin_nic::timeline::Timeline;
use pspin_nic::watch::Watch;
use pspin_rtl::build::build;
use pspin_rtl::{Rtl, RtlError};
use pspin_unit::her::{Convention, ExecutionContext, HostRange, Range, Share};
use pspin_unit::memory::{Arena, Place};
use pspin_unit::{Cycle, Unit};
use rustc_hash::FxHashMap;

use crate::callbacks;
use crate::diagnostics::{Error, Result, failure, print, print_line, warn};
use crate::host::DriverHost;
use crate::requests::{self, Packet, Request};
use crate::settings::{Engine, Settings};
use crate::statistics::Statistics;
use crate::types::{CLUSTERS, Context, RDMA_HEADER};

/// Number of failures printed; further ones are only counted.
const TOLD: u64 = 20;

/// Transfer between the host and the memory of the card.
enum Transfer {
    Write { address: u32, bytes: Vec<u8> },
    Read { address: u32, data: *mut u8, size: u32 },
}

/// Transfer in flight.
struct Moving {
    /// Cycle of its completion.
    at: Cycle,
    transfer: Transfer,
    user: *mut c_void,
}

/// Card with a program, independent of the engine.
pub trait Card {
    /// Runs until all packets are done.
    ///
    /// # Errors
    /// When the driver did not announce the end, or an operation failed.
    fn run(&mut self) -> Result<()>;

    /// Simulates one cycle. Returns true if the end is announced and all packets are done.
    ///
    /// # Errors
    /// When the simulation has a defect.
    fn tick(&mut self) -> Result<bool>;

    /// Prints the counts, and writes the files named by the environment.
    ///
    /// # Errors
    /// When a file cannot be written.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Loads a program, and boots the card.
///
/// # Errors
/// When `init_handlers` fails or does not end, the file of the timeline cannot be written, or the hardware cannot be simulated.
pub fn start(settings: Rc<Settings>, program: &Loaded) -> Result<Box<dyn Card>> {
    let (unit, clock) = (settings.unit.clone(), settings.clock);
    let timeline = settings.trace.as_ref().map(|path| {
        let named = program.program().clone();
        let names = move |address| named.function(address).map_or_else(|| format!("{address:#x}"), str::to_owned);
        Timeline::to_file(path, &unit, clock, names).map_err(|error| Error::Write(error, path.clone()))
    });
    let watch = Watch::new(&unit, timeline.transpose()?);
    let host = DriverHost::new(clock, settings.is_strict);
    match &settings.engine {
        Engine::Model => {
            let system = System::with_host(unit.clone(), clock, program.hpus(unit), watch, host);
            Ok(Box::new(Simulation::new(settings, system, program)?))
        }
        Engine::Rtl(design, home) => {
            let library = build(home, &Cache::find(home).map_err(RtlError::from)?, design, warn)?;
            let mut hardware = Rtl::new(&library, 0, unit.clone(), clock, program, false, watch)?;
            if let Some(wave) = &settings.wave {
                hardware.write_wave(wave)?;
            }
            Ok(Box::new(Simulation::new(settings.clone(), System::around(hardware, unit, clock, host), program)?))
        }
    }
}

/// Card with a program.
struct Simulation<U> {
    settings: Rc<Settings>,
    program: Arc<Program>,
    system: System<U, DriverHost>,
    contexts: FxHashMap<Context, Rc<ExecutionContext>>,
    transfers: VecDeque<Moving>,
    /// Cycle at which the channel from the host is free for the next transfer.
    channel_free: Cycle,
    /// Cycle at which all the driver's writes so far are in the memory of the card.
    written: Cycle,
    /// Set once the driver announces the end of packets.
    has_ended: bool,
    failures: u64,
    has_sent_too_much: bool,
    statistics: Statistics,
}

impl<U: Unit<Observer = Watch>> Simulation<U> {
    /// Loads a program, and boots the card.
    fn new(settings: Rc<Settings>, system: System<U, DriverHost>, program: &Loaded) -> Result<Simulation<U>> {
        let mut simulation = Simulation {
            program: program.program().clone(),
            system,
            contexts: FxHashMap::default(),
            transfers: VecDeque::new(),
            channel_free: Cycle::ZERO,
            written: Cycle::ZERO,
            has_ended: false,
            failures: 0,
            has_sent_too_much: false,
            statistics: Statistics::default(),
            settings,
        };
        program.write(simulation.system.unit());
        let limit = simulation.settings.unit.units.watchdog_cycles;
        let has_booted = simulation.system.boot(Cycle(limit));
        simulation.report();
        if let Some(reason) = simulation.system.unit().failure() {
            return Err(Error::Run(reason.to_owned()));
        }
        if !has_booted {
            return Err(Error::Run(format!(
                "init_handlers has not ended after {limit} cycles (accelerator.default_watchdog_cycles)"
            )));
        }
        if simulation.system.unit().core_counters().failed > 0 {
            return Err(Error::Run(
                "init_handlers has failed: it left the program or its memory, or its instructions are illegal"
                    .to_owned(),
            ));
        }
        simulation.tell_time();
        Ok(simulation)
    }

    fn now(&mut self) -> Cycle {
        self.system.unit().now()
    }

    fn ps(&self, at: Cycle) -> u64 {
        self.settings.clock.time(at.0).as_ps()
    }

    fn tell_time(&mut self) {
        let now = self.now();
        callbacks::set_now_ps(self.ps(now));
    }

    /// Returns true if the end is announced, and all packets are fed back.
    fn is_done(&self) -> bool {
        let inbound = self.system.inbound();
        let is_idle = requests::is_empty() && self.transfers.is_empty();
        self.has_ended && is_idle && inbound.coming() == 0 && inbound.inside() == 0
    }

    /// Checks for failures.
    ///
    /// # Errors
    /// When an operation failed.
    fn verdict(&self) -> Result<()> {
        match (self.failures, self.system.inbound().counts().dropped()) {
            (0, 0) => Ok(()),
            (failures, dropped) => Err(Error::Run(format!("failures: {failures}, packets dropped: {dropped}"))),
        }
    }

    /// Simulates up to the next event for the driver, but at most to `until`. Returns true if work remains.
    fn step(&mut self, until: Cycle) -> Result<bool> {
        self.take_requests()?;
        self.transfer();
        let wake = self.transfers.front().map_or(Cycle::NEVER, |moving| moving.at);
        let until = until.min(wake);
        let mut done = Vec::new();
        let is_busy = self.system.advance(until, |at, packet| done.push((at, packet)));
        if matches!(is_busy, Ok(false)) && wake != Cycle::NEVER {
            self.system.pass(until);
        }
        self.tell_time();
        self.report();
        let is_busy = is_busy.map_err(|error| Error::Run(error.to_string()))?;
        self.packets_out();
        done.into_iter().for_each(|(at, packet)| self.packet_done(at, packet));
        Ok(is_busy || wake != Cycle::NEVER || !requests::is_empty())
    }

    /// Takes the driver's requests.
    fn take_requests(&mut self) -> Result<()> {
        for request in requests::take() {
            match request {
                Request::Packet(packet) => self.push(packet)?,
                Request::Write { address, bytes, user } => {
                    let at = self.occupy(address, bytes.len() as u32);
                    self.written = at;
                    self.transfers.push_back(Moving { at, transfer: Transfer::Write { address, bytes }, user });
                }
                Request::Read { address, data, size, user } => {
                    let at = self.occupy(address, size);
                    self.transfers.push_back(Moving { at, transfer: Transfer::Read { address, data, size }, user });
                }
                Request::Priority { queue, priority } => self.set_priority(queue, priority)?,
                Request::End => self.has_ended = true,
            }
        }
        Ok(())
    }

    /// Sets the priority of a message queue.
    fn set_priority(&mut self, queue: u32, priority: u8) -> Result<()> {
        let queues = self.settings.unit.mpq.queues;
        if queue >= queues {
            return Err(Error::Run(format!(
                "pspinsim_set_fmq_prio: there is no message queue {queue}; the card has {queues}, from 0 (accelerator.mpq.queues)"
            )));
        }
        if !self.system.unit().set_priority(queue, priority) && priority > 0 {
            return Err(Error::Run(format!(
                "pspinsim_set_fmq_prio: message queue {queue} is to have priority {priority}; the engine rtl has no priorities, \
                 the engine model has"
            )));
        }
        Ok(())
    }

    /// Occupies the channel from the host for a transfer. Returns the cycle of its completion.
    fn occupy(&mut self, address: u32, size: u32) -> Cycle {
        let width = self.settings.unit.nhi.width_bits / 8;
        let beats = (address % width + size).div_ceil(width);
        self.channel_free = self.channel_free.max(self.now()) + beats;
        self.channel_free
    }

    /// Queues a packet, which arrives after all earlier writes of the driver reach the card's memory.
    fn push(&mut self, packet: Packet) -> Result<()> {
        let Packet { context, message, bytes, transfer, is_last, gap, user } = packet;
        let context = self.context(context)?;
        let clock = self.settings.clock;
        let (at, gap) = (self.now().max(self.written), clock.time(gap.max(1).into()));
        let arrival = Arrival { at: clock.time(at.0), bytes, message, is_last, transfer, context, user };
        self.system.push_apart(arrival, gap);
        Ok(())
    }

    /// Returns the execution context described by a driver.
    fn context(&mut self, described: Context) -> Result<Rc<ExecutionContext>> {
        if let Some(context) = self.contexts.get(&described) {
            return Ok(context.clone());
        }
        let most = self.settings.unit.limits.contexts;
        if self.contexts.len() >= most as usize {
            return Err(Error::Run(format!(
                "the packets have more than {most} different execution contexts (accelerator.limits.contexts)"
            )));
        }
        self.check(&described);
        let unit = &self.settings.unit;
        let range = |address, size| Range { address, size };
        let scratchpads = (0..unit.units.clusters as u16).map(|cluster| {
            let entry = usize::from(cluster) % CLUSTERS;
            let (addresses, sizes) = (described.scratchpad_addr, described.scratchpad_size);
            let start = Arena::start(Place::L1(cluster)) + (unit.l1.bytes - unit.scratchpad());
            let offset = addresses[entry].min(unit.scratchpad());
            range(start + offset, sizes[entry].min(unit.scratchpad() - offset))
        });
        let context = Rc::new(ExecutionContext {
            handler_memory: range(described.handler_mem_addr, described.handler_mem_size),
            host: HostRange { address: described.host_mem_addr, size: described.host_mem_size.into() },
            handlers: [
                range(described.hh_addr, described.hh_size),
                range(described.ph_addr, described.ph_size),
                range(described.th_addr, described.th_size),
            ],
            scratchpads: scratchpads.collect(),
            code: vec![range(Arena::start(Place::Program), self.program.program_segment().len() as u32)],
            watchdog_cycles: unit.units.watchdog_cycles,
            idle_cycles: unit.mpq.idle_cycles,
            descriptor: 0,
            tenant: self.contexts.len() as u32,
            share: Share::default(),
            convention: Convention::Pspin,
            pin: None,
        });
        self.system.host().register(context.tenant, described.host_mem_addr, described.host_mem_size.into());
        self.contexts.insert(described, context.clone());
        Ok(context)
    }

    /// Warns about resources of a context that the card lacks.
    fn check(&mut self, described: &Context) {
        let (address, size) = (described.handler_mem_addr, described.handler_mem_size);
        if size > 0 && self.system.unit().read(address, size).is_none() {
            warn(&format!("spin_ec_t: handler memory of {size} B at {address:#010x} is in no memory of the card"));
        }
        let bytes = self.settings.unit.scratchpad();
        let (addresses, sizes) = (described.scratchpad_addr, described.scratchpad_size);
        let fits = |(at, size): (u32, u32)| u64::from(at) + u64::from(size) <= u64::from(bytes);
        if let Some((at, size)) = addresses.into_iter().zip(sizes).find(|place| !fits(*place)) {
            warn(&format!(
                "spin_ec_t: a scratchpad of {size} B at {at} ends where the L1 of a cluster does, which has {bytes} B for scratchpads"
            ));
        }
    }

    /// Completes the transfers that are due, in the order of the driver's requests.
    fn transfer(&mut self) {
        let now = self.now();
        while self.transfers.front().is_some_and(|moving| moving.at <= now)
            && let Some(Moving { transfer, user, .. }) = self.transfers.pop_front()
        {
            let unit = self.system.unit();
            let (call, address, size, is_done) = match transfer {
                Transfer::Write { address, bytes } => {
                    let size = bytes.len() as u32;
                    self.statistics.card_written += u64::from(size);
                    ("spin_nicmem_write", address, size, unit.load(address, &bytes))
                }
                Transfer::Read { address, data, size } => {
                    self.statistics.card_read += u64::from(size);
                    // SAFETY: the driver lends this many bytes until the callback, and they do not overlap the card's.
                    let copy = |from: Vec<u8>| unsafe { data.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
                    ("spin_nicmem_read", address, size, unit.read(address, size).map(copy).is_some())
                }
            };
            if !is_done {
                self.fail(&format!("{call}: {size} B at {address:#010x} are in no memory of the card"));
            }
            let is_write = call == "spin_nicmem_write";
            callbacks::transfer_done(if is_write { |all| all.write_done } else { |all| all.read_done }, user);
        }
    }

    /// Reports output and failures of handlers.
    fn report(&mut self) {
        for (hpu, line) in self.system.unit().take_output() {
            print_line(hpu, &line);
        }
        for (at, event) in self.system.take_events() {
            let system = &mut self.system;
            if let Some(text) = failure(&event, |hpu| system.killed_at(hpu), &self.program) {
                self.fail(&format!("{} ns: {text}", self.settings.clock.time(at.0).as_ns_f64()));
            }
        }
    }

    fn fail(&mut self, text: &str) {
        self.failures += 1;
        match self.failures {
            ..=TOLD => warn(text),
            failures if failures == TOLD + 1 => warn("more failures are only counted"),
            _ => {}
        }
    }

    /// Reports packets that left the card.
    fn packets_out(&mut self) {
        let max = self.settings.max_sent.max(RDMA_HEADER + 1);
        for sent in self.system.take_sent() {
            self.statistics.send_commands += 1;
            if sent.send.flow != 0 {
                // An RDMA put is split into packets. Their headers are only counted.
                for part in sent.bytes.chunks(max - RDMA_HEADER) {
                    let mut packet = part.to_vec();
                    packet.resize(part.len() + RDMA_HEADER, 0);
                    self.packet_out(sent.at, packet);
                }
                continue;
            }
            if sent.bytes.len() > max && !std::mem::replace(&mut self.has_sent_too_much, true) {
                let size = sent.bytes.len();
                self.fail(&format!("a handler sends a packet of {size} B, but max_pkt_size of pspin_conf_t is {max}"));
            }
            self.packet_out(sent.at, sent.bytes);
        }
    }

    fn packet_out(&mut self, at: Cycle, bytes: Vec<u8>) {
        self.statistics.sent.add(at, 1, bytes.len() as u64);
        callbacks::packet_out(bytes);
    }

    fn packet_done(&mut self, at: Cycle, done: Done) {
        let [arrived, submitted, at_ps] = [done.arrived, done.submitted, at].map(|cycle| self.ps(cycle));
        self.statistics.packet_done(at, done.written, done.bytes.into(), at_ps - arrived);
        if let Some(timeline) = self.system.unit().observer().timeline() {
            timeline.packet(&done);
        }
        callbacks::packet_done(done.user, arrived, submitted, at_ps);
    }
}

impl<U: Unit<Observer = Watch>> Card for Simulation<U> {
    fn run(&mut self) -> Result<()> {
        while !self.is_done() {
            if !self.step(Cycle::NEVER)? && !self.has_ended {
                return Err(Error::Run(
                    "all packets are done, but pspinsim_packet_eos was not called: no packet can come any more"
                        .to_owned(),
                ));
            }
        }
        self.verdict()
    }

    fn tick(&mut self) -> Result<bool> {
        let until = self.now() + 1_u64;
        while self.now() < until && !self.is_done() {
            if !self.step(until)? && !self.is_done() {
                self.system.pass(until);
                self.tell_time();
            }
        }
        Ok(self.is_done())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let clock = self.settings.clock;
        let host = self.system.host();
        (self.statistics.host_writes, self.statistics.host_reads) = (host.writes, host.reads);
        self.statistics.stalls = self.system.inbound().counts().waited;
        print(self.statistics.text(clock).as_bytes());
        if let Some(path) = &self.settings.json {
            let report = self.system.report(&self.settings.name, clock);
            let written = output::write(path, |out| {
                serde_json::to_writer_pretty(&mut *out, &report)?;
                out.write_all(b"\n")
            });
            written.map_err(|error| Error::Write(error, path.clone()))?;
        }
        let timeline = self.system.unit().observer().take_timeline();
        if let (Some(timeline), Some(path)) = (timeline, &self.settings.trace) {
            timeline.finish().map_err(|error| Error::Write(error, path.clone()))?;
        }
        Ok(())
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The hardware as a unit, with the model's NIC around it (`pspin_nic`).

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use abi::pspin::{control, map};
use hpu::{Fault, Program};
use machine::Pspin as Config;
use pspin_nic::program::Loaded;
use pspin_unit::command::Send;
use pspin_unit::core::{CoreCounters, program_data};
use pspin_unit::her::{
    Busy, DriverEvent, ExecutionContext, Failure, Feedback, Her, HpuId, Range, Role, Task, TaskOutcome,
};
use pspin_unit::memory::{Arena, Place};
use pspin_unit::observe::{Noted, Observer};
use pspin_unit::{Counters, Cycle, Outside, Port as Edge, Status, Unit};
use sim::Clock;

use crate::RtlError;
use crate::events;
use crate::lockstep::instructions::{self, Instructions};
use crate::nic::{HostPort, HostWrite, Link, Ports, Writer};
use crate::simulation::{Event, Port, Simulation};

/// Length of the reset in cycles.
const RESET_CYCLES: u32 = 4;

/// VCD waveform of all signals to be written.
#[derive(Clone, Debug)]
pub struct Wave {
    /// Path of the file.
    pub file: PathBuf,
    /// Cycles to show.
    pub cycles: std::ops::Range<u64>,
}

/// The unit as hardware, observed by `O`.
pub struct Rtl<O = ()> {
    config: Rc<Config>,
    simulation: Simulation,
    ports: Ports,
    memories: Memories,
    observer: O,
    /// Next cycle to simulate, and the corresponding cycle of the hardware's clock.
    now: Cycle,
    clock: u64,
    is_enabled: bool,
    /// Pending register writes, one per cycle.
    registers: VecDeque<(u32, u32)>,
    contexts: Vec<Rc<ExecutionContext>>,
    writer: Writer,
    host: HostPort,
    link: Link,
    sending: Vec<u8>,
    /// Set if a request is offered in this cycle.
    submits: bool,
    /// Requests inside, by NIC number.
    requests: HashMap<u64, Her>,
    /// Messages whose last packet has no feedback yet.
    open: HashMap<u32, u64>,
    /// Tasks by cluster and slot, and slots of the HPUs' tasks.
    tasks: Vec<Vec<Option<Task>>>,
    given: Vec<u8>,
    lines: Vec<Vec<u8>>,
    output: Vec<(HpuId, Vec<u8>)>,
    program: Arc<Program>,
    /// Failures of each HPU's tasks that are not yet reported to the driver on the host.
    failures: Vec<VecDeque<TaskOutcome>>,
    /// Words reported in front of an event.
    words: [u32; 5],
    told: Vec<Event>,
    instructions: Option<Instructions>,
    counters: Counters,
    cores: CoreCounters,
    executed: u64,
    failure: Option<String>,
    period: Clock,
    /// Cycles of the waveform.
    shown: std::ops::Range<u64>,
}

impl<O: Observer> Rtl<O> {
    /// Opens a library built for this configuration, with a program; `seed` determines random values, if the build uses
    /// them. `checks` compares each instruction with the simulator.
    ///
    /// # Errors
    /// When the library does not fit.
    pub fn new(
        library: &Path,
        seed: u32,
        config: Rc<Config>,
        clock: Clock,
        loaded: &Loaded,
        checks: bool,
        observer: O,
    ) -> Result<Rtl<O>, RtlError> {
        let simulation = Simulation::open(library, seed)?;
        let ports = Ports::new(&simulation)?;
        let memories = Memories::new(&simulation, &config)?;
        let (clusters, hpus) = (config.units.clusters as u16, config.units.hpus as u16);
        let ids = (0..clusters).flat_map(|cluster| (0..hpus).map(move |hpu| HpuId { cluster, hpu }));
        let stack = config.units.stack;
        let top = |id: HpuId| Arena::start(Place::L1(id.cluster)) + (u32::from(id.hpu) + 1) * stack;
        let instructions =
            checks.then(|| Instructions::new(loaded.program().clone(), loaded.runtime(), ids.map(|id| (id, top(id)))));
        let (host, link) = (HostPort::new(&config, clock), Link::new(&config, clock));
        let writer = Writer::new(&config);
        let mut rtl = Rtl {
            tasks: vec![vec![None; config.cluster.tasks as usize]; clusters.into()],
            given: vec![0; usize::from(clusters * hpus)],
            lines: vec![Vec::new(); usize::from(clusters * hpus)],
            failures: vec![VecDeque::new(); usize::from(clusters * hpus)],
            program: loaded.program().clone(),
            config,
            simulation,
            ports,
            memories,
            observer,
            now: Cycle::ZERO,
            clock: 0,
            is_enabled: false,
            registers: VecDeque::new(),
            contexts: Vec::new(),
            writer,
            host,
            link,
            sending: Vec::new(),
            submits: false,
            requests: HashMap::new(),
            open: HashMap::new(),
            output: Vec::new(),
            words: [0; 5],
            told: Vec::new(),
            instructions,
            counters: Counters::default(),
            cores: CoreCounters::default(),
            executed: 0,
            failure: None,
            period: clock,
            shown: 0..0,
        };
        rtl.reset();
        rtl.describe(loaded);
        Ok(rtl)
    }

    /// Sets an additional input of the design.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn set_input(&mut self, name: &str, value: u64) -> Result<(), RtlError> {
        let port = self.simulation.port(name)?;
        self.set(port, value);
        Ok(())
    }

    /// Writes a waveform; the library must be built for it ([`crate::build::Design::is_traced`]).
    ///
    /// # Errors
    /// When the library does not support waveforms, or the file cannot be written.
    pub fn write_wave(&mut self, wave: &Wave) -> Result<(), RtlError> {
        self.shown = wave.cycles.clone();
        self.simulation.begin_wave(&wave.file)
    }

    /// Returns the instruction checker, if enabled.
    pub fn checker(&self) -> Option<&Instructions> {
        self.instructions.as_ref()
    }

    fn reset(&mut self) {
        let Ports { rst_ni, send_ready_i, host_write_ready_i, host_read_ready_i, .. } = self.ports;
        let zero = [
            self.ports.her_valid_i,
            self.ports.feedback_ready_i,
            self.ports.write_valid_i,
            self.ports.host_written_valid_i,
            self.ports.host_data_valid_i,
            self.ports.ctrl_valid_i,
            rst_ni,
        ];
        zero.into_iter().for_each(|port| self.simulation.set(port, 0));
        [send_ready_i, host_write_ready_i, host_read_ready_i].into_iter().for_each(|port| self.simulation.set(port, 1));
        (0..RESET_CYCLES).for_each(|_| self.tick());
        self.simulation.set(rst_ni, 1);
    }

    /// Simulates a cycle of the hardware's clock.
    fn tick(&mut self) {
        self.simulation.settle();
        self.simulation.tick();
        self.clock += 1;
    }

    /// Writes the registers that describe a program.
    fn describe(&mut self, loaded: &Loaded) {
        let [of_all, first] = program_data(loaded.program());
        let (code, runtime) = (loaded.code(), loaded.runtime());
        self.registers.extend([
            (control::ENTRY, runtime.boot),
            (control::AGAIN, runtime.again),
            (control::STATIC_ADDRESS, of_all.address),
            (control::STATIC_BYTES, of_all.size),
            (control::CODE_ADDRESS, code.address),
            (control::CODE_BYTES, code.size),
            (control::BOOT_ADDRESS, first.address),
            (control::BOOT_BYTES, first.size),
        ]);
    }

    /// Enables the HPUs: cycles before do not count.
    fn enable(&mut self) {
        self.registers.push_back((control::ENABLE, 1));
        while !self.registers.is_empty() {
            self.drive_register();
            self.tick();
        }
        self.simulation.set(self.ports.ctrl_valid_i, 0);
        self.is_enabled = true;
        self.told.clear();
        self.simulation.take_events(&mut self.told);
        self.told.clear();
    }

    fn drive_register(&mut self) {
        let next = self.registers.pop_front();
        self.simulation.set(self.ports.ctrl_valid_i, next.is_some().into());
        if let Some((address, value)) = next {
            self.simulation.set(self.ports.ctrl_we_i, 1);
            self.simulation.set(self.ports.ctrl_address_i, address.into());
            self.simulation.set(self.ports.ctrl_wdata_i, value.into());
        }
    }

    /// Returns the number of a context, and writes a new one to the unit.
    fn number(&mut self, context: &Rc<ExecutionContext>) -> usize {
        if let Some(number) = self.contexts.iter().position(|known| Rc::ptr_eq(known, context)) {
            return number;
        }
        let number = self.contexts.len();
        self.contexts.push(context.clone());
        let half = |value: u64| [value as u32, (value >> 32) as u32];
        let cycles = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let ExecutionContext { tenant, pin, descriptor, host, handler_memory, handlers, scratchpads, .. } = &**context;
        let [descriptor, descriptor_high] = half(*descriptor);
        let ([host_address, host_address_high], [host_bytes, host_bytes_high]) = (half(host.address), half(host.size));
        let [header, payload, completion] = *handlers;
        self.registers.extend([
            (control::CONTEXT_TENANT, *tenant),
            (control::CONTEXT_PIN, pin.map_or(0, |cluster| 1 << 31 | u32::from(cluster))),
            (control::CONTEXT_DESCRIPTOR, descriptor),
            (control::CONTEXT_DESCRIPTOR_HIGH, descriptor_high),
            (control::CONTEXT_IDLE, cycles(context.idle_cycles)),
            (control::CONTEXT_WATCHDOG, cycles(context.watchdog_cycles)),
            (control::CONTEXT_HOST, host_address),
            (control::CONTEXT_HOST_HIGH, host_address_high),
            (control::CONTEXT_HOST_BYTES, host_bytes),
            (control::CONTEXT_HOST_BYTES_HIGH, host_bytes_high),
            (control::CONTEXT_HANDLER_MEMORY, handler_memory.address),
            (control::CONTEXT_HANDLER_MEMORY_BYTES, handler_memory.size),
            (control::CONTEXT_HEADER, header.address),
            (control::CONTEXT_HEADER_BYTES, header.size),
            (control::CONTEXT_PAYLOAD, payload.address),
            (control::CONTEXT_PAYLOAD_BYTES, payload.size),
            (control::CONTEXT_COMPLETION, completion.address),
            (control::CONTEXT_COMPLETION_BYTES, completion.size),
            (control::CONTEXT_WRITE, number as u32),
        ]);
        for (cluster, scratchpad) in scratchpads.iter().enumerate() {
            self.registers.extend([
                (control::SCRATCHPAD_ADDRESS, scratchpad.address),
                (control::SCRATCHPAD_BYTES, scratchpad.size),
                (control::SCRATCHPAD_CLUSTER, cluster as u32),
                (control::SCRATCHPAD_WRITE, number as u32),
            ]);
        }
        number
    }

    fn get(&self, port: Port) -> u64 {
        self.simulation.get(port)
    }

    fn set(&mut self, port: Port, value: u64) {
        self.simulation.set(port, value);
    }

    /// Simulates cycle `now`. Returns true if the unit produced output.
    fn step(&mut self, out: &mut impl Outside) -> bool {
        let now = self.now;
        let mut goes_out = self.take_feedback(out);
        goes_out |= self.take_packet(out);
        let [writes, asks, brings] =
            [Edge::HostWrite, Edge::HostRead, Edge::HostData].map(|edge| out.is_ready(now, edge));
        if let Some(write) = self.host.take_beat(now, writes, &mut self.simulation, &self.ports) {
            goes_out = true;
            self.write_host(&write, out);
        }
        self.simulation.set(self.ports.host_read_ready_i, asks.into());
        if asks && self.get(self.ports.host_read_valid_o) != 0 {
            goes_out = true;
            self.read_host(out);
        }
        self.host.drive(now, brings, &mut self.simulation, &self.ports);
        self.writer.drive(now, &mut self.simulation, &self.ports);
        self.drive_register();
        self.simulation.settle();
        self.writer.sample(now, &self.simulation, &self.ports);
        self.host.sample(now, &self.simulation, &self.ports);
        let is_shown = self.shown.contains(&now.0);
        if is_shown {
            let [begin, end] = [now.0, now.0 + 1].map(|cycle| self.period.time(cycle).as_ps());
            self.simulation.dump((begin + end) / 2);
        }
        self.simulation.tick();
        if is_shown {
            self.simulation.dump(self.period.time(now.0 + 1).as_ps());
        }
        self.clock += 1;
        if std::mem::take(&mut self.submits) {
            self.set(self.ports.her_valid_i, 0);
        }
        goes_out |= self.note_events(out);
        self.now += 1;
        goes_out
    }

    fn take_feedback(&mut self, out: &mut impl Outside) -> bool {
        let Ports { feedback_valid_o, feedback_ready_i, .. } = self.ports;
        if self.get(feedback_valid_o) == 0 {
            self.set(feedback_ready_i, 0);
            return false;
        }
        let ports = self.ports;
        let word = |port| self.get(port) as u32;
        let user = self.get(ports.feedback_user_o);
        let kind = word(ports.feedback_kind_o);
        let feedback = Feedback {
            packet: Range { address: word(ports.feedback_address_o), size: word(ports.feedback_size_o) },
            transfer: word(ports.feedback_transfer_o),
            message: word(ports.feedback_message_o),
            user,
            // The end of a packet's last task gives the cause of the failure.
            outcome: events::outcome(&self.program, kind, 0, 0, 0, 0),
            last: self.get(ports.feedback_last_o) != 0,
        };
        let is_taken = out.feedback(self.now, &feedback);
        self.set(feedback_ready_i, is_taken.into());
        if is_taken {
            self.count(feedback.outcome);
            self.observer.note(self.now, Noted::Feedback(&feedback));
            self.requests.remove(&user);
            if feedback.last {
                self.open.remove(&feedback.message);
            }
        }
        true
    }

    fn count(&mut self, outcome: TaskOutcome) {
        let counters = &mut self.counters;
        *match outcome {
            TaskOutcome::Done => &mut counters.done,
            TaskOutcome::Skipped => &mut counters.skipped,
            TaskOutcome::Faulted(_) => &mut counters.faulted,
            TaskOutcome::TimedOut => &mut counters.timed_out,
            TaskOutcome::MessageReset => &mut counters.reset,
        } += 1;
    }

    /// Takes a beat of a departing packet.
    fn take_packet(&mut self, out: &mut impl Outside) -> bool {
        let ports = self.ports;
        if self.get(ports.send_valid_o) == 0 {
            return false;
        }
        let is_free = self.link.is_free(self.now) && out.is_ready(self.now, Edge::Outbound);
        self.set(ports.send_ready_i, is_free.into());
        if !is_free {
            return false;
        }
        let mut data = [0; 64];
        self.simulation.get_bytes(ports.send_data_o, &mut data);
        let count = (self.get(ports.send_bytes_o) as usize).min(data.len());
        self.sending.extend_from_slice(&data[..count]);
        let is_last = self.get(ports.send_last_o) != 0;
        self.link.leaves(self.now, is_last, self.sending.len());
        if !is_last {
            return false;
        }
        let hpu = HpuId { cluster: self.get(ports.send_cluster_o) as u16, hpu: self.get(ports.send_hpu_o) as u16 };
        let word = |port| self.get(port) as u32;
        let send = Send { node: word(ports.send_node_o), flow: word(ports.send_flow_o), user: word(ports.send_user_o) };
        out.send(self.now, hpu, send, &std::mem::take(&mut self.sending));
        true
    }

    fn write_host(&mut self, write: &HostWrite, out: &mut impl Outside) {
        let by = if write.is_own { None } else { self.contexts.get(write.context).map(|context| &**context) };
        let at = self.host.written(self.now);
        let is_refused = out.host_write(at, by, write.address, &write.bytes).is_err();
        self.counters.lost_status += u64::from(write.is_own && is_refused);
        self.host.answer_write(at, write.id, is_refused);
    }

    fn read_host(&mut self, out: &mut impl Outside) {
        let ports = self.ports;
        let (address, size) = (self.get(ports.host_read_address_o), self.get(ports.host_read_size_o) as usize);
        let context = self.contexts.get(self.get(ports.host_read_context_o) as usize).cloned();
        let mut data = vec![0; size];
        let at = self.host.comes(self.now);
        let is_refused = out.host_read(at, context.as_deref(), address, &mut data).is_err();
        self.host.answer_read(at, self.get(ports.host_read_id_o), &data, is_refused);
    }

    /// Takes the observers' events of this cycle. Returns true if the unit produced output.
    fn note_events(&mut self, out: &mut impl Outside) -> bool {
        let mut told = std::mem::take(&mut self.told);
        self.simulation.take_events(&mut told);
        let mut goes_out = false;
        for event in told.drain(..) {
            if event.kind < events::TASK_SENT {
                self.executed += u64::from(instructions::is_of_program(&event));
                self.count_access(&event);
                let at = Event { cycle: self.now.0, ..event };
                if let Some(Err(difference)) = self.instructions.as_mut().map(|checker| checker.take(&at)) {
                    self.failure.get_or_insert(difference.to_string());
                }
            } else {
                goes_out |= self.note(&event, out);
            }
        }
        self.told = told;
        goes_out
    }

    fn count_access(&mut self, event: &Event) {
        let Event { kind: instructions::ACCESSED, values: [address, what, ..], .. } = *event else { return };
        if what & instructions::SECOND != 0 {
            return;
        }
        let HpuId { cluster, .. } = events::hpu(event);
        let own = address.wrapping_sub(map::OWN_L1) < self.config.l1.bytes;
        let counter = match self.memories.locate(address) {
            Some((Place::L1(owner), _)) if owner == cluster => &mut self.cores.local,
            Some(_) => &mut self.cores.remote,
            None if own => &mut self.cores.local,
            None => &mut self.cores.device,
        };
        *counter += 1;
    }

    fn index(&self, id: HpuId) -> usize {
        usize::from(id.cluster) * self.config.units.hpus as usize + usize::from(id.hpu)
    }

    fn note(&mut self, event: &Event, out: &mut impl Outside) -> bool {
        let (at, hpu) = (self.now, events::hpu(event));
        let [a, b, c, d, e] = event.values;
        let (cluster, place) = (event.unit, a as u8);
        match event.kind {
            events::TASK_SENT => {
                let Some(her) = self.requests.get(&u64::from(d)).cloned() else { return false };
                let task = Task { role: events::role(b), queue: e as u16, feeds_back: c != 0, her };
                self.observer.note(at, Noted::TaskSent { cluster, place, task: &task });
                self.tasks[usize::from(cluster)][usize::from(place)] = Some(task);
            }
            // The hardware reports it in the cycle before the task may be assigned.
            events::DMA_DONE => self.observer.note(at, Noted::DmaDone { cluster, place }),
            events::ASSIGNED => {
                let index = self.index(hpu);
                self.given[index] = place;
                self.observer.note(at, Noted::Assigned { hpu, place });
            }
            events::START => {
                let place = usize::from(self.given[self.index(hpu)]);
                let Some(task) = &self.tasks[usize::from(hpu.cluster)][place] else { return false };
                self.observer.note(at, Noted::Start { hpu, task });
            }
            events::END => self.end(event),
            events::COMMAND => {
                let (slot, command) = events::command(self.words, event);
                self.counters.commands += 1;
                self.observer.note(at, Noted::Command { hpu, slot, command: &command, tenant: None });
            }
            events::RESPONSE => self.observer.note(at, Noted::Response { hpu, slot: place }),
            events::CONFLICTS => self.cores.conflicts += u64::from(a),
            events::MISS => self.cores.misses += 1,
            events::COMMAND_WORDS | events::NOTICE_WORDS => self.words = event.values,
            events::NOTICE => return self.tell(event, out),
            events::CONSOLE => {
                let index = self.index(hpu);
                if a as u8 == b'\n' {
                    let line = std::mem::take(&mut self.lines[index]);
                    self.output.push((hpu, line));
                } else {
                    self.lines[index].push(a as u8);
                }
                return true;
            }
            events::TERMINATE => {
                out.raise(at, DriverEvent::Terminated { hpu: HpuId { cluster, hpu: 0 } });
                return true;
            }
            _ => {}
        }
        false
    }

    /// Ends a task, or records a failure of the program before its first task.
    fn end(&mut self, event: &Event) {
        let [what, size, pc, low, high] = event.values;
        let hpu = events::hpu(event);
        let index = self.index(hpu);
        let address = u64::from(high) << 32 | u64::from(low);
        let outcome = events::outcome(&self.program, what & 0xFF, what >> 8 & 0xFF, pc, address, size);
        if outcome != TaskOutcome::Done {
            self.cores.failed += 1;
            self.lines[index].clear();
        }
        if let TaskOutcome::Faulted(Failure::Fault(
            Fault::Load { .. } | Fault::Store { .. } | Fault::Misaligned { .. },
        )) = outcome
        {
            // The monitor reported it as it left the decoder, but it is not executed.
            self.executed = self.executed.saturating_sub(1);
        }
        if what & events::HAS_TASK == 0 {
            return;
        }
        if matches!(outcome, TaskOutcome::Faulted(_)) {
            self.failures[index].push_back(outcome);
        }
        let place = usize::from(self.given[index]);
        if let Some(task) = &self.tasks[usize::from(hpu.cluster)][place] {
            self.observer.note(self.now, Noted::End { hpu, task, outcome });
        }
    }

    /// Returns the failure of a task for the driver's notice. The notice carries only a part of the reported end.
    fn failed(&mut self, hpu: HpuId, cause: u32, pc: u32, address: u64) -> TaskOutcome {
        if cause == abi::pspin::cause::WATCHDOG {
            return TaskOutcome::TimedOut;
        }
        let index = self.index(hpu);
        let failures = &mut self.failures[index];
        let known = failures.iter().position(|failure| {
            let status = Status::of(*failure, Role::Header, 0, 0);
            (status.cause, status.pc, status.address) == (cause, pc, address)
        });
        let ended = known.and_then(|known| failures.drain(..=known).next_back());
        ended.unwrap_or_else(|| events::outcome(&self.program, events::FAULTED, cause, pc, address, 0))
    }

    /// Passes a notice to the driver on the host.
    fn tell(&mut self, event: &Event, out: &mut impl Outside) -> bool {
        let [kind, cause, context, message, user] = event.values;
        let [pc, low, high, ..] = self.words;
        let descriptor = self.contexts.get(context as usize).map_or(0, |context| context.descriptor);
        let told = match kind {
            1 => DriverEvent::Failed {
                hpu: events::hpu(event),
                role: events::role(cause >> 8),
                message,
                outcome: self.failed(events::hpu(event), cause & 0xFF, pc, u64::from(high) << 32 | u64::from(low)),
                descriptor,
            },
            2 => {
                if user & 1 != 0 {
                    self.open.remove(&message);
                }
                DriverEvent::Idle { message, descriptor, is_free: user & 1 != 0 }
            }
            3 => DriverEvent::Command { user },
            _ => return false,
        };
        out.raise(self.now, told);
        true
    }
}

impl<O: Observer> Unit for Rtl<O> {
    type Observer = O;

    fn now(&self) -> Cycle {
        self.now
    }

    fn next(&self) -> Cycle {
        let is_still = self.is_enabled && self.get(self.ports.idle_o) != 0 && !self.submits && self.open.is_empty();
        let is_idle = is_still && self.writer.is_empty() && self.host.is_empty() && self.registers.is_empty();
        if self.failure().is_some() || is_idle { Cycle::NEVER } else { self.now }
    }

    fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle {
        if !self.is_enabled {
            self.enable();
        }
        while self.now < until {
            if self.next() == Cycle::NEVER {
                // The clock is stopped.
                if until != Cycle::NEVER {
                    self.now = until;
                }
                break;
            }
            if self.step(out) {
                break;
            }
        }
        self.now
    }

    fn load(&mut self, address: u32, bytes: &[u8]) -> bool {
        let Rtl { memories, simulation, .. } = self;
        bytes.iter().enumerate().all(|(at, byte)| {
            let target = address.checked_add(at as u32).and_then(|address| memories.byte(simulation, address));
            target.map(|target| *target = *byte).is_some()
        })
    }

    fn read(&mut self, address: u32, size: u32) -> Option<Vec<u8>> {
        let Rtl { memories, simulation, .. } = self;
        (0..size).map(|at| memories.byte(simulation, address.checked_add(at)?).map(|byte| *byte)).collect()
    }

    fn prepare(&mut self, context: &Rc<ExecutionContext>) {
        self.number(context);
    }

    fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle> {
        let size = u32::try_from(bytes.len()).ok()?;
        let inside = Range { address: Arena::start(Place::Packet), size: self.config.l2_packet.bytes };
        inside.holds(address, size).then(|| self.writer.write(at, address, bytes) + self.config.inbound.write_cycles)
    }

    fn submit(&mut self, her: Her) -> Result<(), (Busy, Her)> {
        let number = self.number(&her.context);
        if self.submits || !self.registers.is_empty() || !self.writer.is_stored(self.now, her.packet.address) {
            return Err((Busy::Cycle, her));
        }
        let ports = self.ports;
        for (port, value) in [
            (ports.her_message_i, her.message.into()),
            (ports.her_flow_i, her.flow.into()),
            (ports.her_eom_i, her.eom.into()),
            (ports.her_address_i, her.packet.address.into()),
            (ports.her_size_i, her.packet.size.into()),
            (ports.her_transfer_i, her.transfer.into()),
            (ports.her_context_i, number as u64),
            (ports.her_user_i, her.user),
            (ports.her_valid_i, 1),
        ] {
            self.set(port, value);
        }
        self.simulation.settle();
        if self.get(ports.her_ready_o) == 0 {
            self.set(ports.her_valid_i, 0);
            return Err((Busy::Queue, her));
        }
        self.submits = true;
        self.counters.accepted += 1;
        self.observer.note(self.now, Noted::HerAccepted(&her));
        *self.open.entry(her.message).or_default() += 1;
        self.requests.insert(her.user, her);
        Ok(())
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn core_counters(&self) -> CoreCounters {
        self.cores
    }

    fn instructions(&self) -> u64 {
        self.executed
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)> {
        std::mem::take(&mut self.output)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref().or_else(|| self.simulation.failure())
    }
}

/// Memories of the hardware by address: indices of their SRAMs.
struct Memories {
    config: Rc<Config>,
    packet: Vec<usize>,
    handler: Vec<usize>,
    program: Vec<usize>,
    l1: Vec<Vec<usize>>,
}

impl Memories {
    fn new(simulation: &Simulation, config: &Rc<Config>) -> Result<Memories, RtlError> {
        // Scope of each SRAM, with the indices of the enclosing instances.
        let mut all: Vec<(Vec<usize>, usize, &str)> = simulation
            .memories()
            .iter()
            .enumerate()
            .map(|(index, memory)| {
                let numbers = memory.scope.split('[').skip(1).filter_map(|text| text.split(']').next()?.parse().ok());
                (numbers.collect(), index, memory.scope.as_str())
            })
            .collect();
        all.sort();
        let of = |part: &str| -> Vec<usize> {
            all.iter().filter(|(_, _, scope)| scope.contains(part)).map(|(_, index, _)| *index).collect()
        };
        let l1 = of(".u_l1.");
        let banks = config.l1.banks as usize;
        let memories = Memories {
            packet: of(".u_l2_packet."),
            handler: of(".u_l2_handler."),
            program: of(".u_program_memory."),
            l1: l1.chunks(banks).map(<[usize]>::to_vec).collect(),
            config: config.clone(),
        };
        let clusters = config.units.clusters as usize;
        if memories.l1.len() != clusters
            || [&memories.packet, &memories.handler, &memories.program].iter().any(|all| all.is_empty())
        {
            return Err(RtlError::NoPort("for each memory".to_owned()));
        }
        Ok(memories)
    }

    /// Returns a byte.
    fn byte<'a>(&self, simulation: &'a mut Simulation, address: u32) -> Option<&'a mut u8> {
        let (banks, width, offset) = match self.locate(address)? {
            (Place::L1(cluster), offset) => (self.l1.get(usize::from(cluster))?, 4, offset),
            (Place::Packet, offset) => (&self.packet, 64, offset),
            (Place::Handler, offset) => (&self.handler, 64, offset),
            (_, offset) => (&self.program, 8, offset),
        };
        let unit = offset as usize / width;
        let memory = banks[unit % banks.len()];
        let row = unit / banks.len();
        simulation.rows(memory).get_mut(row * width + offset as usize % width)
    }

    /// Returns the memory that holds a byte, and its offset there.
    fn locate(&self, address: u32) -> Option<(Place, u32)> {
        let Config { l1, l2_packet, l2_handler, program, units, .. } = &*self.config;
        let of_l1 = (0..units.clusters as u16).map(|cluster| (Place::L1(cluster), l1.bytes));
        let others =
            [(Place::Packet, l2_packet.bytes), (Place::Handler, l2_handler.bytes), (Place::Program, program.bytes)];
        let mut places = of_l1.chain(others);
        places.find_map(|(place, bytes)| {
            let offset = address.wrapping_sub(Arena::start(place));
            (offset < bytes).then_some((place, offset))
        })
    }
}

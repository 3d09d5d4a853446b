//! Handlers on HPUs: where they run, for how long, and how they end.

use abi::device::{PayloadArgs, map, ret};
use abi::portals::{NiFail, Plain};
use hpu::{Fault, Memory, Sharing, Stop, Thread, Window};

use super::message::HandlerError;
use super::{Context, Core, Role, Run, SpinUnit, Task, Wait};
use crate::card::{Card, CardEvent};
use crate::ports::{PacketId, Ports, Slice, Track};

/// Cycles that a handler runs ahead of the others before it yields to simulated time: its plain stores are seen at most
/// this much too early. What synchronises ([`Stop::Sync`]) is exact.
const QUANTUM: u64 = 512;

/// Grain of memory protection, bytes.
const WORD: usize = 8;

impl Card {
    /// Runs a handler, now if its HPU and a context are free.
    pub(super) fn run_task(&mut self, task: Task, ports: &mut impl Ports) {
        self.spin.tasks.push_back(task);
        self.dispatch(ports);
    }

    /// Gives waiting handlers the free contexts, those of the least occupied HPUs first.
    pub(super) fn dispatch(&mut self, ports: &mut impl Ports) {
        while !self.spin.tasks.is_empty() {
            let Some(context) = self.spin.free_context() else { return };
            let Some(task) = self.spin.tasks.pop_front() else { return };
            self.start_handler(context, task, ports);
        }
    }

    fn start_handler(&mut self, context: u16, task: Task, ports: &mut impl Ports) {
        let window = map::CONTEXTS + u32::from(context) * map::CONTEXT_STRIDE;
        let (argument, args) = self.arguments(&task, window);
        let spin = &mut self.spin;
        spin.memory.write(window, &argument);
        let Some(program) = spin.program.as_ref().map(|loaded| loaded.program.device.program.clone()) else { return };
        let stack_top = window + map::CONTEXT_STRIDE;
        let state = self.spin_message(task.message).and_then(|message| message.handlers.state.clone());
        let spin = &mut self.spin;
        let window_on = |base, len, write, sharing| Window { base, len, offset: 0, write, sharing };
        // The runtime's memcpy reads whole aligned words.
        let words = |bytes: usize| bytes.next_multiple_of(WORD) as u32;
        let mut windows = vec![
            window_on(stack_top - spin.config.stack, spin.config.stack, true, Sharing::Private),
            window_on(window, map::ARGS_BYTES, false, Sharing::Private),
            window_on(map::PROGRAM, words(program.program_segment().len()), false, Sharing::Private),
        ];
        if !program.data_segment().is_empty() {
            let bytes = words(program.data_segment().len());
            windows.push(window_on(map::DATA, bytes, true, Sharing::Shared));
        }
        if let Some(state) = &state {
            windows.insert(0, window_on(state.address, state.length, true, Sharing::Shared));
        }
        if let Some(packet) = task.packet
            && task.role == Role::Payload
        {
            let bytes = words(packet.length as usize);
            windows.insert(0, window_on(packet.start, bytes, true, Sharing::Input));
        }
        let now = ports.now();
        let thread = Thread::new(&program, task.handler.entry, stack_top, args);
        spin.runs = spin.runs.wrapping_add(1);
        spin.contexts[usize::from(context)] = Some(Box::new(Context {
            run: spin.runs,
            task,
            thread,
            windows,
            state,
            layout: None,
            stop: None,
            resumed: (now, 0),
            started: now,
            stay: now,
            waits: Wait::No,
        }));
        let core = spin.core(context);
        core.resident += 1;
        core.ready.push_back(context);
        self.next_on_hpu(context, ports);
    }

    /// The argument block of a handler and its argument registers.
    fn arguments(&mut self, task: &Task, window: u32) -> (Vec<u8>, [u32; 3]) {
        let state = self
            .spin_message(task.message)
            .and_then(|message| message.handlers.state.as_ref().map(|state| state.address));
        let state = state.unwrap_or(0);
        match task.role {
            Role::Header => (self.header_argument(task), [window, state, 0]),
            Role::Completion => (Vec::new(), task.args),
            Role::Payload => {
                let user_hdr = self.spin_message(task.message).map_or(0, |message| message.handlers.user_hdr);
                let (base, offset) = task
                    .packet
                    .map_or((0, 0), |packet| (packet.start + task.skip, packet.offset + u64::from(task.skip)));
                let offset = offset.saturating_sub(u64::from(user_hdr));
                let payload = PayloadArgs { length: task.payload_bytes(), offset, base, pad: 0 };
                (payload.as_bytes().to_vec(), [window, state, 0])
            }
        }
    }

    /// Lets the next ready handler of a context's HPU run, if the HPU is free or its handler waits.
    pub(super) fn next_on_hpu(&mut self, context: u16, ports: &mut impl Ports) {
        let core = self.spin.core(context);
        if core.ready.is_empty() {
            return;
        }
        if let Some(occupant) = core.running {
            let resident = self.spin.contexts[usize::from(occupant)].as_ref();
            if resident.is_none_or(|resident| resident.waits == Wait::No) {
                return;
            }
            self.end_stay(occupant, ports);
        }
        let core = self.spin.core(context);
        let Some(next) = core.ready.pop_front() else { return };
        core.running = Some(next);
        if let Some(resident) = self.spin.contexts[usize::from(next)].as_mut() {
            resident.stay = ports.now();
        }
        self.run_on(next, ports);
    }

    /// Runs a handler until it needs the card, and schedules what it needs for the time at which it does.
    pub(super) fn run_on(&mut self, context: u16, ports: &mut impl Ports) {
        let spin = &mut self.spin;
        let (Some(loaded), Some(resident)) = (&mut spin.program, &mut spin.contexts[usize::from(context)]) else {
            return;
        };
        let before = resident.thread.cycles();
        resident.resumed = (ports.now(), before);
        let limit = (before + QUANTUM).min(spin.config.watchdog_cycles);
        if resident.layout != Some(spin.memory.layout()) {
            resident.layout = Some(spin.memory.locate(&mut resident.windows));
        }
        let (arena, watched) = (spin.memory.arena(), &mut spin.watched);
        let mut memory = Memory { arena, windows: &resident.windows, watched };
        let mut engine = loaded.program.engine.borrow_mut();
        engine.swap_predictor(&mut loaded.predictor);
        let stop = engine.run(&mut resident.thread, &mut memory, limit);
        engine.swap_predictor(&mut loaded.predictor);
        resident.stop = Some(stop);
        let ran = spin.clock.time(resident.thread.cycles() - before);
        let run = resident.run;
        ports.schedule(ports.now() + ran, CardEvent::Hpu(context, run));
    }

    /// The time has come at which a handler stopped, or for which it has waited.
    pub(crate) fn hpu_stopped(&mut self, context: u16, run: Run, ports: &mut impl Ports) {
        let resident = self.spin.contexts[usize::from(context)].as_mut();
        let Some(resident) = resident.filter(|resident| resident.run == run) else { return };
        if resident.waits == Wait::Time {
            resident.waits = Wait::No;
            return self.wake(context, ports);
        }
        let Some(stop) = resident.stop.take() else { return };
        let over = resident.thread.cycles() >= self.spin.config.watchdog_cycles;
        match stop {
            Stop::Return(value) => self.end_handler(context, Ok(value), ports),
            Stop::Fault(fault) => {
                let pc = resident.thread.pc();
                let place = self.place(pc);
                let detail = u64::from(match fault {
                    Fault::Load { addr, .. } | Fault::Store { addr, .. } | Fault::Misaligned { addr, .. } => addr,
                    Fault::Fetch { pc } | Fault::Illegal { pc, .. } | Fault::Breakpoint { pc } => pc,
                });
                let message = format!("failed: {fault}{place}");
                self.end_handler(context, Err(HandlerError { fail: NiFail::Segv, message, detail }), ports);
            }
            Stop::Call { .. } | Stop::Sync | Stop::Limit if over => {
                let cycles = self.spin.config.watchdog_cycles;
                let place = self.place(resident_pc(self.spin.contexts[usize::from(context)].as_deref()));
                let message = format!("was killed after {cycles} cycles (accelerator.watchdog_cycles){place}");
                let error = HandlerError { fail: NiFail::HandlerTimeout, message, detail: cycles };
                self.end_handler(context, Err(error), ports);
            }
            Stop::Sync | Stop::Limit => self.run_on(context, ports),
            Stop::Call { number, argument } => self.command(context, number, argument, ports),
        }
    }

    fn place(&self, pc: u32) -> String {
        let location = self.spin.program.as_ref().and_then(|loaded| loaded.program.device.program.line(pc));
        location.map_or_else(String::new, |place| format!(", {}:{}", place.file, place.line))
    }

    /// Takes a handler that waits off its HPU, if another is ready to run there.
    pub(super) fn deschedule(&mut self, context: u16, ports: &mut impl Ports) {
        if self.spin.core(context).ready.is_empty() {
            return;
        }
        self.end_stay(context, ports);
        self.next_on_hpu(context, ports);
    }

    /// A handler that has waited can go on.
    pub(super) fn wake(&mut self, context: u16, ports: &mut impl Ports) {
        let core = self.spin.core(context);
        if core.running == Some(context) {
            self.run_on(context, ports);
        } else {
            core.ready.push_back(context);
            self.next_on_hpu(context, ports);
        }
    }

    pub(super) fn end_stay(&mut self, context: u16, ports: &mut impl Ports) {
        let (now, hpus) = (ports.now(), self.spin.hpus.len() as u32);
        let Some(resident) = self.spin.contexts[usize::from(context)].as_ref() else { return };
        let (start, task) = (resident.stay, &resident.task);
        if ports.tracing() {
            ports.slice(Slice {
                track: Track::Hpu(u32::from(context) % hpus),
                start,
                end: now,
                name: &task.handler.name,
                packet: task.packet.map(|packet| PacketId { message: task.message, offset: packet.offset }),
                bytes: task.packet.map(|_| task.payload_bytes()),
            });
        }
        let core = self.spin.core(context);
        core.busy += now - start;
        core.running = None;
    }

    fn end_handler(&mut self, context: u16, outcome: Result<u32, HandlerError>, ports: &mut impl Ports) {
        self.end_stay(context, ports);
        let Some(resident) = self.spin.contexts[usize::from(context)].take() else { return };
        self.spin.core(context).resident -= 1;
        self.spin.drop_transfers(context);
        let bytes = if resident.task.role == Role::Payload { resident.task.payload_bytes() } else { 0 };
        let full = bytes == u64::from(self.spin.mtu);
        let (instructions, cycles) = (resident.thread.instructions(), resident.thread.cycles());
        let occupancy = ports.now() - resident.started;
        let stats = self.handler_stats(&resident.task.handler.name);
        stats.add_call(instructions, cycles, occupancy, bytes, full);
        self.next_on_hpu(context, ports);
        match outcome {
            Ok(value) => self.handler_returned(&resident.task, value, ports),
            Err(error) => self.handler_failed(&resident.task, error, ports),
        }
        self.dispatch(ports);
    }

    /// A handler gives up by itself (`abort`).
    pub(super) fn abort_handler(&mut self, context: u16, ports: &mut impl Ports) {
        let (fail, detail) = (NiFail::HandlerFail, u64::from(ret::FAIL));
        self.end_handler(context, Err(HandlerError { fail, message: "aborted".into(), detail }), ports);
    }

    /// A command of a handler addresses memory that is not its own.
    pub(super) fn command_fault(&mut self, context: u16, what: String, addr: u32, ports: &mut impl Ports) {
        // The handler has stopped behind the command, an uncompressed instruction.
        let place = self.place(resident_pc(self.spin.contexts[usize::from(context)].as_deref()).wrapping_sub(4));
        let error = HandlerError { fail: NiFail::Segv, message: format!("{what}{place}"), detail: u64::from(addr) };
        self.end_handler(context, Err(error), ports);
    }
}

fn resident_pc(context: Option<&Context>) -> u32 {
    context.map_or(0, |context| context.thread.pc())
}

impl SpinUnit {
    pub(super) fn core(&mut self, context: u16) -> &mut Core {
        let hpus = self.hpus.len();
        &mut self.hpus[usize::from(context) % hpus]
    }

    /// A free context of the HPU with the fewest resident handlers.
    fn free_context(&self) -> Option<u16> {
        let hpus = self.hpus.len();
        (0..self.contexts.len())
            .filter(|context| self.contexts[*context].is_none())
            .min_by_key(|context| (self.hpus[context % hpus].resident, *context))
            .map(|context| context as u16)
    }
}

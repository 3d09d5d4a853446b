// SPDX-License-Identifier: Apache-2.0
//! Messages on processes of handlers (PsPIN §III-B, §III-D2): the header handler first and alone, payload handlers in
//! parallel, the completion handler last.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hpu::Symbols;
use machine::Pspin;
use pspin_nic::report::{Commands, DonePackets, Handlers, HpuUse, Latencies, Packets, Report, Tally, Throughput};

use crate::clock::{Clock, ticks};
use crate::image::Image;
use crate::layout::Outcome;
use crate::process::{Files, Memory, NativeError, Parameters, Process};

/// Outcomes of handlers (`enum native_outcome`).
mod outcome {
    pub const DONE: u32 = 0;
    pub const SKIPPED: u32 = 1;
    pub const SIGNAL: u32 = 2;
    pub const SYSTEM_CALL: u32 = 3;
    pub const WATCHDOG: u32 = 4;
    pub const COMMAND: u32 = 5;
    pub const HOST: u32 = 6;
    pub const REPORTED: u32 = 7;
}

/// Output of the engine.
#[derive(Debug)]
pub enum Event {
    /// Line that a handler prints.
    Line(String),
    /// Failure of a handler.
    Failed(String),
    /// A message was given up.
    Forgotten(u64),
}

/// Context of the card.
struct Context {
    process: Process,
    /// Addresses of its header, payload and completion handler; 0 for none.
    handlers: [u32; 3],
    free: Vec<u32>,
    /// Packet in each slot.
    tasks: Vec<Option<Task>>,
    /// Slots with HPUs, in the order of their start.
    running: VecDeque<u32>,
    /// Times of its latest ends.
    ends: VecDeque<Instant>,
}

/// Packet in a slot.
#[derive(Clone, Copy)]
struct Task {
    message: u64,
    is_last: bool,
    /// Handlers given to an HPU.
    given: [u32; 3],
    /// Ticks of the packet's arrival.
    arrived: u64,
    bytes: u32,
}

/// Progress of a message with several packets.
struct Message {
    context: usize,
    /// Packets that wait for the header handler or for a slot: bytes, bytes copied, last, and ticks of arrival.
    waiting: VecDeque<(Vec<u8>, u32, bool, u64)>,
    header: Header,
    /// Packets with payload handlers.
    payloads: u32,
    /// Set once its last packet has arrived.
    has_ended: bool,
    /// Slot of the last packet, once its payload handler has ended.
    last: Option<u32>,
    latest: Instant,
}

/// Progress of the header handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    None,
    Running,
    Done,
    Failed,
}

/// Parameters of the engine.
pub struct Setup<'a> {
    /// Executable.
    pub image: Image,
    /// Unit whose sizes the card has.
    pub config: &'a Pspin,
    /// Names of the contexts.
    pub contexts: Vec<String>,
    /// Threads and memories of each.
    pub parameters: Parameters,
    /// Nanoseconds after which a handler is killed.
    pub watchdog_ns: u64,
    /// Nanoseconds without a packet after which a message is given up.
    pub idle_ns: u64,
    /// Port, one write to which sends a packet.
    pub port: OwnedFd,
    /// Rate of the time-stamp counter.
    pub clock: Clock,
}

/// Card whose handlers are machine code of this computer.
pub struct Engine {
    image: Image,
    data: Memory,
    port: OwnedFd,
    bell: OwnedFd,
    contexts: Vec<Context>,
    messages: BTreeMap<u64, Message>,
    clusters: u32,
    clock: Clock,
    watchdog: u64,
    idle: Duration,
    start: u64,
    first: Option<u64>,
    last: u64,
    latencies: Latencies,
    requests: Latencies,
    roles: [Tally; 3],
    packets: Packets,
    done: DonePackets,
    used: Vec<bool>,
    failures: [u64; 2],
    idle_resets: u64,
    peak: u32,
    swept: Instant,
}

impl Engine {
    /// Starts the processes, and initialises the program.
    ///
    /// # Errors
    /// [`NativeError`], or the reason why `init_handlers` has failed as [`NativeError::Start`].
    pub fn new(setup: Setup<'_>) -> Result<Engine, NativeError> {
        let Setup { image, config, contexts, parameters, watchdog_ns, idle_ns, port, clock } = setup;
        let data = Memory::new((image.data.len() as u64).max(1).next_multiple_of(4096))?;
        data.write(0, &image.data);
        // SAFETY: no pointers.
        let bell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if bell < 0 {
            let error = std::io::Error::last_os_error();
            return Err(NativeError::System { step: "create an event", error });
        }
        // SAFETY: the system call has just returned this descriptor.
        let bell = unsafe { OwnedFd::from_raw_fd(bell) };
        let mut engine = Engine {
            image,
            data,
            port,
            bell,
            contexts: Vec::new(),
            messages: BTreeMap::new(),
            clusters: config.units.clusters,
            clock,
            watchdog: clock.ticks(watchdog_ns),
            idle: Duration::from_nanos(idle_ns),
            start: ticks(),
            first: None,
            last: 0,
            latencies: Latencies::default(),
            requests: Latencies::default(),
            roles: [Tally::default(); 3],
            packets: Packets::default(),
            done: DonePackets::default(),
            used: vec![false; parameters.hpus as usize * contexts.len()],
            failures: [0; 2],
            idle_resets: 0,
            peak: 0,
            swept: Instant::now(),
        };
        let has_one = contexts.len() == 1;
        for name in contexts {
            let process = Process::new(config, &parameters, &engine.files())?;
            if has_one {
                process.write_handler_memory(&engine.image.handler_data);
            }
            let entry = |suffix: &str| engine.image.symbols.entry(&format!("{name}{suffix}")).unwrap_or(0);
            let handlers = ["_hh", "_ph", "_th"].map(entry);
            let slots = process.slots();
            engine.contexts.push(Context {
                process,
                handlers,
                free: (0..slots).rev().collect(),
                tasks: vec![None; slots as usize],
                running: VecDeque::new(),
                ends: VecDeque::new(),
            });
        }
        engine.initialise()?;
        engine.start = ticks();
        Ok(engine)
    }

    fn files(&self) -> Files<'_> {
        Files { image: &self.image, data: &self.data, port: self.port.as_fd(), bell: self.bell.as_fd() }
    }

    /// Runs `init_handlers` on the first HPU of the first context.
    fn initialise(&mut self) -> Result<(), NativeError> {
        let Some(init) = self.image.symbols.entry("native_init") else {
            return Err(NativeError::Start("the program lacks its runtime".to_owned()));
        };
        let Some(context) = self.contexts.first_mut() else { return Ok(()) };
        let slot = context.free.pop().expect("all slots are free");
        context.process.write_packet(slot, &[0; 64], 64, 0, 0);
        context.process.push(slot, [init, 0, 0]);
        let end = Instant::now() + Duration::from_secs(5);
        let results = loop {
            if let Some((_, results)) = context.process.results(slot) {
                break results;
            }
            if let Some(reason) = context.process.ended() {
                return Err(NativeError::Start(format!("init_handlers() has failed: the process {reason}")));
            }
            context.process.watch(self.watchdog.max(self.clock.ticks(1_000_000_000)));
            if Instant::now() > end {
                return Err(NativeError::Start("init_handlers() has not returned after 5 s".to_owned()));
            }
            std::thread::sleep(Duration::from_micros(100));
        };
        context.free.push(slot);
        if results[0].outcome == outcome::DONE {
            return Ok(());
        }
        let text = ending(&results[0], &self.image.symbols);
        Err(NativeError::Start(format!("init_handlers() {text}")))
    }

    /// Returns the bell, which rings when handlers print, and at the end of tasks for which the engine waits.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Returns true while each context has room for `packets` packets.
    pub fn has_room(&self, packets: usize) -> bool {
        self.contexts.iter().all(|context| context.free.len() >= packets)
    }

    /// Returns true if handlers run or packets wait.
    pub fn is_busy(&self) -> bool {
        self.contexts.iter().any(|context| !context.running.is_empty())
    }

    /// Takes a packet of a message for a context.
    pub fn arrive(&mut self, context: usize, bytes: Vec<u8>, message: u64, is_last: bool, transfer: u32) {
        let now = ticks();
        self.packets.arrived += 1;
        self.packets.bytes += bytes.len() as u64;
        self.first.get_or_insert(now);
        if bytes.is_empty() || bytes.len() > self.contexts[context].process.most_bytes() {
            self.packets.dropped.size += 1;
            return;
        }
        let handlers = self.contexts[context].handlers;
        if is_last && !self.messages.contains_key(&message) {
            // The only packet of its message: one HPU runs all of its handlers.
            if let Some(slot) = self.place(context, &bytes, message, true, transfer, now) {
                self.give(context, slot, handlers);
            }
            return;
        }
        let progress = self.messages.entry(message).or_insert_with(|| Message {
            context,
            waiting: VecDeque::new(),
            header: if handlers[0] == 0 { Header::Done } else { Header::None },
            payloads: 0,
            has_ended: false,
            last: None,
            latest: Instant::now(),
        });
        progress.latest = Instant::now();
        progress.has_ended |= is_last;
        progress.waiting.push_back((bytes, transfer, is_last, now));
        self.pump(message);
        self.set_bell();
    }

    /// Requests the bell while messages of several packets are in progress, whose next step waits for the end of another.
    fn set_bell(&self) {
        for context in &self.contexts {
            context.process.want_bell(!self.messages.is_empty());
        }
    }

    /// Writes a packet into a slot; `None` and a drop without a free one.
    fn place(
        &mut self,
        context: usize,
        bytes: &[u8],
        message: u64,
        is_last: bool,
        transfer: u32,
        arrived: u64,
    ) -> Option<u32> {
        let home = message as u32 % self.clusters;
        let Context { process, free, tasks, .. } = &mut self.contexts[context];
        let Some(slot) = free.pop() else {
            self.packets.dropped.l2 += 1;
            return None;
        };
        process.write_packet(slot, bytes, transfer, message as u32, home);
        tasks[slot as usize] = Some(Task { message, is_last, given: [0; 3], arrived, bytes: bytes.len() as u32 });
        Some(slot)
    }

    /// Gives handlers of a packet to an HPU.
    fn give(&mut self, context: usize, slot: u32, handlers: [u32; 3]) {
        let Context { process, tasks, running, .. } = &mut self.contexts[context];
        if let Some(task) = &mut tasks[slot as usize] {
            task.given = handlers;
        }
        running.push_back(slot);
        process.push(slot, handlers);
        self.peak = self.peak.max((running.len() as u32).min(process.hpus()));
    }

    /// Starts the handlers of a message that may start.
    fn pump(&mut self, number: u64) {
        loop {
            let Some(message) = self.messages.get_mut(&number) else { return };
            let (context, header) = (message.context, message.header);
            let handlers = self.contexts[context].handlers;
            if header == Header::Running || self.contexts[context].free.is_empty() {
                return;
            }
            let Some((bytes, transfer, is_last, arrived)) = message.waiting.pop_front() else {
                return self.complete(number);
            };
            match header {
                Header::None => message.header = Header::Running,
                Header::Done => message.payloads += 1,
                Header::Failed | Header::Running => {
                    self.packets.skipped += 1;
                    continue;
                }
            }
            let Some(slot) = self.place(context, &bytes, number, is_last, transfer, arrived) else { return };
            let given = if header == Header::None { [handlers[0], 0, 0] } else { [0, handlers[1], 0] };
            self.give(context, slot, given);
        }
    }

    /// Ends a message whose payload handlers have all ended: starts its completion handler.
    fn complete(&mut self, number: u64) {
        let Some(message) = self.messages.get(&number) else { return };
        if !message.has_ended || message.payloads > 0 || message.header == Header::Running {
            return;
        }
        let (context, last) = (message.context, message.last);
        self.messages.remove(&number);
        if let Some(slot) = last {
            let handler = self.contexts[context].handlers[2];
            self.give(context, slot, [0, 0, handler]);
        }
    }

    /// Processes ended tasks, output and limits.
    ///
    /// # Errors
    /// [`NativeError`] when the card cannot go on.
    pub fn collect(&mut self, events: &mut Vec<Event>) -> Result<(), NativeError> {
        let mut bytes = [0_u8; 8];
        // SAFETY: a buffer of this length.
        unsafe { libc::read(self.bell.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        for context in 0..self.contexts.len() {
            self.collect_output(context, events);
            let mut index = 0;
            while let Some(slot) = self.contexts[context].running.get(index).copied() {
                match self.contexts[context].process.results(slot) {
                    None => index += 1,
                    Some((hpu, results)) => {
                        self.contexts[context].running.remove(index);
                        self.ended(context, slot, hpu, &results, events);
                    }
                }
            }
            self.collect_output(context, events);
            if let Some(hpu) = self.contexts[context].process.terminated() {
                let (cluster, hpu) = self.contexts[context].process.place(hpu);
                return Err(NativeError::Terminated { hpu, cluster });
            }
            self.contexts[context].process.watch(self.watchdog);
            if let Some(reason) = self.contexts[context].process.ended() {
                self.restart(context, &reason, events)?;
            }
        }
        if self.swept.elapsed() > self.idle.min(Duration::from_millis(100)) {
            self.sweep(events);
        }
        Ok(())
    }

    fn collect_output(&self, context: usize, events: &mut Vec<Event>) {
        let process = &self.contexts[context].process;
        for hpu in 0..process.hpus() {
            let (lines, lost) = process.take_output(hpu);
            let (cluster, within) = process.place(hpu);
            events.extend(lines.into_iter().map(|line| Event::Line(format!("[{cluster},{within}] {line}"))));
            if lost > 0 {
                events.push(Event::Line(format!("[{cluster},{within}] ({lost} lines lost)")));
            }
        }
    }

    /// Processes the end of handlers of a packet.
    fn ended(&mut self, context: usize, slot: u32, hpu: u32, results: &[Outcome; 3], events: &mut Vec<Event>) {
        let Some(task) = self.contexts[context].tasks[slot as usize] else { return };
        let hpus = self.contexts[context].process.hpus();
        self.used[context * hpus as usize + hpu as usize] = true;
        let (mut failed, mut last_outcome, mut end) = (None, outcome::SKIPPED, task.arrived);
        let mut begin = None;
        for (role, (result, handler)) in results.iter().zip(task.given).enumerate() {
            if handler == 0 || result.outcome == outcome::SKIPPED {
                continue;
            }
            self.roles[role].add(self.clock.ns(result.start, result.end));
            begin = begin.or(Some(result.start));
            (last_outcome, end) = (result.outcome, result.end.max(end));
            if result.outcome != outcome::DONE {
                failed = Some(role);
                let killed = result.outcome == outcome::WATCHDOG;
                self.failures[usize::from(killed)] += 1;
                let (cluster, within) = self.contexts[context].process.place(hpu);
                events.push(Event::Failed(format!(
                    "the {} handler of message {} on HPU {within} of cluster {cluster} {}",
                    ["header", "payload", "completion"][role],
                    task.message,
                    ending(result, &self.image.symbols)
                )));
            }
        }
        let number = task.message;
        let header_failed = failed == Some(0);
        if let Some(message) = self.messages.get_mut(&number) {
            if message.header == Header::Running {
                message.header = if header_failed { Header::Failed } else { Header::Done };
                if !header_failed {
                    // The payload handler of the same packet follows.
                    message.payloads += 1;
                    let handlers = self.contexts[context].handlers;
                    self.give(context, slot, [0, handlers[1], 0]);
                    self.pump(number);
                    return;
                }
            } else {
                message.payloads -= 1;
                if task.is_last && self.contexts[context].handlers[2] != 0 {
                    message.last = Some(slot);
                    self.pump(number);
                    self.set_bell();
                    return;
                }
            }
        }
        self.finish(context, slot, task, last_outcome, begin.unwrap_or(end), end);
        self.pump(number);
        self.set_bell();
    }

    /// Frees the slot of a packet after its last handler.
    fn finish(&mut self, context: usize, slot: u32, task: Task, last_outcome: u32, begin: u64, end: u64) {
        let Context { free, tasks, .. } = &mut self.contexts[context];
        tasks[slot as usize] = None;
        free.push(slot);
        let count = match last_outcome {
            outcome::DONE => &mut self.packets.done,
            outcome::SKIPPED => &mut self.packets.skipped,
            outcome::WATCHDOG => &mut self.packets.timed_out,
            _ => &mut self.packets.faulted,
        };
        *count += 1;
        self.last = self.last.max(end);
        self.latencies.add(self.clock.ns(task.arrived, end));
        self.requests.add(self.clock.ns(begin, end));
        if last_outcome == outcome::DONE {
            let since = |at| self.clock.ns(self.start, at);
            self.done.add(since(task.arrived), since(end), task.bytes.into());
        }
    }

    /// Starts the process of a context again; the handlers that it ran have failed.
    fn restart(&mut self, context: usize, reason: &str, events: &mut Vec<Event>) -> Result<(), NativeError> {
        let ends = &mut self.contexts[context].ends;
        ends.push_back(Instant::now());
        if ends.len() > 10 {
            ends.pop_front();
        }
        if ends.len() == 10 && ends[0].elapsed() < Duration::from_secs(1) {
            return Err(NativeError::Ends(reason.to_owned()));
        }
        events.push(Event::Failed(format!(
            "the handlers' process {reason}, because a handler has overwritten its runtime; it starts again"
        )));
        self.failures[0] += 1;
        let untaken = self.contexts[context].process.untaken();
        let running = std::mem::take(&mut self.contexts[context].running);
        let (waiting, lost): (Vec<u32>, Vec<u32>) = running.into_iter().partition(|slot| untaken.contains(slot));
        for slot in lost {
            let Some(task) = self.contexts[context].tasks[slot as usize] else { continue };
            if let Some(message) = self.messages.get_mut(&task.message) {
                message.header = Header::Failed;
                message.payloads = message.payloads.saturating_sub(1);
            }
            let now = ticks();
            self.finish(context, slot, task, outcome::SIGNAL, now, now);
        }
        let files = Files { image: &self.image, data: &self.data, port: self.port.as_fd(), bell: self.bell.as_fd() };
        self.contexts[context].process.start(&files)?;
        for slot in waiting {
            let given = self.contexts[context].tasks[slot as usize].map_or([0; 3], |task| task.given);
            self.give(context, slot, given);
        }
        Ok(())
    }

    /// Gives up messages without packets for long.
    fn sweep(&mut self, events: &mut Vec<Event>) {
        self.swept = Instant::now();
        let idle = self.idle;
        let is_idle = |message: &Message| {
            message.latest.elapsed() > idle && message.payloads == 0 && message.header != Header::Running
        };
        let given_up: Vec<u64> =
            self.messages.iter().filter(|(_, message)| is_idle(message)).map(|(n, _)| *n).collect();
        for number in given_up {
            self.messages.remove(&number);
            self.idle_resets += 1;
            events.push(Event::Forgotten(number));
        }
    }

    /// Returns the results so far. A cycle is a nanosecond.
    pub fn report(&self, machine: &str) -> Report {
        let mut commands = Commands::default();
        for context in &self.contexts {
            for hpu in 0..context.process.hpus() {
                let shared = context.process.shared(hpu);
                let value = |word: &std::sync::atomic::AtomicU64| word.load(std::sync::atomic::Ordering::SeqCst);
                commands.send += value(&shared.sent);
                commands.sent_bytes += value(&shared.sent_bytes);
                commands.to_host += value(&shared.to_host);
                commands.host_write_bytes += value(&shared.to_host_bytes);
                commands.from_host += value(&shared.from_host);
                commands.host_read_bytes += value(&shared.from_host_bytes);
                commands.host_direct += value(&shared.host_direct);
            }
        }
        let cycles = self.first.map_or(0, |first| self.clock.ns(first, self.last));
        let [header, payload, completion] = self.roles.map(|role| role.spread());
        let rates = |passed: pspin_nic::report::Passed| Throughput {
            in_gbit_s: passed.gbit_s(1.0),
            packets_per_us: passed.per_us(1.0),
            ..Throughput::default()
        };
        let busy: u64 = self.roles.iter().map(Tally::sum).sum();
        let mut packets = self.packets;
        // Packets of messages that never ended.
        packets.reset += self.messages.values().map(|message| message.waiting.len() as u64).sum::<u64>();
        Report {
            machine: machine.to_owned(),
            engine: "native".to_owned(),
            cycles,
            packets,
            latency_ns: self.latencies.summary(1.0),
            request_ns: self.requests.summary(1.0),
            handler_cycles: Handlers { header, payload, completion },
            run_throughput: Throughput {
                out_gbit_s: commands.sent_bytes as f64 * 8.0 / cycles.max(1) as f64,
                ..rates(self.done.over(cycles))
            },
            throughput: rates(self.done.steady()),
            hpus: HpuUse {
                total: self.used.len() as u32,
                used: self.used.iter().filter(|used| **used).count() as u32,
                mean_busy: busy as f64 / cycles.max(1) as f64,
                peak_busy: self.peak,
            },
            commands,
            faults: self.failures[0],
            watchdog: self.failures[1],
            idle_resets: self.idle_resets,
            ..Report::default()
        }
    }

    /// Returns the number of packets that the port did not take, and of RDMA puts.
    pub fn unsent(&self) -> (u64, u64) {
        let mut sums = (0, 0);
        for context in &self.contexts {
            for hpu in 0..context.process.hpus() {
                let shared = context.process.shared(hpu);
                sums.0 += shared.unsent.load(std::sync::atomic::Ordering::SeqCst);
                sums.1 += shared.puts.load(std::sync::atomic::Ordering::SeqCst);
            }
        }
        sums
    }
}

/// Describes the end of a handler, with function and line.
fn ending(result: &Outcome, symbols: &Symbols) -> String {
    let Outcome { outcome, pc, code, bytes, address, .. } = *result;
    let mut text = match outcome {
        outcome::SIGNAL => match i32::try_from(code) {
            Ok(libc::SIGSEGV | libc::SIGBUS) => {
                format!("failed: an access to {address:#x}, which is no memory of the card")
            }
            Ok(libc::SIGILL) => "failed: an illegal instruction, or abort()".to_owned(),
            Ok(libc::SIGFPE) => "failed: a division by zero or an overflow of one".to_owned(),
            _ => format!("failed: signal {code}"),
        },
        outcome::SYSTEM_CALL => format!("failed: it called the system (call {code}), which handlers may not"),
        outcome::WATCHDOG => "killed by the watchdog".to_owned(),
        outcome::COMMAND => {
            format!("failed: a command uses {bytes} bytes at {address:#x}, which are not the handler's")
        }
        outcome::HOST => format!("failed: a command uses host memory at {address:#x}, which the IOMMU refuses"),
        outcome::REPORTED => format!("failed: it has reported error {code}"),
        other => format!("failed: unknown outcome {other}"),
    };
    if let Some(function) = symbols.function(pc) {
        text += &format!(" in {function}");
    }
    if let Some(place) = symbols.line(pc) {
        text += &format!(" ({}:{})", place.file, place.line);
    }
    text
}

// SPDX-License-Identifier: Apache-2.0
//! Single-steps a stopped thread and finds its polling loop.

use super::loop_analysis::{self, Exempt, ExitCause};
use super::polling_loop::{Location, NotPolling, Polled, PollingLoop};
use super::rank_state::RecentLoops;
use super::recurrence::{self, Recurrence};
use super::single_step::{Access, Step, Write, register_value};
use super::stopped_thread::StoppedThread;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, InstructionInfoOptions, OpAccess};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Number of instructions after which a thread without a loop counts as computing. An iteration with a nanosleep call
/// has a few hundred.
const STEPS: usize = 2000;
/// Number of instructions executed in the first inspection if a thread keeps returning to the same locations. Each
/// further inspection doubles it, up to eight times as many.
const MORE_STEPS: usize = 3000;
const MAX_DOUBLINGS: u32 = 3;
/// Maximum duration of the first inspection, since steps take long on a busy machine. Each further inspection may take
/// twice as long.
const LONGEST: Duration = Duration::from_millis(500);
/// Number of instructions after which a loop without new locations counts as returning to the same ones.
const FEW_STEPS: usize = 160;
/// Number of steps between counts of the locations.
const CHUNK: usize = 20;
/// New locations per step: minimum for a computing thread, and maximum for one that returns to the same locations.
const OFTEN: f64 = 1.0 / 16.0;
const RARELY: f64 = 1.0 / 64.0;
/// Number of instructions after which a thread is not in a known loop.
const RECALL: usize = 1000;
/// Minimum number of analyzed iterations of a loop.
const ROUNDS: usize = 4;
/// Maximum number of locations that a polling loop accesses.
const MAX_LOCATIONS: usize = 600;
/// Maximum length of an instruction in bytes.
const INSTRUCTION: usize = 15;

/// Steps of a thread so far.
pub struct StepTrace {
    code: Code,
    steps: Vec<Step>,
    recurrence: Recurrence,
    /// Indices of the steps by instruction address.
    visits: BTreeMap<u64, Vec<usize>>,
    locations: BTreeSet<Location>,
    /// Number of locations after each [`CHUNK`] of steps.
    locations_by_chunk: Vec<usize>,
    exempt: Exempt,
    most_steps: usize,
    /// Maximum duration of a search, and the end of the present one.
    longest: Duration,
    until: Instant,
    /// Wait condition of a possible polling loop that may end by itself.
    suspect: Option<loop_analysis::WaitCondition>,
}

impl StepTrace {
    /// Starts a trace at the next instruction of a thread with this number of earlier inspections.
    pub fn new(thread: &StoppedThread, inspections: u32) -> StepTrace {
        StepTrace {
            code: Code { decoded: BTreeMap::new(), factory: InstructionInfoFactory::new() },
            steps: Vec::new(),
            recurrence: Recurrence::default(),
            visits: BTreeMap::new(),
            locations: BTreeSet::new(),
            locations_by_chunk: Vec::new(),
            exempt: exempt(thread.tid()),
            most_steps: MORE_STEPS << inspections.min(MAX_DOUBLINGS),
            longest: LONGEST * (1 << inspections.min(MAX_DOUBLINGS)),
            until: Instant::now(),
            suspect: None,
        }
    }

    /// Steps the thread until a polling loop is found, and stops it at a step of the loop at which it holds no lock.
    /// With `within`, the search ends when the thread leaves these instructions.
    ///
    /// # Errors
    /// [`NotPolling`] when the thread does not poll, or that is unknown. After [`NotPolling::Blocks`], which is
    /// returned before the blocking step, the search can be continued.
    pub fn find_loop(
        &mut self,
        thread: &StoppedThread,
        within: Option<&BTreeSet<u64>>,
        disturbed: &dyn Fn() -> bool,
    ) -> Result<PollingLoop, NotPolling> {
        self.until = Instant::now() + self.longest;
        while self.goes_on() {
            let registers = thread.registers()?;
            let head = registers.rip;
            if within.is_some_and(|code| !code.contains(&head)) {
                return Err(NotPolling::Computes);
            }
            if let Some(from) = self.recurrence.find(&self.steps, &registers, || thread.vectors()) {
                return exact(thread, &self.steps[from..], disturbed);
            }
            if let Some(waits) = self.judge(&registers) {
                match waits.ends {
                    ExitCause::Writes | ExitCause::Tries => return self.inferred(thread, waits, disturbed),
                    ExitCause::Chance if self.steps.len() >= FEW_STEPS && self.fresh_share() == 0.0 => {
                        return self.inferred(thread, waits, disturbed);
                    }
                    // The thread is not stopped, and more steps would not change the result.
                    ExitCause::Work if self.steps.len() >= FEW_STEPS && self.fresh_share() < RARELY => {
                        return Err(NotPolling::Suspect);
                    }
                    // It may be a pause within a loop that polls.
                    ExitCause::CpuTime => drop(self.suspect.get_or_insert(waits)),
                    ExitCause::Chance | ExitCause::Work => self.suspect = Some(waits),
                }
            }
            let step = self.code.decode(thread, registers);
            if (self.steps.is_empty() || step.calls_the_kernel())
                && let Some(obstacle) = thread.obstacle(&registers)
            {
                self.recurrence.forget(self.steps.len());
                return Err(obstacle);
            }
            self.visits.entry(head).or_default().push(self.steps.len());
            let accessed = step.reads.iter().map(|access| access.location).chain(step.written());
            self.locations.extend(accessed);
            if self.steps.len().is_multiple_of(CHUNK) {
                self.locations_by_chunk.push(self.locations.len());
            }
            self.steps.push(step);
            // The first step may restart an interrupted system call.
            let may_sleep = self.steps.len() == 1 || self.steps.last().is_some_and(Step::calls_the_kernel);
            thread.step(may_sleep, disturbed)?;
            self.code.complete(thread, self.steps.last_mut());
            self.recurrence.note(&self.steps);
        }
        match self.suspect.take() {
            Some(waits) if waits.ends == ExitCause::Chance && self.fresh_share() == 0.0 => {
                self.inferred(thread, waits, disturbed)
            }
            Some(waits) if waits.ends == ExitCause::CpuTime => Err(NotPolling::Computes),
            suspect if self.fresh_share() < RARELY && (suspect.is_some() || self.calls_the_kernel()) => {
                Err(NotPolling::Suspect)
            }
            _ => Err(NotPolling::Computes),
        }
    }

    /// Returns the number of inspections after which a trace may have as many steps as this one; `None` if it is empty.
    pub fn inspections_needed(&self) -> Option<u32> {
        let enough = (0..MAX_DOUBLINGS).find(|&inspections| self.steps.len() <= MORE_STEPS << inspections);
        (!self.steps.is_empty()).then(|| enough.unwrap_or(MAX_DOUBLINGS))
    }

    /// Returns the address of the last instruction.
    pub fn at(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.registers.rip)
    }

    /// Returns the addresses of the instructions so far.
    pub fn code(&self) -> BTreeSet<u64> {
        self.visits.keys().copied().collect()
    }

    /// Returns true if the trace contains system calls, which are rare in computing threads.
    fn calls_the_kernel(&self) -> bool {
        self.steps.iter().any(Step::calls_the_kernel)
    }

    /// Returns the number of new locations per step in the second half of the trace.
    fn fresh_share(&self) -> f64 {
        let Some(&before) = self.locations_by_chunk.get(self.locations_by_chunk.len() / 2) else { return 1.0 };
        (self.locations.len() - before) as f64 / (self.steps.len() / 2).max(1) as f64
    }

    fn goes_on(&self) -> bool {
        // The thread may return to earlier locations.
        let limit = if self.steps.len() < STEPS || self.fresh_share() < OFTEN && self.suspect.is_none() {
            self.most_steps
        } else {
            STEPS
        };
        self.steps.len() < limit && self.locations.len() < MAX_LOCATIONS && Instant::now() < self.until
    }

    /// Analyzes the loop that begins here, if this is the target of a backward jump. The number of analyzed iterations
    /// doubles each time.
    fn judge(&mut self, registers: &Registers) -> Option<loop_analysis::WaitCondition> {
        let back = self.steps.last().is_some_and(|last| last.registers.rip >= registers.rip);
        let rounds = self.visits.get(&registers.rip)?;
        let enough = rounds.len().is_multiple_of(ROUNDS) && (rounds.len() / ROUNDS).is_power_of_two();
        (back && enough).then(|| loop_analysis::analyze(&self.steps, rounds, registers, &self.exempt)).flatten()
    }

    /// Moves the thread to a step without a held lock, in a loop with a known wait condition.
    fn inferred(
        &mut self,
        thread: &StoppedThread,
        waits: loop_analysis::WaitCondition,
        disturbed: &dyn Fn() -> bool,
    ) -> Result<PollingLoop, NotPolling> {
        let round = &self.steps[waits.begins..];
        let code: BTreeSet<u64> = round.iter().map(|step| step.registers.rip).collect();
        let own: BTreeSet<u64> = round.iter().flat_map(Step::written).flat_map(Location::bytes).collect();
        let last = &self.steps[waits.last_round..];
        let stop_point = recurrence::stop_point(last);
        let goal = last.get(stop_point).map(|step| step.registers.rip);
        for _ in 0..last.len() * 2 {
            let registers = thread.registers()?;
            if stop_point == 0 || Some(registers.rip) == goal {
                break;
            }
            if let Some(obstacle) = thread.obstacle(&registers) {
                return Err(obstacle);
            }
            let may_sleep = self.code.decode(thread, registers).calls_the_kernel();
            thread.step(may_sleep, disturbed)?;
        }
        // Use the value that the loop read, because another thread may have written the location since. Locations
        // written by the loop itself are read again.
        let read = |location: Location| {
            let mut accesses = round.iter().rev().flat_map(|step| &step.reads);
            let is_own = location.bytes().any(|byte| own.contains(&byte));
            let seen = match accesses.find(|access| access.location == location) {
                Some(access) if !is_own => access.value,
                _ => thread.value(location),
            };
            (location, Polled { seen, is_own })
        };
        let reads = waits.locations.into_iter().map(read).collect();
        Ok(PollingLoop { reads, endless: waits.ends == ExitCause::Writes, code, stop_point: position_of(thread)? })
    }
}

/// Returns the instruction pointer and stack pointer of a thread.
fn position_of(thread: &StoppedThread) -> Result<(u64, u64), NotPolling> {
    thread.registers().map(|registers| (registers.rip, registers.rsp))
}

impl RecentLoops {
    /// Returns the address of a thread's next instruction if it lies in one of the loops.
    pub fn instruction_in_loop(&self, thread: &StoppedThread) -> Option<u64> {
        let at = thread.registers().ok()?.rip;
        self.loops.iter().any(|polls| polls.code.contains(&at)).then_some(at)
    }
}

/// Steps a thread that is in one of its earlier loops to the earlier stop point. Returns the loop if its polled
/// locations are unchanged. A full search would find the same loop with far more steps.
pub fn recall(thread: &StoppedThread, known: &RecentLoops, disturbed: &dyn Fn() -> bool) -> Option<PollingLoop> {
    for number in 0..RECALL {
        let registers = thread.registers().ok()?;
        known.loops.iter().find(|polls| polls.code.contains(&registers.rip))?;
        let mut here = known.loops.iter().filter(|polls| polls.stop_point == (registers.rip, registers.rsp)).peekable();
        if here.peek().is_some() {
            let mut polls = here.find(|polls| !thread.has_changed(polls, false))?.clone();
            for (location, polled) in polls.reads.iter_mut().filter(|(_, polled)| polled.is_own) {
                polled.seen = thread.value(*location);
            }
            return Some(polls);
        }
        if thread.obstacle(&registers).is_some() {
            return None;
        }
        let may_sleep = number == 0 || thread.calls_next(&registers);
        thread.step(may_sleep, disturbed).ok()?;
    }
    None
}

/// Moves a thread at the beginning of a repeated period to a step without a held lock.
fn exact(thread: &StoppedThread, period: &[Step], disturbed: &dyn Fn() -> bool) -> Result<PollingLoop, NotPolling> {
    let stop_point = recurrence::stop_point(period);
    for step in &period[..stop_point] {
        let registers = thread.registers()?;
        if registers.rip != step.registers.rip {
            return Err(NotPolling::Disturbed);
        }
        if let Some(obstacle) = thread.obstacle(&registers) {
            return Err(obstacle);
        }
        thread.step(step.calls_the_kernel(), disturbed)?;
    }
    let code = period.iter().map(|step| step.registers.rip).collect();
    let reads = recurrence::polled(period, stop_point);
    // No write by others could end it.
    if reads.is_empty() {
        return Err(NotPolling::Computes);
    }
    Ok(PollingLoop { reads, endless: true, code, stop_point: position_of(thread)? })
}

/// Decoded instructions by address.
struct Code {
    decoded: BTreeMap<u64, Instruction>,
    factory: InstructionInfoFactory,
}

impl Code {
    /// Decodes the next step of a thread; the contents after its writes are not known yet.
    fn decode(&mut self, thread: &StoppedThread, registers: Registers) -> Step {
        let instruction = *self.decoded.entry(registers.rip).or_insert_with(|| {
            let mut bytes = [0; INSTRUCTION];
            let length = thread.read(registers.rip, &mut bytes);
            Decoder::with_ip(64, &bytes[..length], registers.rip, DecoderOptions::NONE).decode()
        });
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let info = self.factory.info_options(&instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        for memory in info.used_memory() {
            let value = |register, _, _| register_value(&registers, register);
            let Some(address) = memory.virtual_address(0, value) else { continue };
            let location = Location { address, length: (memory.memory_size().size() as u64).max(1) };
            let (read, written) = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => (false, false),
            };
            let now = thread.value(location);
            if read {
                reads.push(Access { location, value: now });
            }
            if written {
                writes.push(Write {
                    location,
                    before: now.filter(|now| location.length as usize <= now.len()),
                    after: None,
                });
            }
        }
        Step { registers, instruction, reads, writes }
    }

    /// Reads the contents after the writes of a step.
    fn complete(&self, thread: &StoppedThread, step: Option<&mut Step>) {
        for write in step.into_iter().flat_map(|step| &mut step.writes).filter(|write| write.before.is_some()) {
            write.after = thread.value(write.location);
        }
    }
}

/// Returns the exempt ranges of a process: the kernel's clock functions (vdso(7)), private read-only mappings, and the
/// data of the preloaded clocks.
fn exempt(tid: u32) -> Exempt {
    let maps = fs::read_to_string(format!("/proc/{tid}/maps")).unwrap_or_default();
    let range = |line: &str| -> Option<Range<u64>> {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    let all = |belongs: &dyn Fn(&str) -> bool| {
        maps.lines()
            .filter(|line| belongs(line))
            .filter_map(range)
            .reduce(|all, next| all.start..next.end)
            .unwrap_or(0..0)
    };
    let library = all(&|line| line.ends_with("/libsimclock.so"));
    // The zero-initialized data follow in a mapping without a name.
    let zeros = maps.lines().filter_map(range).find(|next| next.start == library.end).filter(|_| library.end != 0);
    let is_constant = |line: &&str| {
        let rights = line.split(' ').nth(1).unwrap_or_default();
        rights.starts_with("r-") && rights.ends_with('p')
    };
    let constants = maps.lines().filter(is_constant).filter_map(range);
    let clock = library.start..zeros.map_or(library.end, |zeros| zeros.end);
    Exempt { clock_code: all(&|line| line.ends_with("[vdso]")), data: constants.chain([clock]).collect() }
}

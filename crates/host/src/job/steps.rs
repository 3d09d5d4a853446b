//! Single steps of a thread (ptrace(2)), and the loop that it is in.

use super::loops;
use super::memory_loop::{Loop, NoLoop, Place, Value};
use super::ptrace::{self, Request};
use super::step::{Access, Step, register_value};
use super::{process, remote};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, InstructionInfoOptions, OpAccess};
use libc::user_regs_struct as Registers;
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The number of instructions after which a thread without a loop is said to compute. An iteration that calls nanosleep
/// has some hundred.
const STEPS: usize = 2000;
/// The smallest number of iterations of a loop that are inspected.
const ROUNDS: usize = 4;
/// The largest number of different places that a polling loop accesses.
const PLACES: usize = 200;
/// The length of the longest instruction in bytes.
const INSTRUCTION: usize = 15;
/// How long the end of a step is awaited without sleeping. A step that takes longer may be a system call that sleeps, and
/// is checked once every [`PAUSE`].
const BRISK: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_micros(200);

/// System calls that only let time pass. A thread in another system call does not wait for memory.
const SLEEPS: [i64; 6] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
];
/// System calls that end at once, or when a time has passed.
const HARMLESS: [i64; 11] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_rt_sigprocmask,
];
/// Results of interrupted system calls that the kernel restarts (ERESTARTSYS and similar ones).
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];
/// The machine code of the instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A thread that is stopped by ptrace. It runs on when this value is dropped.
pub struct StoppedThread {
    tid: i32,
    /// A signal for the thread that has arrived since, or 0.
    signal: Cell<i32>,
    /// Whether it leads a process that [`Job`](super::Job) itself waits for.
    waited_for: bool,
}

/// The reason why a thread has stopped.
#[derive(PartialEq, Eq)]
enum Stop {
    /// It was stopped by the simulator.
    Trap,
    /// It has received a signal, which is delivered later.
    Signal,
}

/// Returns the threads of a process that run, or sleep for a limited time, outside of the library.
pub fn running_threads(process: u32, inside: impl Fn(u32) -> bool) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let mut tids: Vec<u32> = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    tids.retain(|tid| {
        // "running", or the number of the system call and its arguments (proc(5)).
        let call = fs::read_to_string(format!("/proc/{process}/task/{tid}/syscall")).unwrap_or_default();
        let number = call.split(' ').next().and_then(|number| number.trim().parse::<i64>().ok());
        !inside(*tid) && number.is_none_or(|number| SLEEPS.contains(&number))
    });
    tids
}

/// Stops a thread and executes some of its instructions one by one. Returns the loop in which it polls, at whose
/// beginning the thread then stands. `waited_for` tells whether the thread leads a process that the job itself waits for.
///
/// # Errors
/// [`NoLoop`] when the thread does not poll, or it is not known whether it does. It then runs on.
pub fn find_polling(tid: u32, waited_for: bool, disturbed: &dyn Fn() -> bool) -> Result<(Loop, StoppedThread), NoLoop> {
    let thread = StoppedThread::stop(tid as i32, waited_for, disturbed)?;
    Ok((thread.find_loop(None, disturbed)?, thread))
}

impl StoppedThread {
    fn stop(tid: i32, waited_for: bool, disturbed: &dyn Fn() -> bool) -> Result<StoppedThread, NoLoop> {
        if ptrace::request(tid, Request::Seize).is_err() {
            // A thread that has ended meanwhile is refused with the same errors as one that must not be looked at.
            return Err(if process::thread_has_ended(tid as u32) { NoLoop::Disturbed } else { NoLoop::Denied });
        }
        let thread = StoppedThread { tid, signal: Cell::new(0), waited_for };
        thread.request(Request::Interrupt);
        while thread.wait(disturbed)? == Stop::Signal {
            thread.request(Request::Continue(thread.signal.take()));
        }
        Ok(thread)
    }

    /// Makes a request that fails only if the thread has ended, which the next wait notices.
    fn request(&self, request: Request) {
        let _ = ptrace::request(self.tid, request);
    }

    /// Waits for the thread to stop.
    fn wait(&self, disturbed: &dyn Fn() -> bool) -> Result<Stop, NoLoop> {
        let since = Instant::now();
        loop {
            let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | process::ANY_THREAD;
            let id = process::process_id(self.tid as u32).ok_or(NoLoop::Disturbed)?;
            let status = waitid(WaitId::Pid(id), options).map_err(|_| NoLoop::Disturbed)?;
            match status.and_then(|status| status.trapping_signal().or_else(|| status.stopping_signal())) {
                None if disturbed() || self.has_ended() => return Err(NoLoop::Disturbed),
                None if since.elapsed() < BRISK => std::thread::yield_now(),
                None => std::thread::sleep(PAUSE),
                Some(libc::SIGTRAP) => return Ok(Stop::Trap),
                Some(event) if event == libc::SIGTRAP | libc::PTRACE_EVENT_STOP << 8 => return Ok(Stop::Trap),
                // Stopped by the user (SIGSTOP and its kin), not by us.
                Some(event) if event >> 8 != 0 => return Err(NoLoop::Computes),
                Some(signal) => {
                    self.signal.set(signal);
                    return Ok(Stop::Signal);
                }
            }
        }
    }

    /// Executes one instruction.
    fn step(&self, disturbed: &dyn Fn() -> bool) -> Result<(), NoLoop> {
        loop {
            // A signal for the thread comes before its instruction.
            if ptrace::request(self.tid, Request::Step(self.signal.take())).is_err() {
                return Err(NoLoop::Disturbed);
            }
            if self.wait(disturbed)? == Stop::Trap {
                return Ok(());
            }
        }
    }

    /// Whether the thread has done its step, but stopped for another reason first. The SIGTRAP of the step is then still
    /// pending, and would end the thread if it ran on.
    fn step_is_over(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
        let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        pending.is_some_and(|mask| mask & 1 << (libc::SIGTRAP - 1) != 0)
    }

    /// Whether the thread has this id.
    pub fn is(&self, tid: u32) -> bool {
        self.tid as u32 == tid
    }

    /// Whether the thread has ended. The kernel keeps an ended thread that is traced until the simulator has waited for it.
    pub fn has_ended(&self) -> bool {
        let ended = process::has_ended(self.tid as u32);
        if ended && !self.waited_for {
            let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(process::ANY_THREAD.bits());
            let _ = waitpid(process::process_id(self.tid as u32), options);
        }
        ended
    }

    fn registers(&self) -> Result<Registers, NoLoop> {
        ptrace::registers(self.tid).map_err(|_| NoLoop::Disturbed)
    }

    fn read(&self, address: u64, out: &mut [u8]) -> usize {
        remote::read(self.tid, address, out).unwrap_or(0)
    }

    /// Steps the thread until a polling loop is found; the thread is then at the beginning of an iteration. With `within`,
    /// the search ends when the thread leaves these instructions.
    pub fn find_loop(&self, within: Option<&BTreeSet<u64>>, disturbed: &dyn Fn() -> bool) -> Result<Loop, NoLoop> {
        let mut code = Code { decoded: BTreeMap::new(), factory: InstructionInfoFactory::new() };
        let mut steps: Vec<Step> = Vec::new();
        let mut visits: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut places = BTreeSet::new();
        let exempt = clock_code(self.tid);
        while steps.len() < STEPS && places.len() < PLACES {
            let registers = self.registers()?;
            let head = registers.rip;
            if within.is_some_and(|code| !code.contains(&head)) {
                return Err(NoLoop::Computes);
            }
            // A loop begins where something jumps back to. More and more of its rounds are looked at.
            let back = steps.last().is_some_and(|last| last.registers.rip >= head);
            let rounds = visits.entry(head).or_default();
            let enough = rounds.len().is_multiple_of(ROUNDS) && (rounds.len() / ROUNDS).is_power_of_two();
            let waits = (back && enough).then(|| loops::judge(&steps, rounds, &registers, &exempt)).flatten();
            if let Some(waits) = waits {
                let round = &steps[rounds[0]..];
                let code = round.iter().map(|step| step.registers.rip).collect();
                // The value that the loop has read counts, as another thread may have written the place since. Places that
                // the loop itself writes are read again.
                let own: BTreeSet<u64> =
                    round.iter().flat_map(|step| &step.writes).flat_map(|place| place.bytes()).collect();
                let read = |place: &Place| {
                    let mut accesses = round.iter().rev().flat_map(|step| &step.reads);
                    match accesses.find(|access| access.place == *place) {
                        Some(access) if !place.bytes().any(|byte| own.contains(&byte)) => access.value,
                        _ => self.value(*place),
                    }
                };
                let seen = waits.places.iter().map(read).collect();
                return Ok(Loop { reads: waits.places, endless: waits.endless, code, seen });
            }
            rounds.push(steps.len());
            if self.may_block(&registers) {
                return Err(NoLoop::Computes);
            }
            let step = code.decode(self, registers);
            places.extend(step.reads.iter().map(|access| access.place).chain(step.writes.iter().copied()));
            steps.push(step);
            self.step(disturbed)?;
        }
        Err(NoLoop::Computes)
    }

    /// Reads the contents of these places.
    fn values(&self, places: &BTreeSet<Place>) -> Vec<Option<Value>> {
        places.iter().map(|&place| self.value(place)).collect()
    }

    /// Whether the contents of a polled place have changed since the thread was stopped, or a signal waits for it.
    pub fn has_changed(&self, polls: &Loop) -> bool {
        self.values(&polls.reads) != polls.seen || self.has_signal()
    }

    fn value(&self, place: Place) -> Option<Value> {
        let mut value = Value::default();
        let length = (place.length as usize).min(value.len());
        (self.read(place.address, &mut value[..length]) == length).then_some(value)
    }

    /// Whether a signal is pending that the thread does not block.
    fn has_signal(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let mask = |name: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix(name));
            mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
        };
        (mask("SigPnd:") | mask("ShdPnd:")) & !mask("SigBlk:") & !mask("SigIgn:") != 0
    }

    /// Whether the next instruction is a system call that may wait for something else than time, or the thread is in one.
    /// Such a step might only end when the simulator has done something.
    fn may_block(&self, registers: &Registers) -> bool {
        let interrupted = registers.orig_rax as i64 >= 0 && RESTARTED.contains(&(registers.rax as i64));
        if interrupted {
            return !SLEEPS.contains(&(registers.orig_rax as i64));
        }
        let mut instruction = [0; 2];
        if self.read(registers.rip, &mut instruction) != 2 || instruction != SYSCALL {
            return false;
        }
        let not_waiting = |descriptor: u64| {
            let info = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.tid)).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
            flags.is_some_and(|flags| flags & libc::O_NONBLOCK != 0)
        };
        match registers.rax as i64 {
            libc::SYS_poll => (registers.rdx as i32) < 0,
            libc::SYS_ppoll => registers.rdx == 0,
            libc::SYS_select | libc::SYS_pselect6 => registers.r8 == 0,
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => registers.r10 as i32 != 0,
            libc::SYS_futex => {
                let command = registers.rsi as i32 & libc::FUTEX_CMD_MASK;
                !matches!(command, libc::FUTEX_WAKE | libc::FUTEX_WAKE_OP | libc::FUTEX_WAKE_BITSET)
            }
            libc::SYS_read | libc::SYS_readv => !not_waiting(registers.rdi),
            libc::SYS_recvfrom => registers.r10 as i32 & libc::MSG_DONTWAIT == 0 && !not_waiting(registers.rdi),
            libc::SYS_recvmsg => registers.rdx as i32 & libc::MSG_DONTWAIT == 0 && !not_waiting(registers.rdi),
            number => !HARMLESS.contains(&number),
        }
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        let detached = || ptrace::request(self.tid, Request::Detach(self.signal.get()));
        // A thread must stop before it can be let go.
        if detached().is_err() && !self.has_ended() {
            self.request(Request::Interrupt);
            let _ = self.wait(&|| false);
            if self.step_is_over() {
                self.request(Request::Continue(0));
                let _ = self.wait(&|| false);
            }
            let _ = detached();
        }
    }
}

/// Decoded instructions by address.
struct Code {
    decoded: BTreeMap<u64, Instruction>,
    factory: InstructionInfoFactory,
}

impl Code {
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
            let place = Place { address, length: (memory.memory_size().size() as u64).max(1) };
            let (read, written) = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => (false, false),
            };
            if read {
                reads.push(Access { place, value: thread.value(place) });
            }
            if written {
                writes.push(place);
            }
        }
        Step { registers, instruction, reads, writes }
    }
}

/// Returns the addresses of the kernel's clock functions in a process (vdso(7)).
fn clock_code(tid: i32) -> Range<u64> {
    let maps = fs::read_to_string(format!("/proc/{tid}/maps")).unwrap_or_default();
    let range = maps.lines().find(|line| line.ends_with("[vdso]")).and_then(|line| line.split(' ').next());
    let ends = range.and_then(|range| range.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).unwrap_or_default();
    ends.map_or(0..0, |(start, end)| number(start)..number(end))
}

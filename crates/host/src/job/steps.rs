//! Single steps of a thread (ptrace(2)), and the loop that it is in.

use super::spawn;
use super::spin::{Loop, Polled, Sample};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic,
    OpAccess, Register,
};
use libc::user_regs_struct as Registers;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// Instructions that are looked at before a thread is said to compute. A round with nanosleep in it has some hundred.
const STEPS: usize = 1500;
/// Rounds of a loop that must be alike.
const ROUNDS: usize = 4;
/// Different places that polling touches at most.
const PLACES: usize = 200;
/// Bytes above the stack pointer that hold the innermost functions' variables.
const STACK: u64 = 64 * 1024;
/// Longest instruction.
const INSTRUCTION: usize = 15;
/// How long a step is waited for without a pause, and the pause after that: it may be a system call that sleeps.
const BRISK: Duration = Duration::from_micros(500);
const PAUSE: Duration = Duration::from_micros(200);

/// System calls that let time pass; a thread in another one waits for something that is no memory.
const SLEEPS: [i64; 6] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
];
/// System calls that read a clock.
const CLOCKS: [i64; 3] = [libc::SYS_clock_gettime, libc::SYS_gettimeofday, libc::SYS_time];

/// A stopped thread; runs on when dropped.
pub struct Held {
    tid: i32,
    /// A signal that has come for it meanwhile.
    signal: Cell<i32>,
    /// Whether it leads a process that [`Job`](super::Job) itself waits for.
    waited_for: bool,
}

/// Why a thread has stopped.
#[derive(PartialEq, Eq)]
enum Stop {
    /// For us.
    Trap,
    /// For a signal of its own, which is kept.
    Signal,
}

/// One instruction that was executed.
struct Step {
    registers: Registers,
    instruction: Instruction,
    reads: Vec<(u64, u64)>,
    writes: Vec<(u64, u64)>,
}

/// The threads of a process that run, or sleep for some time, outside of the library.
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

/// Follows a thread for a moment.
/// `waited_for`: whether it leads a process that the job itself waits for.
pub fn sample(tid: u32, waited_for: bool, disturbed: &dyn Fn() -> bool) -> Sample {
    let held = match Held::stop(tid as i32, waited_for, disturbed) {
        Ok(held) => held,
        Err(sample) => return sample,
    };
    match held.find_loop(disturbed) {
        Ok(found) => Sample::Loop(found, held),
        Err(sample) => sample,
    }
}

impl Held {
    fn stop(tid: i32, waited_for: bool, disturbed: &dyn Fn() -> bool) -> Result<Held, Sample> {
        // SAFETY: system calls that touch no memory of ours.
        unsafe {
            if libc::ptrace(libc::PTRACE_SEIZE, tid, 0, libc::PTRACE_O_EXITKILL) == -1 {
                return Err(Sample::Denied);
            }
            let held = Held { tid, signal: Cell::new(0), waited_for };
            libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0);
            while held.wait(disturbed)? == Stop::Signal {
                libc::ptrace(libc::PTRACE_CONT, tid, 0, held.signal.take());
            }
            Ok(held)
        }
    }

    /// Waits for the thread to stop.
    fn wait(&self, disturbed: &dyn Fn() -> bool) -> Result<Stop, Sample> {
        let since = Instant::now();
        loop {
            // SAFETY: writes to a local.
            let (result, info) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let options = libc::WSTOPPED | libc::WNOHANG | libc::__WALL;
                (libc::waitid(libc::P_PID, self.tid as u32, &raw mut info, options), info)
            };
            // SAFETY: filled in by the kernel.
            let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
            match (result, pid, status) {
                (0, 0, _) if disturbed() || self.has_ended() => return Err(Sample::Disturbed),
                (0, 0, _) if since.elapsed() < BRISK => std::thread::yield_now(),
                (0, 0, _) => std::thread::sleep(PAUSE),
                (0, _, libc::SIGTRAP) => return Ok(Stop::Trap),
                (0, _, event) if event == libc::SIGTRAP | libc::PTRACE_EVENT_STOP << 8 => return Ok(Stop::Trap),
                // Stopped by the user (SIGSTOP and its kin), not by us.
                (0, _, event) if event >> 8 != 0 => return Err(Sample::Computes),
                (0, _, signal) => {
                    self.signal.set(signal);
                    return Ok(Stop::Signal);
                }
                _ => return Err(Sample::Disturbed),
            }
        }
    }

    /// Executes an instruction.
    fn step(&self, disturbed: &dyn Fn() -> bool) -> Result<(), Sample> {
        loop {
            // SAFETY: touches no memory of ours. A signal for the thread comes before its instruction; it gets it.
            if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.tid, 0, self.signal.take()) } == -1 {
                return Err(Sample::Disturbed);
            }
            if self.wait(disturbed)? == Stop::Trap {
                return Ok(());
            }
        }
    }

    /// Whether the thread stopped for another reason just when it had done its step, whose SIGTRAP is still to come and
    /// would end it.
    fn step_is_over(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
        let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        pending.is_some_and(|mask| mask & 1 << (libc::SIGTRAP - 1) != 0)
    }

    /// Whether the thread has ended. The kernel keeps what is left of it, and so of its process, for us.
    pub fn has_ended(&self) -> bool {
        let ended = spawn::ended(self.tid as u32);
        if ended && !self.waited_for {
            // SAFETY: a plain system call.
            unsafe { libc::waitpid(self.tid, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) };
        }
        ended
    }

    fn registers(&self) -> Result<Registers, Sample> {
        // SAFETY: writes to a local of the right type, in which every value is valid.
        unsafe {
            let mut registers: Registers = std::mem::zeroed();
            match libc::ptrace(libc::PTRACE_GETREGS, self.tid, 0, &raw mut registers) {
                -1 => Err(Sample::Disturbed),
                _ => Ok(registers),
            }
        }
    }

    /// Floating-point and vector registers.
    fn float_registers(&self) -> Vec<u32> {
        // SAFETY: as above.
        unsafe {
            let mut registers: libc::user_fpregs_struct = std::mem::zeroed();
            libc::ptrace(libc::PTRACE_GETFPREGS, self.tid, 0, &raw mut registers);
            [&registers.st_space[..], &registers.xmm_space[..]].concat()
        }
    }

    fn read(&self, address: u64, out: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: out.len() };
        // SAFETY: `out` is valid; the kernel checks the other side.
        let copied = unsafe { libc::process_vm_readv(self.tid, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(copied).unwrap_or(0)
    }

    /// Steps until a loop shows.
    fn find_loop(&self, disturbed: &dyn Fn() -> bool) -> Result<Loop, Sample> {
        let mut code = Code { decoded: BTreeMap::new(), factory: InstructionInfoFactory::new() };
        let mut steps: Vec<Step> = Vec::new();
        let mut visits: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut places = BTreeSet::new();
        while steps.len() < STEPS && places.len() < PLACES {
            let registers = self.registers()?;
            let head = registers.rip;
            let seen = visits.entry(head).or_default();
            seen.push(steps.len());
            let step = code.decode(self, registers);
            if seen.len() > ROUNDS {
                let rounds: Vec<usize> = seen[seen.len() - ROUNDS - 1..].to_vec();
                if let Some(found) = alike(&steps, &step, &rounds) {
                    return self.confirm(found, head, &mut code, disturbed);
                }
            }
            places.extend(step.reads.iter().chain(&step.writes).map(|place| place.0));
            steps.push(step);
            self.step(disturbed)?;
        }
        Err(Sample::Computes)
    }

    /// One more round, from `head` on: whether it leaves everything as it was, and computes nothing in vectors.
    fn confirm(&self, round: Round, head: u64, code: &mut Code, disturbed: &dyn Fn() -> bool) -> Result<Loop, Sample> {
        let state = |held: &Held| -> Result<_, Sample> {
            let mut written = Vec::new();
            for &(address, length) in &round.writes {
                let mut bytes = vec![0; length as usize];
                held.read(address, &mut bytes);
                written.push(bytes);
            }
            let registers = held.registers()?;
            Ok((general(&registers), registers.eflags, written, held.float_registers()))
        };
        let before = state(self)?;
        let mut places = round.reads.clone();
        places.extend(&round.writes);
        for _ in 0..STEPS {
            let step = code.decode(self, self.registers()?);
            if step.reads.iter().chain(&step.writes).any(|place| !places.contains(place)) {
                return Err(Sample::Computes);
            }
            self.step(disturbed)?;
            if self.registers()?.rip == head {
                let after = state(self)?;
                if after.3 != before.3 && !round.clock {
                    return Err(Sample::Computes);
                }
                let top = self.registers()?.rsp;
                let on_stack = |address: u64| (top..top + STACK).contains(&address);
                let polled = |&(address, length): &(u64, u64)| Polled { address, length, on_stack: on_stack(address) };
                let reads = round.polled.iter().map(polled).collect();
                return Ok(Loop { reads, stuck: after == before && !round.clock });
            }
        }
        Err(Sample::Computes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: system calls that touch no memory of ours. A thread must stop before it can be let go.
        unsafe {
            if libc::ptrace(libc::PTRACE_DETACH, self.tid, 0, self.signal.get()) == -1 && !self.has_ended() {
                libc::ptrace(libc::PTRACE_INTERRUPT, self.tid, 0, 0);
                let _ = self.wait(&|| false);
                if self.step_is_over() {
                    libc::ptrace(libc::PTRACE_CONT, self.tid, 0, 0);
                    let _ = self.wait(&|| false);
                }
                libc::ptrace(libc::PTRACE_DETACH, self.tid, 0, self.signal.get());
            }
        }
    }
}

/// Decoded instructions by address.
struct Code {
    decoded: BTreeMap<u64, Instruction>,
    factory: InstructionInfoFactory,
}

impl Code {
    fn decode(&mut self, held: &Held, registers: Registers) -> Step {
        let instruction = *self.decoded.entry(registers.rip).or_insert_with(|| {
            let mut bytes = [0; INSTRUCTION];
            let length = held.read(registers.rip, &mut bytes);
            Decoder::with_ip(64, &bytes[..length], registers.rip, DecoderOptions::NONE).decode()
        });
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let info = self.factory.info_options(&instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
        for memory in info.used_memory() {
            let value = |register, _, _| value(&registers, register);
            let Some(address) = memory.virtual_address(0, value) else { continue };
            let place = (address, (memory.memory_size().size() as u64).max(1));
            match memory.access() {
                OpAccess::Read | OpAccess::CondRead => reads.push(place),
                OpAccess::Write | OpAccess::CondWrite => writes.push(place),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    reads.push(place);
                    writes.push(place);
                }
                _ => {}
            }
        }
        Step { registers, instruction, reads, writes }
    }
}

/// Rounds of a loop that are alike.
struct Round {
    reads: BTreeSet<(u64, u64)>,
    writes: BTreeSet<(u64, u64)>,
    polled: BTreeSet<(u64, u64)>,
    clock: bool,
}

/// Whether the rounds that begin at these steps, the last of which is `now`, are alike.
fn alike(steps: &[Step], now: &Step, rounds: &[usize]) -> Option<Round> {
    let (first, last) = (rounds[0], rounds[rounds.len() - 2]);
    let all = &steps[first..];
    let clock = all.iter().any(|step| {
        let number = step.registers.rax as i64;
        matches!(step.instruction.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp)
            || step.instruction.mnemonic() == Mnemonic::Syscall && CLOCKS.contains(&number)
    });
    let heads = rounds.iter().map(|&round| steps.get(round).unwrap_or(now)).map(|step| general(&step.registers));
    let heads: Vec<[u64; 16]> = heads.collect();
    let count = |pair: &[[u64; 16]]| -> Vec<u64> { (0..16).map(|k| pair[1][k].wrapping_sub(pair[0][k])).collect() };
    if !clock && heads.windows(2).any(|pair| count(pair) != count(&heads[..2])) {
        return None;
    }
    let places = |steps: &[Step], of: fn(&Step) -> &Vec<(u64, u64)>| -> BTreeSet<(u64, u64)> {
        steps.iter().flat_map(of).copied().collect()
    };
    let (reads, writes) = (places(&steps[first..last], |step| &step.reads), places(&steps[first..last], |s| &s.writes));
    if !places(&steps[last..], |step| &step.reads).is_subset(&reads)
        || !places(&steps[last..], |step| &step.writes).is_subset(&writes)
    {
        return None;
    }
    // Return addresses, tables of functions and thread-local data are read to get on, not to see what has come.
    let data = |step: &&Step| {
        step.instruction.flow_control() == FlowControl::Next
            && !matches!(step.instruction.memory_segment(), Register::FS | Register::GS)
    };
    let written = |place: &(u64, u64)| writes.iter().any(|w| w.0 < place.0 + place.1 && place.0 < w.0 + w.1);
    let polled = all.iter().filter(data).flat_map(|step| &step.reads).filter(|&place| !written(place)).copied();
    let polled: BTreeSet<_> = polled.collect();
    Some(Round { polled, reads, writes, clock })
}

fn general(r: &Registers) -> [u64; 16] {
    [r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15]
}

/// The value of a register in an address. Vector registers have none.
fn value(r: &Registers, register: Register) -> Option<u64> {
    Some(match register {
        Register::FS => r.fs_base,
        Register::GS => r.gs_base,
        Register::ES | Register::CS | Register::SS | Register::DS => 0,
        Register::RAX => r.rax,
        Register::RBX => r.rbx,
        Register::RCX => r.rcx,
        Register::RDX => r.rdx,
        Register::RSI => r.rsi,
        Register::RDI => r.rdi,
        Register::RBP => r.rbp,
        Register::RSP => r.rsp,
        Register::R8 => r.r8,
        Register::R9 => r.r9,
        Register::R10 => r.r10,
        Register::R11 => r.r11,
        Register::R12 => r.r12,
        Register::R13 => r.r13,
        Register::R14 => r.r14,
        Register::R15 => r.r15,
        other if other.is_gpr32() => value(r, other.full_register())? & 0xffff_ffff,
        _ => return None,
    })
}

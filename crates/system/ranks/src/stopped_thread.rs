// SPDX-License-Identifier: Apache-2.0
//! Threads that are stopped and single-stepped (ptrace(2)).

use super::polling_loop::{Location, NotPolling, Polled, PollingLoop, Value};
use super::ptrace::{self, Request};
use super::{process, remote};
use embedded::Suspended;
use libc::user_regs_struct as Registers;
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

/// Time for which the end of a system call is polled. A longer one is checked every [`PAUSE`].
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
/// System calls that return at once or after a given time.
const HARMLESS: [i64; 21] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getpgrp,
    libc::SYS_getsid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_uname,
    libc::SYS_getcpu,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_rt_sigprocmask,
];
/// Results of interrupted system calls that the kernel restarts (ERESTARTSYS and similar ones).
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];
/// Time for which the end of a killed thread is awaited.
const LAST_CHANCE: Duration = Duration::from_millis(100);
/// Machine code of the instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A thread stopped by ptrace. It resumes when this value is dropped.
pub struct StoppedThread {
    tid: i32,
    /// Signal to deliver to the thread, or 0.
    signal: Cell<i32>,
    /// True if it leads a process that [`Job`](super::Job) itself reaps.
    waited_for: bool,
    /// The rank, if it is a thread of this process. It is then stopped without ptrace.
    embedded: Option<Suspended>,
}

/// Reason why a thread stopped.
#[derive(PartialEq, Eq)]
enum Stop {
    /// Stopped by the simulator.
    Trap,
    /// Stopped by a signal, which is delivered later.
    Signal,
}

/// Returns the threads of a process that run or sleep for a limited time outside of the library. If there are any,
/// threads in futex calls follow: the running ones might wake them, and they might then interfere.
pub fn running_threads(process: u32, inside: impl Fn(u32) -> bool) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let mut tids: Vec<u32> = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    for tid in tids.into_iter().filter(|tid| !inside(*tid)) {
        // "running", or system call number and arguments (proc(5)).
        let call = fs::read_to_string(format!("/proc/{process}/task/{tid}/syscall")).unwrap_or_default();
        let number = call.split(' ').next().and_then(|number| number.trim().parse::<i64>().ok());
        match number {
            Some(libc::SYS_futex) => waiting.push(tid),
            number if number.is_none_or(|number| SLEEPS.contains(&number)) => running.push(tid),
            _ => {}
        }
    }
    if !running.is_empty() {
        running.append(&mut waiting);
    }
    running
}

impl StoppedThread {
    /// Wraps a rank of this process. Its thread id is 0.
    pub fn embedded(rank: Suspended) -> StoppedThread {
        StoppedThread { tid: 0, signal: Cell::new(0), waited_for: false, embedded: Some(rank) }
    }

    /// Stops a thread. `waited_for` is true if it leads a process that the job itself reaps.
    ///
    /// # Errors
    /// [`NotPolling`] when it cannot be stopped; it then keeps running.
    pub fn stop(tid: u32, waited_for: bool, disturbed: &dyn Fn() -> bool) -> Result<StoppedThread, NotPolling> {
        let tid = tid as i32;
        if ptrace::request(tid, Request::Seize).is_err() {
            // The errors for a thread that has just ended and for one without permission are the same.
            return Err(if process::thread_has_ended(tid as u32) { NotPolling::Disturbed } else { NotPolling::Denied });
        }
        let thread = StoppedThread { tid, signal: Cell::new(0), waited_for, embedded: None };
        thread.request(Request::Interrupt);
        while thread.wait(disturbed)? == Stop::Signal {
            thread.request(Request::Continue(thread.signal.take()));
        }
        Ok(thread)
    }

    /// Makes a request that fails only if the thread has ended, which the next wait detects.
    fn request(&self, request: Request) {
        let _ = ptrace::request(self.tid, request);
    }

    /// Waits for the thread to stop.
    fn wait(&self, disturbed: &dyn Fn() -> bool) -> Result<Stop, NotPolling> {
        let since = Instant::now();
        loop {
            let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | process::ANY_THREAD;
            let id = process::process_id(self.tid as u32).ok_or(NotPolling::Disturbed)?;
            let status = waitid(WaitId::Pid(id), options).map_err(|_| NotPolling::Disturbed)?;
            match status.and_then(|status| status.trapping_signal().or_else(|| status.stopping_signal())) {
                None if disturbed() || self.has_ended() => return Err(NotPolling::Disturbed),
                None if since.elapsed() < BRISK => std::thread::yield_now(),
                None => std::thread::sleep(PAUSE),
                Some(libc::SIGTRAP) => return Ok(Stop::Trap),
                Some(event) if event == libc::SIGTRAP | libc::PTRACE_EVENT_STOP << 8 => return Ok(Stop::Trap),
                // Stopped by the user (SIGSTOP or similar), not by the simulator.
                Some(event) if event >> 8 != 0 => return Err(NotPolling::Computes),
                Some(signal) => {
                    self.signal.set(signal);
                    return Ok(Stop::Signal);
                }
            }
        }
    }

    /// Executes one instruction. `may_sleep` is true if it may be a system call.
    pub(super) fn step(&self, may_sleep: bool, disturbed: &dyn Fn() -> bool) -> Result<(), NotPolling> {
        if let Some(rank) = &self.embedded {
            return if rank.step() { Ok(()) } else { Err(NotPolling::Disturbed) };
        }
        loop {
            // A signal is delivered before the instruction.
            if ptrace::request(self.tid, Request::Step(self.signal.take())).is_err() {
                return Err(NotPolling::Disturbed);
            }
            // Any other instruction ends soon. On a busy machine, sleeping until then is far faster than polling,
            // because a thread that yields its processor waits for the others. Waits for all children, as a process
            // does not end before its traced threads.
            if !may_sleep {
                let options =
                    WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | process::ANY_OWN_THREAD;
                let _ = waitid(WaitId::All, options);
            }
            if self.wait(disturbed)? == Stop::Trap {
                return Ok(());
            }
        }
    }

    /// Returns true if the thread completed its step but stopped for another reason first. The SIGTRAP of the step is
    /// then still pending and would kill the thread if it resumed.
    fn step_is_over(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
        let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        pending.is_some_and(|mask| mask & 1 << (libc::SIGTRAP - 1) != 0)
    }

    /// Returns true if the thread has ended. Reaps it, because the kernel keeps an ended tracee until then.
    pub fn has_ended(&self) -> bool {
        if self.embedded.is_some() {
            return false;
        }
        let ended = process::has_ended(self.tid as u32);
        if ended && !self.waited_for {
            let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(process::ANY_THREAD.bits());
            let _ = waitpid(process::process_id(self.tid as u32), options);
        }
        ended
    }

    pub(super) fn registers(&self) -> Result<Registers, NotPolling> {
        match &self.embedded {
            Some(rank) => rank.registers().ok_or(NotPolling::Disturbed),
            None => ptrace::registers(self.tid).map_err(|_| NotPolling::Disturbed),
        }
    }

    pub(super) fn read(&self, address: u64, out: &mut [u8]) -> usize {
        match &self.embedded {
            Some(rank) => rank.read(address, out),
            None => remote::read(self.tid, address, out).unwrap_or(0),
        }
    }

    /// Returns true if a polled location has changed since the thread was stopped, or a signal is pending for it.
    /// Locations that the loop also writes count only if `own` is set: another thread may be about to restore them.
    pub fn has_changed(&self, polls: &PollingLoop, own: bool) -> bool {
        let changed =
            |(location, polled): (&Location, &Polled)| (own || !polled.is_own) && self.value(*location) != polled.seen;
        polls.reads.iter().any(changed) || self.has_signal()
    }

    /// Returns the contents of the vector registers.
    pub(super) fn vectors(&self) -> Option<Vec<u8>> {
        match &self.embedded {
            Some(rank) => rank.vectors(),
            None => ptrace::vectors(self.tid).ok(),
        }
    }

    /// Returns the thread's id.
    pub fn tid(&self) -> u32 {
        self.tid as u32
    }

    pub(super) fn value(&self, location: Location) -> Option<Value> {
        let mut value: Value = [0; _];
        let length = (location.length as usize).min(value.len());
        (self.read(location.address, &mut value[..length]) == length).then_some(value)
    }

    /// Returns true if a signal is pending that the thread neither blocks nor ignores.
    fn has_signal(&self) -> bool {
        if self.embedded.is_some() {
            return false;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let mask = |name: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix(name));
            mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
        };
        (mask("SigPnd:") | mask("ShdPnd:")) & !mask("SigBlk:") & !mask("SigIgn:") != 0
    }

    /// Returns true if the next instruction is a system call.
    pub(super) fn calls_next(&self, registers: &Registers) -> bool {
        let mut instruction = [0; 2];
        self.read(registers.rip, &mut instruction) == 2 && instruction == SYSCALL
    }

    /// Returns the obstacle if the next instruction, or the present system call, may wait for anything but time: such a
    /// step might end only after an action of the simulator or another thread.
    pub(super) fn obstacle(&self, registers: &Registers) -> Option<NotPolling> {
        if let Some(rank) = &self.embedded {
            // The program makes no system calls itself; those of the C library end at once.
            return rank.is_in_simulator().then_some(NotPolling::Computes);
        }
        let interrupted = registers.orig_rax as i64 >= 0 && RESTARTED.contains(&(registers.rax as i64));
        if interrupted {
            return match registers.orig_rax as i64 {
                libc::SYS_futex => self.obstacle_in_futex(registers).map(|_| NotPolling::Blocks),
                number => (!SLEEPS.contains(&number)).then_some(NotPolling::Computes),
            };
        }
        if !self.calls_next(registers) {
            return None;
        }
        let not_waiting = |descriptor: u64| {
            let info = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.tid)).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
            flags.is_some_and(|flags| flags & libc::O_NONBLOCK != 0)
        };
        let waits = match registers.rax as i64 {
            libc::SYS_poll => (registers.rdx as i32) < 0,
            libc::SYS_ppoll => registers.rdx == 0,
            libc::SYS_select | libc::SYS_pselect6 => registers.r8 == 0,
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => registers.r10 as i32 != 0,
            libc::SYS_futex => return self.obstacle_in_futex(registers),
            libc::SYS_read | libc::SYS_readv => !not_waiting(registers.rdi),
            libc::SYS_recvfrom => registers.r10 as i32 & libc::MSG_DONTWAIT == 0 && !not_waiting(registers.rdi),
            libc::SYS_recvmsg => registers.rdx as i32 & libc::MSG_DONTWAIT == 0 && !not_waiting(registers.rdi),
            number => !HARMLESS.contains(&number),
        };
        waits.then_some(NotPolling::Computes)
    }

    /// Returns the obstacle if a futex call may wait for anything but time. A wait returns at once if the word has a
    /// different value.
    fn obstacle_in_futex(&self, registers: &Registers) -> Option<NotPolling> {
        match registers.rsi as i32 & libc::FUTEX_CMD_MASK {
            libc::FUTEX_WAKE | libc::FUTEX_WAKE_OP | libc::FUTEX_WAKE_BITSET => None,
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
                let word = self.value(Location { address: registers.rdi, length: 4 });
                let waits = word.is_none_or(|word| word[..4] == (registers.rdx as u32).to_ne_bytes());
                waits.then_some(NotPolling::Blocks)
            }
            _ => Some(NotPolling::Computes),
        }
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        if self.embedded.is_some() {
            return; // the job continues it
        }
        let detached = || ptrace::request(self.tid, Request::Detach(self.signal.get()));
        // A thread must be stopped before it can be detached.
        if detached().is_err() && !self.has_ended() {
            self.request(Request::Interrupt);
            let _ = self.wait(&|| false);
            if self.step_is_over() {
                self.request(Request::Continue(0));
                let _ = self.wait(&|| false);
            }
            if detached().is_err() {
                // It was killed meanwhile. Its process ends only once it is reaped.
                let since = Instant::now();
                while !self.has_ended() && since.elapsed() < LAST_CHANCE {
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
}

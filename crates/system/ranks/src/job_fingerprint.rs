// SPDX-License-Identifier: Apache-2.0
//! Detects that a whole job repeats itself: if all ranks only poll, nothing is in flight, and the registers and memory
//! of each rank equal those some polls ago, the job repeats forever.
//!
//! A rank whose state is not fully visible never counts as repeating: one with several threads or processes, with much
//! memory, or with handlers for signals that the kernel sends by itself. The clocks that `libsimclock.so` replaces
//! leave a trace in memory. Only a program that reads the time-stamp counter or makes system calls directly may depend
//! on state outside.

use super::rank_state::{Job, Process, Rank};
use super::stopped_thread::StoppedThread;
use super::thread_files::ThreadFiles;
use super::{process_tree, ptrace};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const PAGE: u64 = 4096;
/// Limit of the compared memory of all ranks in bytes: reading more takes longer than the polls.
const MOST: u64 = 64 << 20;
/// Size of an entry of /proc/PID/pagemap, and the mask of the bits of pages with contents (proc(5)).
const ENTRY: u64 = 8;
const PRESENT: u64 = 0b11 << 62;
/// Number of checks whether a rank sleeps, and the interval between them.
const TRIES: u32 = 20;
const RETRY_INTERVAL: Duration = Duration::from_micros(50);
/// Signals that the kernel sends by itself, for timers and descriptors.
const SIGNALS: [i32; 4] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF, libc::SIGIO];
/// First real-time signal that the C library does not reserve.
const FIRST_REAL_TIME: i32 = 34;

impl Job {
    /// Returns a hash of the registers and memory of all ranks; `None` if these do not determine the ranks' behaviour.
    pub fn fingerprint(&self) -> Option<u64> {
        if self.has_sleepers() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        let mut left = MOST;
        for (number, rank) in self.ranks.iter().enumerate() {
            if let (Process::Embedded, Some(host)) = (&rank.process, &self.embedded) {
                if !rank.stopped.is_empty() || !rank.free_running.is_empty() {
                    return None;
                }
                hasher.write_usize(number);
                left = left.checked_sub(host.hash(number, left, &mut hasher)?)?;
                continue;
            }
            let Process::Alive(pid) = rank.process else { continue };
            let Rank { stopped, free_running, caller_pid, .. } = rank;
            let is_simple = stopped.is_empty()
                && free_running.is_empty()
                && *caller_pid == pid
                && self.thread_files.thread_count(pid) == Some(1);
            if !is_simple
                || !falls_asleep(&self.thread_files, pid)
                || catches_signals(pid)
                || process_tree::of(pid).len() != 1
            {
                return None;
            }
            hasher.write_usize(number);
            left = left.checked_sub(hash(pid, left, &mut hasher).ok()??)?;
        }
        Some(hasher.finish())
    }
}

/// Returns true if the single thread of a process sleeps now or shortly: it first spins on its reply.
fn falls_asleep(files: &ThreadFiles, pid: u32) -> bool {
    (0..TRIES).any(|number| {
        if number > 0 {
            std::thread::sleep(RETRY_INTERVAL);
        }
        files.waits_for_futex(pid, pid) == Some(true)
    })
}

/// Returns true if a process handles signals from outside, or if that is unknown.
fn catches_signals(pid: u32) -> bool {
    let caught = || -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let outside = SIGNALS.into_iter().chain(FIRST_REAL_TIME..=64);
    let mask = outside.fold(0_u64, |mask, signal| mask | 1 << (signal - 1));
    let has_timers = fs::read_to_string(format!("/proc/{pid}/timers")).is_ok_and(|timers| !timers.is_empty());
    has_timers || caught().is_none_or(|caught| caught & mask != 0)
}

/// Hashes the registers that a thread preserves while it waits in the kernel, and its writable memory except the job's
/// shared memory. Returns the number of bytes; `None` if there are more than `most`.
///
/// The thread waits for the reply to its call, in a function of `libportals.so` that calls others. Such a function keeps
/// nothing below the stack pointer (the red zone of the System V ABI, §3.2.2, is for leaf functions). The leftovers of
/// returned functions there differ from call to call, for example by the time for which the library spun.
fn hash(pid: u32, most: u64, hasher: &mut impl Hasher) -> io::Result<Option<u64>> {
    let Ok(thread) = StoppedThread::stop(pid, true, &|| false) else { return Ok(None) };
    let registers = ptrace::registers(pid as i32)?;
    // Callers save the other registers (System V ABI, §3.2.1).
    let kept = [registers.rip, registers.rsp, registers.rbp, registers.rbx];
    kept.into_iter()
        .chain([registers.r12, registers.r13, registers.r14, registers.r15])
        .for_each(|k| hasher.write_u64(k));
    let stack = registers.rsp;
    let open = |name: &str| File::open(format!("/proc/{pid}/{name}"));
    let (memory, pagemap) = (open("mem")?, open("pagemap")?);
    let mut length = 0;
    let mut page = [0; PAGE as usize];
    for line in fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
        let mut words = line.split(' ');
        let (Some(range), Some(permissions)) = (words.next(), words.next()) else { continue };
        let Some((start, end)) = range.split_once('-') else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)) else { continue };
        if !permissions.contains('w') || line.contains("/memfd:spin-job") {
            continue;
        }
        let is_stack = (start..end).contains(&stack);
        let first = if is_stack { stack / PAGE * PAGE } else { start };
        let count = (end - first) / PAGE;
        if count > most / ENTRY {
            return Ok(None);
        }
        let mut entries = vec![0; (count * ENTRY) as usize];
        pagemap.read_exact_at(&mut entries, first / PAGE * ENTRY)?;
        for (number, entry) in (0..count).zip(entries.as_chunks::<{ ENTRY as usize }>().0) {
            if u64::from_ne_bytes(*entry) & PRESENT == 0 {
                continue;
            }
            let address = first + number * PAGE;
            length += PAGE;
            if length > most {
                return Ok(None);
            }
            memory.read_exact_at(&mut page, address)?;
            hasher.write_u64(address);
            let from = if is_stack { stack.saturating_sub(address).min(PAGE) } else { 0 };
            hasher.write(&page[from as usize..]);
        }
    }
    drop(thread);
    Ok(Some(length))
}

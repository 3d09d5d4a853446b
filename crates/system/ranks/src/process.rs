// SPDX-License-Identifier: Apache-2.0
//! State of processes and threads, as reported by the kernel.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// `__WALL`: also waits for traced threads of other processes.
pub const ANY_THREAD: WaitIdOptions = WaitIdOptions::from_bits_retain(libc::__WALL as u32);

/// [`ANY_THREAD`], limited to children and tracees of the calling thread (`__WNOTHREAD`).
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub const ANY_OWN_THREAD: WaitIdOptions = WaitIdOptions::from_bits_retain((libc::__WALL | libc::__WNOTHREAD) as u32);

/// Converts a process or thread id to the type of the system calls; `None` if it is out of range.
pub fn process_id(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Reaps an ended rank and kills the rest of its process group. Returns its exit status.
pub fn reap(pid: u32) -> Option<ExitStatus> {
    if !has_ended(pid) {
        return None;
    }
    // Until the leader is reaped, its id, which names the group, is not reused.
    signal_group(pid, Signal::KILL);
    let (_, status) = waitpid(process_id(pid), WaitOptions::empty()).ok()??;
    Some(ExitStatus::from_raw(status.as_raw()))
}

/// Returns true if a child or traced thread has ended and is not reaped.
pub fn has_ended(pid: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | ANY_THREAD;
    let status = process_id(pid).and_then(|pid| waitid(WaitId::Pid(pid), options).ok().flatten());
    // The call also reports stopped traced threads.
    status.is_some_and(|status| status.exited() || status.killed() || status.dumped())
}

/// Reaps the ended threads of a process that this one traces. The process ends only afterwards.
pub fn reap_traced_threads(pid: u32) {
    let others = tasks(pid).unwrap_or_default().into_iter().filter(|tid| *tid != pid);
    for tid in others.filter(|tid| has_ended(*tid)) {
        let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(ANY_THREAD.bits());
        let _ = waitpid(process_id(tid), options); // it may just have been reaped
    }
}

/// Returns true if any child of this process may have ended without being reaped. Cheaper than checking each child.
pub fn may_any_have_ended() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | ANY_THREAD;
    !matches!(waitid(WaitId::All, options), Ok(None))
}

/// Sends a signal to a rank and its descendants.
pub fn signal_group(pid: u32, signal: Signal) {
    // Fails if the processes have already ended.
    let _ = process_id(pid).map(|pid| kill_process_group(pid, signal));
}

/// Activity of a thread.
pub enum Activity {
    /// Running, or blocked on writing its output.
    Runs,
    /// Blocked or stopped; with the number of context switches so far.
    Waits(u64),
    /// Ended.
    Ended,
}

impl Activity {
    /// Reads the activity of a thread of process `pid`.
    pub fn of(pid: u32, tid: u32) -> Activity {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")) else { return Activity::Ended };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
        let number = |name: &str| field(name).parse::<u64>().unwrap_or_default();
        match field("State:").as_bytes().first() {
            Some(b'R' | b'D') => Activity::Runs,
            None | Some(b'Z' | b'X') => Activity::Ended,
            Some(b'S') if writes_output(pid, tid) => Activity::Runs,
            Some(_) => Activity::Waits(number("voluntary_ctxt_switches:") + number("nonvoluntary_ctxt_switches:")),
        }
    }
}

/// Returns true if a thread has ended.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub fn thread_has_ended(tid: u32) -> bool {
    matches!(Activity::of(tid, tid), Activity::Ended)
}

/// Returns true if a thread is blocked on writing to its standard output or error.
fn writes_output(pid: u32, tid: u32) -> bool {
    let call = system_call(pid, tid);
    matches!(call, Some((libc::SYS_write | libc::SYS_writev, first)) if matches!(&*first, "0x1" | "0x2"))
}

/// Returns the run time, queueing time and number of time slices of a thread (`/proc/PID/schedstat`), which differ
/// whenever the thread has run in between. `None` if it has ended, or if the kernel keeps no statistics.
pub fn schedstat(pid: u32, tid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()
}

/// Returns the CPU time of a thread in nanoseconds.
pub fn cpu_time(pid: u32, tid: u32) -> Option<u64> {
    schedstat(pid, tid)?.split(' ').next()?.parse().ok()
}

/// Returns the CPU time of all threads of a process; `None` if it has ended.
pub fn cpu_time_of_all(pid: u32) -> Option<Duration> {
    /// Clock type CPUCLOCK_SCHED in the lowest bits of a clock id.
    const OF_SCHEDULER: libc::clockid_t = 2;
    let clock = !i32::try_from(pid).ok()? << 3 | OF_SCHEDULER;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel checks the clock, and writes to a local.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Returns the address of the futex for which a thread waits.
pub fn futex_of(pid: u32, tid: u32) -> Option<u64> {
    let (number, first) = system_call(pid, tid)?;
    let address = first.strip_prefix("0x")?;
    (number == libc::SYS_futex).then(|| u64::from_str_radix(address, 16).ok()).flatten()
}

/// Returns the number and first argument of the system call in which a thread is blocked.
fn system_call(pid: u32, tid: u32) -> Option<(i64, String)> {
    let call = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let mut words = call.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
}

/// Returns the number of context switches of a thread in a system call with a time-out; `None` otherwise.
pub fn timed_sleep(process: u32, tid: u32) -> Option<String> {
    // System call number and arguments in hexadecimal (proc(5)).
    let call = fs::read_to_string(format!("/proc/{process}/task/{tid}/syscall")).ok()?;
    let mut words = call.split_whitespace();
    let number = words.next()?.parse::<i64>().ok()?;
    let timeout = match number {
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Some("sleeps"),
        libc::SYS_ppoll => words.nth(2),
        libc::SYS_futex => words.nth(3),
        libc::SYS_pselect6 => words.nth(4),
        _ => None,
    };
    timeout.filter(|&timeout| timeout != "0x0")?;
    let status = fs::read_to_string(format!("/proc/{process}/task/{tid}/status")).ok()?;
    status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).map(str::to_owned)
}

/// Returns the number of threads of a process, or `None` if it has ended. Needs one system call: the link count of the
/// task folder is its number of entries plus two.
pub fn thread_count(process: u32) -> Option<usize> {
    let links = fs::metadata(format!("/proc/{process}/task")).ok()?.nlink();
    usize::try_from(links.saturating_sub(2)).ok()
}

/// Returns the ids of the threads of a process, or `None` if it has ended.
pub fn tasks(process: u32) -> Option<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    Some(tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect())
}

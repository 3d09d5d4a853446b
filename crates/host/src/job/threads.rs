//! Ranks with several threads.
//!
//! What such a rank does must not depend on how the machine schedules its threads, so it pauses only when every one of
//! them waits: in the library, held in a loop that polls, or blocked in the kernel.

use super::shared::Shared;
use super::{Job, Pause, signals};
use abi::mailbox::{SLOTS, state};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// Between two looks.
pub const PERIOD: Duration = Duration::from_micros(50);
/// How long threads that sleep again and again are waited for when nothing else is left to happen.
const LAST_CHANCE: Duration = Duration::from_secs(3);
/// Between two looks at threads that sleep; a call of theirs is seen at once.
const NAP: Duration = Duration::from_millis(1);

/// How often each thread that is blocked had waited before, by process and thread.
pub type Census = BTreeMap<(u32, u32), u64>;

/// The threads of a rank that do not wait in the library: those of `process`, and those of the processes that call. `None`
/// when one of them runs, or when the process ends.
fn census(shared: &Shared, rank: usize, process: u32) -> Option<Census> {
    let calls = (0..SLOTS).filter(|&k| matches!(shared.activity(rank, k), state::REQUEST | state::COPIED));
    let callers: Vec<(u32, u32)> = calls.map(|k| (shared.pid(rank, k), shared.tid(rank, k))).collect();
    let mut blocked = Census::new();
    for pid in callers.iter().map(|&(pid, _)| pid).chain((process != 0).then_some(process)) {
        let tids = tasks(pid)?;
        let (mut alive, mut ended) = (false, false);
        let mut busy = false;
        for tid in tids {
            let calls = callers.contains(&(pid, tid)) || tid == pid && callers.contains(&(pid, 0));
            match Doing::of(pid, tid) {
                Doing::Runs if calls => (alive, busy) = (true, true),
                Doing::Runs => return None,
                Doing::Waits(times) => {
                    alive = true;
                    if !calls {
                        blocked.insert((pid, tid), times);
                    }
                }
                Doing::Ended => ended = true,
            }
        }
        // While a process ends, threads that wait in the library are woken to end, too.
        if !alive || ended && busy {
            return None;
        }
    }
    Some(blocked)
}

/// What a thread does.
enum Doing {
    Runs,
    /// It is blocked, or stopped; how often it had waited or was interrupted before.
    Waits(u64),
    Ended,
}

impl Doing {
    fn of(pid: u32, tid: u32) -> Doing {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")) else { return Doing::Ended };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
        let number = |name: &str| field(name).parse::<u64>().unwrap_or_default();
        match field("State:").as_bytes().first() {
            Some(b'R' | b'D') => Doing::Runs,
            None | Some(b'Z' | b'X') => Doing::Ended,
            Some(b'S') if prints(pid, tid) => Doing::Runs,
            Some(_) => Doing::Waits(number("voluntary_ctxt_switches:") + number("nonvoluntary_ctxt_switches:")),
        }
    }
}

/// Whether a thread has ended.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "without steps, nobody asks"))]
pub fn has_ended(tid: u32) -> bool {
    matches!(Doing::of(tid, tid), Doing::Ended)
}

/// Whether a thread waits for a reader of its output.
fn prints(pid: u32, tid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
    let mut words = call.split_whitespace();
    let number = words.next().and_then(|number| number.parse::<i64>().ok());
    matches!(number, Some(libc::SYS_write | libc::SYS_writev)) && matches!(words.next(), Some("0x1" | "0x2"))
}

/// One sleep of a thread: the thread, and how often it had waited before.
type Sleep = (u32, String);

impl Job {
    /// Whether all threads of a rank wait, and will until something happens: a call is answered, a place is written that
    /// one polls, or, which only the real clock decides, a system call of one is over. Held threads whose places were
    /// written by another thread go on.
    pub(super) fn is_settled(&mut self, rank: usize) -> bool {
        if self.rouse(rank) {
            return false;
        }
        let process = self.ranks[rank].caller_pid;
        let before = census(&self.shared, rank, process);
        // None has run between the two looks, so all of them waited at one time.
        before.is_some() && !self.rouse(rank) && before == census(&self.shared, rank, process)
    }

    /// Whether a thread outside of the library sleeps in real time: in a system call that ends after a time.
    pub fn has_sleepers(&self) -> bool {
        !self.asleep.is_empty() && !self.sleeps().is_empty()
    }

    /// Nothing happens for `span` of simulated time, or ever (`None`): lets threads that sleep in real time call first.
    /// Idle time passes no faster than real time for them; with nothing left at all they are waited for while a sleep
    /// lasts, and then for a moment. Gives the rank that goes on.
    pub fn await_sleepers(&mut self, span: Option<Duration>) -> Option<(usize, Pause)> {
        let began = self.sleeps();
        let running = *self.asleep.first().filter(|_| !began.is_empty())?;
        let since = Instant::now();
        loop {
            let seen = self.shared.doorbell();
            if let Some(woken) = self.poll() {
                return Some(woken);
            }
            if let Some(signal) = signals::received() {
                return Some((running, Pause::Interrupted { signal }));
            }
            if let Some((rank, status)) = self.ended(running) {
                return Some((rank, Pause::Exited { rank, status }));
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Some((running, Pause::TimedOut));
            }
            let sleeps = self.sleeps();
            let over = match span {
                Some(span) => since.elapsed() >= span,
                None => since.elapsed() >= LAST_CHANCE && !sleeps.iter().any(|sleep| began.contains(sleep)),
            };
            // One that has woken may be about to call.
            let all_wait = || {
                let waits = |&rank: &usize| census(&self.shared, rank, self.ranks[rank].caller_pid).is_some();
                self.asleep.iter().all(waits)
            };
            if (over || sleeps.is_empty()) && all_wait() && self.shared.doorbell() == seen {
                return None;
            }
            for rank in self.asleep.clone() {
                self.drain(rank);
            }
            self.shared.sleep(seen, Some(NAP));
        }
    }

    fn sleeps(&self) -> Vec<Sleep> {
        let of = |&rank: &usize| {
            let process = self.ranks[rank].caller_pid;
            let tids = tasks(process).unwrap_or_default().into_iter();
            tids.filter(move |&tid| !self.shared.is_inside(rank, process, tid))
                .filter_map(move |tid| Some((tid, timed_sleep(process, tid)?)))
        };
        self.asleep.iter().flat_map(of).collect()
    }
}

/// The threads of a process; `None` when it has ended.
fn tasks(process: u32) -> Option<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    Some(tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// How often a thread has waited, when it is in a system call that ends by itself after some time.
fn timed_sleep(process: u32, tid: u32) -> Option<String> {
    // The number of the system call and its arguments, in hexadecimal (proc(5)).
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

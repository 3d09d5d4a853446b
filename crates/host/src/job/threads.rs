//! Ranks with several threads.

use super::shared::Shared;
use super::{Job, Pause, signals};
use abi::mailbox::{SLOTS, state};
use std::fs;
use std::time::{Duration, Instant};

/// Between two looks.
pub const PERIOD: Duration = Duration::from_micros(50);
/// Threads that compute for longer than this are not waited for: one may spin until another one's call is answered.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long threads that sleep again and again are waited for when nothing else is left to happen.
const LAST_CHANCE: Duration = Duration::from_secs(3);
/// How long all threads must wait before it is said that none will call: a process takes a moment to end.
const SETTLED: Duration = Duration::from_millis(100);
/// Between two looks at threads that sleep; a call of theirs is seen at once.
const NAP: Duration = Duration::from_millis(1);

/// A wait for the threads of a rank: until every one waits, for an answer or asleep in the kernel. A thread that another
/// one has woken counts as running from that moment, so nothing is missed between two looks.
#[derive(Default)]
pub struct Watch {
    since: Option<Instant>,
}

impl Watch {
    /// Whether the threads of the rank all wait, those of `process` and those that call, or were given enough time to.
    pub fn quiet(&mut self, shared: &Shared, rank: usize, process: u32) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        quiet(shared, rank, process) || since.elapsed() > PATIENCE
    }
}

fn quiet(shared: &Shared, rank: usize, process: u32) -> bool {
    let calls = (0..SLOTS).filter(|&k| matches!(shared.activity(rank, k), state::REQUEST | state::COPIED));
    let callers: Vec<(u32, u32)> = calls.map(|k| (shared.pid(rank, k), shared.tid(rank, k))).collect();
    callers.iter().map(|&(pid, _)| pid).chain((process != 0).then_some(process)).all(|pid| {
        tasks(pid).is_none_or(|tids| tids.into_iter().all(|tid| callers.contains(&(pid, tid)) || asleep(pid, tid)))
    })
}

/// Whether a thread sleeps in the kernel or has ended: the state after the command's name (proc(5), `stat`).
fn asleep(pid: u32, tid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")) else { return true };
    !matches!(stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]), Some(b'R' | b'D'))
}

/// One sleep of a thread: the thread, and how often it had waited before.
type Sleep = (u32, String);

impl Job {
    /// Whether a rank has threads that may call by themselves.
    pub fn has_free_threads(&self) -> bool {
        !self.asleep.is_empty()
    }

    /// Nothing happens for `span` of simulated time, or ever (`None`): lets threads that sleep outside of the library
    /// call first. Idle time passes no faster than real time for them; with nothing left at all they are waited for
    /// while a sleep lasts, and then for a moment. Gives the rank that goes on.
    pub fn await_sleepers(&mut self, span: Option<Duration>) -> Option<(usize, Pause)> {
        let began = self.sleeps();
        let running = *self.asleep.first().filter(|_| span.is_none() || !began.is_empty())?;
        let since = Instant::now();
        let mut settled = None;
        let mut watch = Watch::default();
        loop {
            let seen = self.shared.doorbell();
            if let Some(call) = self.poll() {
                return Some((call.caller.rank as usize, Pause::Call(call)));
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
            let all_wait = sleeps.is_empty() && {
                let quiet = |&rank: &usize| watch.quiet(&self.shared, rank, self.ranks[rank].caller_pid);
                self.asleep.iter().all(quiet)
            };
            if !sleeps.is_empty() {
                watch = Watch::default();
            }
            settled = settled.filter(|_| all_wait).or(all_wait.then(Instant::now));
            if over || settled.is_some_and(|settled: Instant| settled.elapsed() >= SETTLED) {
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

//! Ranks with several threads.

use super::shared::Shared;
use abi::mailbox::{SLOTS, state};
use std::fs;
use std::time::{Duration, Instant};

/// Between two looks.
pub const PERIOD: Duration = Duration::from_micros(50);
/// Threads that compute for longer than this are not waited for: one may spin until another one's call is answered.
const PATIENCE: Duration = Duration::from_millis(250);

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
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
        let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        tids.into_iter().all(|tid: u32| callers.contains(&(pid, tid)) || asleep(pid, tid))
    })
}

/// Whether a thread sleeps in the kernel or has ended: the state after the command's name (proc(5), `stat`).
fn asleep(pid: u32, tid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")) else { return true };
    !matches!(stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]), Some(b'R' | b'D'))
}

//! Ranks with several threads.

use super::shared::Shared;
use abi::mailbox::{SLOTS, state};
use std::fs;
use std::time::{Duration, Instant};

/// Threads that compute for longer than this are not waited for: one may spin until another one's call is answered.
const PATIENCE: Duration = Duration::from_millis(20);
/// Between two looks.
const PERIOD: Duration = Duration::from_micros(20);

/// Waits until every thread of a rank waits: for an answer, or asleep in the kernel. A thread that another one has woken
/// counts as running from that moment, so nothing is missed between two looks.
pub fn settle(shared: &Shared, rank: usize) {
    let end = Instant::now() + PATIENCE;
    while !quiet(shared, rank) && Instant::now() < end {
        std::thread::sleep(PERIOD);
    }
}

fn quiet(shared: &Shared, rank: usize) -> bool {
    let calls = (0..SLOTS).filter(|&k| matches!(shared.activity(rank, k), state::REQUEST | state::COPIED));
    let callers: Vec<(u32, u32)> = calls.map(|k| (shared.pid(rank, k), shared.tid(rank, k))).collect();
    callers.iter().all(|&(pid, _)| {
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

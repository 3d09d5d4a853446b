//! Processes of a rank: the one that was started, and its descendants.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Generations between a rank's process and a descendant that are looked through.
const GENERATIONS: usize = 64;

/// A process and its descendants.
pub fn of(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&parent) = all.get(next) {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().filter_map(Result::ok);
        let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        all.extend(children.flat_map(|text| text.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()));
        next += 1;
    }
    all
}

/// Whether a process is another one or a descendant of it. Only the kernel is asked: what a rank says of itself counts
/// for nothing.
pub fn belongs(pid: u32, to: u32) -> bool {
    if pid == to {
        return true;
    }
    let Ok(number) = i32::try_from(pid) else { return false };
    // A rank leads a process group of its own. Nobody is put there but by itself or its parent.
    // SAFETY: a plain system call.
    if number <= 0 || unsafe { libc::getpgid(number) } == to as i32 {
        return number > 0;
    }
    std::iter::successors(parent(pid), |&pid| parent(pid)).take(GENERATIONS).any(|ancestor| ancestor == to)
}

/// The process that a process is a child of: the second field after the command's name (proc(5), `stat`).
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok().filter(|&parent| parent > 1)
}

/// The files that a process has mapped.
pub fn mapped_files(pid: u32) -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(|line| line.find('/').map(|start| PathBuf::from(&line[start..]))).collect()
}

//! Processes of a rank: the one that was started, and its descendants.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

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

/// The files that a process has mapped.
pub fn mapped_files(pid: u32) -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(|line| line.find('/').map(|start| PathBuf::from(&line[start..]))).collect()
}

// SPDX-License-Identifier: Apache-2.0
//! Processes of a rank: the one that was started, and its descendants.

use super::process::process_id;
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Maximum number of generations between a rank's process and a descendant.
const GENERATIONS: usize = 64;

/// Returns a process and its descendants.
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

/// Returns true if `pid` is the process `to` or a descendant of it. Relies on the kernel's records, not on claims of
/// the rank.
pub fn belongs(pid: u32, to: u32) -> bool {
    if pid == to {
        return true;
    }
    let Some(number) = process_id(pid) else { return false };
    // A rank leads its own process group, which only its descendants can join.
    if group(number).is_some_and(|group| Some(group) == process_id(to)) {
        return true;
    }
    std::iter::successors(parent(pid), |&pid| parent(pid)).take(GENERATIONS).any(|ancestor| ancestor == to)
}

/// Returns the process group of a process; `None` if the process has ended, belongs to the kernel, or has a group
/// outside of this PID namespace. The kernel then returns 0, which rustix's function cannot represent.
fn group(pid: Pid) -> Option<Pid> {
    // SAFETY: a system call that touches no memory.
    let group = unsafe { libc::getpgid(pid.as_raw_pid()) };
    (group > 0).then(|| Pid::from_raw(group)).flatten()
}

/// Returns the parent of a process: the second field after the command's name (proc(5), `stat`).
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok().filter(|&parent| parent > 1)
}

/// Returns the files mapped by a process; none if it has ended.
///
/// # Errors
/// The system's error, with the name of the unreadable file.
pub fn mapped_files(pid: u32) -> Result<BTreeSet<PathBuf>, String> {
    let file = format!("/proc/{pid}/maps");
    let maps = match fs::read(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => Vec::new(),
        maps => maps.map_err(|error| format!("{file}: {error}"))?,
    };
    let lines = maps.split(|&byte| byte == b'\n');
    let paths = lines.filter_map(|line| Some(&line[line.iter().position(|&byte| byte == b'/')?..]));
    Ok(paths.map(|path| OsStr::from_bytes(path).into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernel processes are in group 0, as is the first process of a container.
    #[test]
    fn kernel_processes_belong_to_no_rank() {
        for pid in 1..=5 {
            let is_alone = process_id(pid).is_none_or(|number| group(number).is_none_or(|group| group != number));
            assert!(!is_alone || !belongs(pid, i32::MAX as u32), "{pid}");
            assert!(!belongs(pid, u32::MAX), "{pid}");
        }
        assert!(belongs(7, 7));
        // This test is a descendant of its own parent.
        assert!(belongs(std::process::id(), std::os::unix::process::parent_id()));
    }
}

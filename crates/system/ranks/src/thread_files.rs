// SPDX-License-Identifier: Apache-2.0
//! Reads the states of threads from files of `/proc`, which stay open.
//!
//! A rank with several threads is observed after each of its calls. To open, read and close a file costs several times
//! as much as to read an open one.

use super::process::{self, Activity};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Bytes that are read of a file. The files of a thread are shorter.
const LENGTH: usize = 1024;
/// Maximum number of open files.
const MAX_FILES: usize = 1024;

/// Open files of threads, and the threads of processes.
#[derive(Default)]
pub(super) struct ThreadFiles {
    /// Maximum number of files that stay open.
    capacity: usize,
    files: RefCell<HashMap<(u32, u32, &'static str), File>>,
    tasks: RefCell<HashMap<u32, Tasks>>,
    /// Run times of threads that were found blocked in a futex call.
    waits_since: RefCell<HashMap<(u32, u32), String>>,
}

/// Threads of a process.
struct Tasks {
    folder: File,
    /// Threads of the process when it had this number of them.
    tids: Vec<u32>,
}

impl ThreadFiles {
    /// Creates a set of files that uses at most `descriptors`.
    pub(super) fn new(descriptors: usize) -> ThreadFiles {
        ThreadFiles { capacity: descriptors.min(MAX_FILES), ..ThreadFiles::default() }
    }

    /// Passes the content of a file of a thread to `parse`; `None` if the thread has ended.
    fn read<T>(&self, pid: u32, tid: u32, name: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let mut files = self.files.borrow_mut();
        let mut bytes = [0; LENGTH];
        // The kernel refuses to read a file of an ended thread, even if its id is used again.
        let known = files.get(&(pid, tid, name)).and_then(|file| file.read_at(&mut bytes, 0).ok());
        let length = known.filter(|length| *length > 0).or_else(|| {
            files.remove(&(pid, tid, name));
            let file = File::open(format!("/proc/{pid}/task/{tid}/{name}")).ok()?;
            let length = file.read_at(&mut bytes, 0).ok()?;
            let mut tasks = self.tasks.borrow_mut();
            if files.len() + tasks.len() >= self.capacity {
                files.clear();
                tasks.clear();
            }
            if self.capacity > 0 {
                files.insert((pid, tid, name), file);
            }
            Some(length)
        })?;
        // The name of a thread may contain any byte.
        parse(&String::from_utf8_lossy(&bytes[..length]))
    }

    /// Closes the files of a process.
    pub(super) fn forget(&self, pid: u32) {
        self.files.borrow_mut().retain(|(process, ..), _| *process != pid);
        self.tasks.borrow_mut().remove(&pid);
        self.waits_since.borrow_mut().retain(|(process, _), _| *process != pid);
    }

    /// Returns the number of threads of a process, or `None` if it has ended.
    pub(super) fn thread_count(&self, pid: u32) -> Option<usize> {
        self.with_tasks(pid, |tasks| tasks.count())?
    }

    /// Returns the ids of the threads of a process, or `None` if it has ended.
    pub(super) fn tasks(&self, pid: u32) -> Option<Vec<u32>> {
        self.with_tasks(pid, |tasks| {
            if tasks.count() != Some(tasks.tids.len()) {
                tasks.tids = process::tasks(pid)?;
            }
            Some(tasks.tids.clone())
        })?
    }

    fn with_tasks<T>(&self, pid: u32, look: impl FnOnce(&mut Tasks) -> T) -> Option<T> {
        let mut all = self.tasks.borrow_mut();
        if let Some(tasks) = all.get_mut(&pid) {
            return Some(look(tasks));
        }
        let mut tasks = Tasks { folder: File::open(format!("/proc/{pid}/task")).ok()?, tids: Vec::new() };
        let result = look(&mut tasks);
        if self.files.borrow().len() + all.len() < self.capacity {
            all.insert(pid, tasks);
        }
        Some(result)
    }

    /// Reads the threads of a process again at the next use: one of the known threads has ended.
    fn forget_tasks(&self, pid: u32) {
        self.tasks.borrow_mut().remove(&pid);
    }

    /// Returns the run time, queueing time and number of time slices of a thread, which differ whenever the thread has
    /// run in between. `None` if it has ended, or if the kernel keeps no statistics.
    pub(super) fn schedstat(&self, pid: u32, tid: u32) -> Option<String> {
        self.read(pid, tid, "schedstat", |text| Some(text.to_owned()))
    }

    /// Returns the state letter of a thread (`/proc/PID/stat`); `None` if it has ended.
    fn state(&self, pid: u32, tid: u32) -> Option<u8> {
        // The parenthesized name before the state may contain any byte.
        let state = |text: &str| text.as_bytes()[text.rfind(')')?..].get(2).copied();
        let state = self.read(pid, tid, "stat", state);
        if state.is_none() {
            self.forget_tasks(pid);
        }
        state
    }

    /// Returns the number and first argument of the system call in which a thread is blocked.
    fn system_call(&self, pid: u32, tid: u32) -> Option<(i64, String)> {
        self.read(pid, tid, "syscall", |call| {
            let mut words = call.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.to_owned()))
        })
    }

    /// Returns true if a thread sleeps and was not woken.
    pub(super) fn sleeps(&self, pid: u32, tid: u32) -> bool {
        self.state(pid, tid) == Some(b'S')
    }

    /// Returns true if a thread is blocked in a futex call, false if it runs, and `None` if it is blocked in another
    /// one, has ended, or its calls may not be read. Reads the thread state first: shortly after a wake-up, the kernel
    /// may still report the system call, but no longer the sleeping state.
    pub(super) fn waits_for_futex(&self, pid: u32, tid: u32) -> Option<bool> {
        match self.state(pid, tid)? {
            b'S' => {
                let call = |call: &str| match call.split_whitespace().next()?.parse::<i64>() {
                    Ok(number) => (number == libc::SYS_futex).then_some(true),
                    Err(_) => Some(false), // "running"
                };
                self.read(pid, tid, "syscall", call)
            }
            b'R' | b'D' => Some(false),
            _ => None,
        }
    }

    /// Remembers how often a thread has run, if it is blocked in a futex call. Returns [`ThreadFiles::waits_for_futex`].
    pub(super) fn note_futex_wait(&self, pid: u32, tid: u32) -> Option<bool> {
        let slices = self.schedstat(pid, tid);
        let waits = self.waits_for_futex(pid, tid);
        let slices = slices.filter(|_| waits == Some(true));
        let mut waits_since = self.waits_since.borrow_mut();
        match slices {
            Some(slices) => waits_since.insert((pid, tid), slices),
            None => waits_since.remove(&(pid, tid)),
        };
        waits
    }

    /// Returns true if a thread sleeps, and has not run since [`ThreadFiles::note_futex_wait`].
    pub(super) fn still_waits(&self, pid: u32, tid: u32) -> bool {
        let waits_since = self.waits_since.borrow();
        let Some(before) = waits_since.get(&(pid, tid)) else { return false };
        self.sleeps(pid, tid) && self.read(pid, tid, "schedstat", |now| (now == before).then_some(())).is_some()
    }

    /// Reads the activity of a thread of process `pid`. A thread that waits has a count which differs whenever it has
    /// run in between.
    pub(super) fn activity(&self, pid: u32, tid: u32) -> Activity {
        match self.state(pid, tid) {
            Some(b'R' | b'D') => Activity::Runs,
            None | Some(b'Z' | b'X') => Activity::Ended,
            Some(b'S') if self.writes_output(pid, tid) => Activity::Runs,
            Some(_) => match self.schedstat(pid, tid) {
                Some(slices) => {
                    Activity::Waits(slices.split_whitespace().nth(2).and_then(|n| n.parse().ok()).unwrap_or_default())
                }
                None => Activity::of(pid, tid),
            },
        }
    }

    /// Returns true if a thread is blocked on writing to its standard output or error.
    fn writes_output(&self, pid: u32, tid: u32) -> bool {
        let call = self.system_call(pid, tid);
        matches!(call, Some((libc::SYS_write | libc::SYS_writev, first)) if matches!(&*first, "0x1" | "0x2"))
    }
}

impl Tasks {
    /// Returns the number of threads; `None` if the process has ended. The link count of the folder is its number of
    /// entries plus two.
    fn count(&self) -> Option<usize> {
        let links = self.folder.metadata().ok()?.nlink();
        usize::try_from(links.saturating_sub(2)).ok().filter(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread::{self, JoinHandle};
    use std::time::{Duration, Instant};

    /// Files of this process are counted by one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    fn until(is_so: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < Duration::from_secs(60), "never happened");
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn own_tid() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    /// Starts a thread that sleeps in a futex call until it is unparked for the second time.
    fn sleeper(ends: &'static AtomicBool) -> (u32, JoinHandle<()>) {
        let (send, receive) = mpsc::channel();
        let run = move || {
            send.send(own_tid()).unwrap();
            while !ends.load(Ordering::SeqCst) {
                thread::park();
            }
        };
        let handle = thread::spawn(run);
        (receive.recv().unwrap(), handle)
    }

    /// Returns the number of read calls that this thread has made.
    fn reads() -> u64 {
        let io = fs::read_to_string("/proc/thread-self/io").unwrap();
        io.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_that_has_run_no_longer_still_waits() {
        static ENDS: AtomicBool = AtomicBool::new(false);
        let _alone = ALONE.lock().unwrap();
        let pid = std::process::id();
        for capacity in [0, 1, 100] {
            ENDS.store(false, Ordering::SeqCst);
            let files = ThreadFiles::new(capacity);
            let (tid, handle) = sleeper(&ENDS);
            assert!(!files.still_waits(pid, tid), "never found waiting");
            until(|| files.note_futex_wait(pid, tid) == Some(true) && files.still_waits(pid, tid));
            assert_eq!(files.waits_for_futex(pid, own_tid()), Some(false), "this thread runs");
            assert!(files.tasks(pid).unwrap().contains(&tid));
            handle.thread().unpark();
            until(|| !files.still_waits(pid, tid));
            until(|| files.waits_for_futex(pid, tid) == Some(true));
            assert!(!files.still_waits(pid, tid), "it has run in between");
            ENDS.store(true, Ordering::SeqCst);
            handle.thread().unpark();
            handle.join().unwrap();
            until(|| files.waits_for_futex(pid, tid).is_none() && !files.tasks(pid).unwrap().contains(&tid));
            assert!(matches!(files.activity(pid, tid), Activity::Ended));
            assert!(files.files.borrow().len() + files.tasks.borrow().len() <= capacity);
        }
    }

    #[test]
    fn a_waiting_thread_is_observed_by_two_reads() {
        static ENDS: AtomicBool = AtomicBool::new(false);
        let _alone = ALONE.lock().unwrap();
        let (pid, files) = (std::process::id(), ThreadFiles::new(100));
        let (tid, handle) = sleeper(&ENDS);
        until(|| files.note_futex_wait(pid, tid) == Some(true) && files.still_waits(pid, tid));
        let none = reads();
        let of_count = reads() - none;
        let before = reads();
        assert!((0..1000).all(|_| files.still_waits(pid, tid)));
        assert_eq!(reads() - before, 2000 + of_count);
        ENDS.store(true, Ordering::SeqCst);
        handle.thread().unpark();
        handle.join().unwrap();
    }
}

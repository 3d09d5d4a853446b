// SPDX-License-Identifier: Apache-2.0
//! A process of handlers: its memories, its tasks, its watchdog, and its end.

use std::ffi::CString;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use machine::Pspin;
use thiserror::Error;

use crate::clock::ticks;
use crate::image::{DATA, Image};
use crate::layout::{
    AT_HPUS, AT_RING, AT_SLOTS, Control, FILE_BELL, FILE_CONTEXT, FILE_DATA, FILE_PORT, HANDLER_MEMORY, HOST,
    MOST_HANDLER_MEMORY, MOST_HOST, MOST_HPUS, MOST_PACKET, OUTPUT, RING, Region, Shared, Slot,
};

/// Error of the engine.
#[derive(Debug, Error)]
pub enum NativeError {
    /// Another architecture.
    #[error("--engine native needs an x86-64 computer with Linux; --engine model runs everywhere")]
    Architecture,
    /// A memory or a number exceeds a limit of the engine.
    #[error("{what} is {wanted}; --engine native has at most {most}")]
    Limit {
        /// Quantity.
        what: &'static str,
        /// Wanted value.
        wanted: u64,
        /// Largest value.
        most: u64,
    },
    /// The system refuses a step.
    #[error("cannot {step} for the handlers' process: {error}")]
    System {
        /// Step.
        step: &'static str,
        /// Reason.
        error: io::Error,
    },
    /// The process does not start.
    #[error("the handlers' process does not start: {0}")]
    Start(String),
    /// The process ends again and again.
    #[error("the handlers' process {0}, for the tenth time within a second; the card ends")]
    Ends(String),
    /// A program requests the end of the run.
    #[error("the program ended the run with TERMINATE on HPU {hpu} of cluster {cluster}")]
    Terminated {
        /// HPU within the cluster.
        hpu: u32,
        /// Cluster.
        cluster: u32,
    },
}

/// Makes the error of a step that the system refuses.
fn system(step: &'static str) -> impl Fn(io::Error) -> NativeError {
    move |error| NativeError::System { step, error }
}

/// Returns the result of a system call.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the system call has just returned this descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Anonymous file in memory.
pub struct Memory {
    fd: OwnedFd,
    base: *mut u8,
    bytes: usize,
}

impl Memory {
    /// Creates memory that reads as zero; the system backs only pages that are written.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new(bytes: u64) -> Result<Memory, NativeError> {
        let create = || {
            // SAFETY: the name ends with a zero byte.
            let fd = owned(unsafe { libc::memfd_create(c"spinkit-card".as_ptr(), libc::MFD_CLOEXEC) })?;
            // SAFETY: no pointers.
            check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) })?;
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
            // SAFETY: a new mapping of the whole file.
            let base =
                unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, fd.as_raw_fd(), 0) };
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Memory { fd, base: base.cast(), bytes: bytes as usize })
        };
        create().map_err(system("create memory"))
    }

    /// Writes bytes.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.bytes && bytes.len() <= self.bytes - at, "inside the memory");
        // SAFETY: checked above; the other process may write the same bytes, which are only data.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at), bytes.len()) }
    }

    /// Returns the address of a structure.
    fn at<T>(&self, at: usize) -> *mut T {
        assert!(at + size_of::<T>() <= self.bytes && at.is_multiple_of(align_of::<T>()), "inside the memory");
        // SAFETY: checked above.
        unsafe { self.base.add(at) }.cast()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nothing uses any more.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Parameters of a process.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// HPUs: threads.
    pub hpus: u32,
    /// HPUs of a cluster.
    pub hpus_per_cluster: u32,
    /// Ticks for which an idle HPU looks for work.
    pub spin: u32,
    /// Bytes of handler memory, of each scratchpad, and of host memory.
    pub handler_memory: u32,
    /// Bytes of each scratchpad.
    pub scratchpad: u32,
    /// Bytes of host memory.
    pub host: u64,
}

/// PCIe address of host memory, as on the simulated card: 64 bytes after 2^60, where the descriptor is.
pub const HOST_ADDRESS: u64 = (1 << 60) + 64;

/// Process of the handlers of one context.
pub struct Process {
    memory: Memory,
    pid: libc::pid_t,
    hpus: u32,
    hpus_per_cluster: u32,
    packets: usize,
    slot_bytes: u32,
    slots: u32,
}

/// Files that a process needs at its start.
pub struct Files<'a> {
    /// Executable.
    pub image: &'a Image,
    /// Static data, shared by the contexts of a program.
    pub data: &'a Memory,
    /// Port, one write to which sends a packet.
    pub port: BorrowedFd<'a>,
    /// The card's bell, an eventfd.
    pub bell: BorrowedFd<'a>,
}

impl Process {
    /// Creates the memories of a context, and starts its process.
    ///
    /// # Errors
    /// [`NativeError`].
    pub fn new(config: &Pspin, parameters: &Parameters, files: &Files<'_>) -> Result<Process, NativeError> {
        if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
            return Err(NativeError::Architecture);
        }
        let Parameters { hpus, hpus_per_cluster, spin, handler_memory, scratchpad, host } = *parameters;
        let packet_most = u64::from(abi::pspin::map::PROGRAM - abi::pspin::map::PACKET);
        for (what, wanted, most) in [
            ("--threads", hpus.into(), MOST_HPUS.into()),
            ("--handler-memory", handler_memory.into(), MOST_HANDLER_MEMORY.into()),
            ("--host-memory", host, MOST_HOST),
            ("--scratchpad", scratchpad.into(), config.scratchpad().into()),
            ("accelerator.l2_packet.bytes", config.l2_packet.bytes.into(), packet_most),
        ] {
            if wanted > most {
                return Err(NativeError::Limit { what, wanted, most });
            }
        }
        let page = |bytes: u64| bytes.next_multiple_of(4096);
        let control_bytes = AT_HPUS as u64 + u64::from(hpus) * size_of::<Shared>() as u64;
        let mut end = page(control_bytes);
        let mut regions = Vec::new();
        let mut add = |address: u32, bytes: u64| {
            let offset = end;
            if bytes > 0 {
                regions.push(Region { address: address.into(), bytes: page(bytes), offset, file: FILE_CONTEXT as u64 });
                end += page(bytes);
            }
            offset
        };
        let packets = add(abi::pspin::map::PACKET, config.l2_packet.bytes.into());
        add(HANDLER_MEMORY, handler_memory.into());
        let clusters = config.units.clusters.min(4);
        let mut scratchpads = [0; 4];
        for (cluster, place) in (0..clusters).zip(&mut scratchpads) {
            *place = (Pspin::L1_START + cluster * Pspin::L1_SPAN + config.l1.bytes - config.scratchpad()) & !4095;
            add(*place, scratchpad.into());
        }
        add(HOST, host);
        let total = end;
        regions.push(Region {
            address: DATA.into(),
            bytes: files.data.bytes as u64,
            offset: 0,
            file: FILE_DATA as u64,
        });
        let memory = Memory::new(total)?;
        let slot_bytes = (config.l2_packet.bytes / RING).clamp(2048, MOST_PACKET) & !63;
        let slots = (config.l2_packet.bytes / slot_bytes).min(RING);
        let control = memory.at::<Control>(0);
        // SAFETY: the memory is new; the process that reads it does not run yet.
        unsafe {
            (*control).bytes = control_bytes as u32;
            (*control).hpus = hpus;
            (*control).hpus_per_cluster = hpus_per_cluster;
            (*control).spin = spin;
            (*control).handler_memory = HANDLER_MEMORY;
            (*control).handler_memory_bytes = handler_memory;
            (*control).scratchpads = scratchpads;
            for (cluster, bytes) in (*control).scratchpad_bytes.iter_mut().enumerate() {
                *bytes = if (cluster as u32) < clusters { scratchpad } else { 0 };
            }
            (*control).data = DATA;
            (*control).data_bytes = files.data.bytes as u32;
            (*control).host = HOST_ADDRESS;
            (*control).host_bytes = host;
            (*control).regions_count = regions.len() as u32;
            for (place, region) in (*control).regions.iter_mut().zip(&regions) {
                *place = *region;
            }
        }
        let mut process =
            Process { memory, pid: 0, hpus, hpus_per_cluster, packets: packets as usize, slot_bytes, slots };
        process.start(files)?;
        Ok(process)
    }

    /// Writes the initial handler memory.
    pub fn write_handler_memory(&self, bytes: &[u8]) {
        // SAFETY: fields of the card, which are read once.
        let regions = unsafe { (*self.memory.at::<Control>(0)).regions };
        if let Some(region) = regions.iter().find(|region| region.address == HANDLER_MEMORY.into()) {
            let most = bytes.len().min(region.bytes as usize);
            self.memory.write(region.offset as usize, &bytes[..most]);
        }
    }

    /// Starts the process, with no tasks. The contents of its memories stay.
    ///
    /// # Errors
    /// [`NativeError`] when it does not start.
    pub fn start(&mut self, files: &Files<'_>) -> Result<(), NativeError> {
        let control = self.control();
        for word in [&control.tail, &control.head, &control.wake, &control.sleepers, &control.ready] {
            word.store(0, SeqCst);
        }
        for hpu in 0..self.hpus {
            self.shared(hpu).since.store(0, SeqCst);
        }
        // SAFETY: the name ends with a zero byte.
        let program = owned(unsafe { libc::memfd_create(c"spinkit-hpus".as_ptr(), libc::MFD_CLOEXEC) });
        let program = program.map_err(system("create a file"))?;
        let mut file = std::fs::File::from(program);
        file.write_all(&files.image.file).map_err(system("write the program"))?;
        let fds =
            [self.memory.fd.as_raw_fd(), files.port.as_raw_fd(), files.bell.as_raw_fd(), files.data.fd.as_raw_fd()];
        // SAFETY: the path ends with a zero byte.
        let null = owned(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) });
        let null = null.map_err(system("open /dev/null"))?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no zero byte");
        // SAFETY: the child calls only functions that are safe after a fork.
        self.pid = check(unsafe { libc::fork() }).map_err(system("fork"))?;
        if self.pid == 0 {
            // SAFETY: as above; the pointers are those of the parent's copies.
            unsafe { become_program(&path, &fds, null.as_raw_fd()) }
        }
        self.wait_until_ready(files.bell)
    }

    fn wait_until_ready(&mut self, bell: BorrowedFd<'_>) -> Result<(), NativeError> {
        let end = Instant::now() + Duration::from_secs(10);
        while self.control().ready.load(SeqCst) != self.hpus + 1 {
            if let Some(reason) = self.ended() {
                return Err(NativeError::Start(reason));
            }
            if Instant::now() > end {
                return Err(NativeError::Start("it is not ready after 10 s".to_owned()));
            }
            let mut polled = libc::pollfd { fd: bell.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry.
            unsafe { libc::poll(&raw mut polled, 1, 5) };
        }
        Ok(())
    }

    /// Returns the reason if the process has ended.
    pub fn ended(&mut self) -> Option<String> {
        let mut status = 0;
        // SAFETY: a place for the status.
        if self.pid == 0 || unsafe { libc::waitpid(self.pid, &raw mut status, libc::WNOHANG) } != self.pid {
            return None;
        }
        self.pid = 0;
        Some(if libc::WIFSIGNALED(status) {
            format!("was ended by signal {}", libc::WTERMSIG(status))
        } else {
            match libc::WEXITSTATUS(status) {
                101 => "cannot be executed: the system may forbid programs in anonymous files".to_owned(),
                103 => "cannot map its memories".to_owned(),
                104 | 105 => "cannot confine itself: the kernel lacks seccomp filters".to_owned(),
                status => format!("ended with status {status}"),
            }
        })
    }

    fn control(&self) -> &Control {
        // SAFETY: the structure is inside the memory; only atomic fields change after the start.
        unsafe { &*self.memory.at::<Control>(0) }
    }

    /// Returns an HPU.
    pub fn shared(&self, hpu: u32) -> &Shared {
        assert!(hpu < self.hpus, "an HPU of this process");
        // SAFETY: the structure is inside the memory; its output is read by `take_output` only.
        unsafe { &*self.memory.at::<Shared>(AT_HPUS + hpu as usize * size_of::<Shared>()) }
    }

    /// Returns a slot. The other process may write it at any time.
    fn slot(&self, slot: u32) -> *mut Slot {
        self.memory.at::<Slot>(AT_SLOTS + (slot % RING) as usize * size_of::<Slot>())
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Number of HPUs.
    pub fn hpus(&self) -> u32 {
        self.hpus
    }

    /// Returns the cluster of an HPU, and its number there.
    pub fn place(&self, hpu: u32) -> (u32, u32) {
        (hpu / self.hpus_per_cluster, hpu % self.hpus_per_cluster)
    }

    /// Largest packet.
    pub fn most_bytes(&self) -> usize {
        self.slot_bytes as usize
    }

    /// Writes a packet into a slot.
    pub fn write_packet(&self, slot: u32, bytes: &[u8], transfer: u32, flow: u32, home: u32) {
        assert!(bytes.len() <= self.most_bytes() && slot < self.slots, "the caller checks it");
        let offset = slot as usize * self.slot_bytes as usize;
        self.memory.write(self.packets + offset, bytes);
        let (place, size) = (self.slot(slot), bytes.len() as u32);
        // SAFETY: inside the memory; no HPU has this slot.
        unsafe {
            (*place).packet = abi::pspin::map::PACKET + offset as u32;
            (*place).size = size;
            (*place).transfer = transfer.min(size);
            (*place).flow = flow;
            (*place).home = home;
        }
    }

    /// Queues a slot: HPUs run these handlers, one after the other.
    pub fn push(&self, slot: u32, handlers: [u32; 3]) {
        let (place, control) = (self.slot(slot), self.control());
        // SAFETY: inside the memory; no HPU has this slot.
        unsafe {
            (*place).handlers = handlers;
            (*place).is_done.store(0, SeqCst);
        }
        let tail = control.tail.load(SeqCst);
        let ring = self.memory.at::<u32>(AT_RING + (tail % RING) as usize * 4);
        // SAFETY: inside the memory; at most RING slots are queued, so HPUs have read this place.
        unsafe { ring.write_volatile(slot) };
        control.tail.store(tail.wrapping_add(1), SeqCst);
        if control.sleepers.load(SeqCst) > 0 {
            control.wake.fetch_add(1, SeqCst);
            // SAFETY: a word that outlives the call.
            unsafe { libc::syscall(libc::SYS_futex, control.wake.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }

    /// Returns the queued slots that no HPU has taken.
    pub fn untaken(&self) -> Vec<u32> {
        let control = self.control();
        let (head, tail) = (control.head.load(SeqCst), control.tail.load(SeqCst));
        let count = tail.wrapping_sub(head).min(RING);
        let place = |index: u32| AT_RING + (tail.wrapping_sub(count).wrapping_add(index) % RING) as usize * 4;
        // SAFETY: inside the memory; the values are only data.
        (0..count).map(|index| unsafe { self.memory.at::<u32>(place(index)).read_volatile() }).collect()
    }

    /// Returns the HPU and the results of a slot whose handlers have all ended.
    pub fn results(&self, slot: u32) -> Option<(u32, [crate::layout::Outcome; 3])> {
        let place = self.slot(slot);
        // SAFETY: inside the memory; the values are only data.
        unsafe {
            if (*place).is_done.load(SeqCst) == 0 {
                return None;
            }
            Some((
                std::ptr::read_volatile(&raw const (*place).hpu).min(self.hpus - 1),
                std::ptr::read_volatile(&raw const (*place).results),
            ))
        }
    }

    /// Requests the bell at the end of each task, or not.
    pub fn want_bell(&self, wants: bool) {
        self.control().wants_bell.store(u32::from(wants), SeqCst);
    }

    /// Returns the HPU that has requested the end of the run.
    pub fn terminated(&self) -> Option<u32> {
        self.control().terminated.load(SeqCst).checked_sub(1).map(|hpu| hpu.min(self.hpus - 1))
    }

    /// Takes whole lines of an HPU, without their ends, and the number of lines lost since the last call.
    pub fn take_output(&self, hpu: u32) -> (Vec<String>, u32) {
        let shared = self.shared(hpu);
        let (written, read) = (shared.written.load(SeqCst), shared.read.load(SeqCst));
        let lost = shared.lost.swap(0, SeqCst);
        if written == read {
            return (Vec::new(), lost);
        }
        let count = written.wrapping_sub(read).min(OUTPUT);
        let base = self.memory.at::<Shared>(AT_HPUS + hpu as usize * size_of::<Shared>());
        let byte = |index: u32| {
            // SAFETY: inside the ring; the value is only data.
            unsafe { std::ptr::read_volatile(&raw const (*base).output[(read.wrapping_add(index) % OUTPUT) as usize]) }
        };
        let bytes: Vec<u8> = (0..count).map(byte).collect();
        shared.read.store(written, SeqCst);
        let text = String::from_utf8_lossy(&bytes);
        (text.lines().map(str::to_owned).collect(), lost)
    }

    /// Interrupts handlers that have run for more than `limit` ticks.
    pub fn watch(&self, limit: u64) {
        let now = ticks();
        for hpu in 0..self.hpus {
            let shared = self.shared(hpu);
            let since = shared.since.load(SeqCst);
            if since == 0 || now.saturating_sub(since) <= limit || self.pid == 0 {
                continue;
            }
            shared.killed.store(shared.sequence.load(SeqCst), SeqCst);
            // The signal reaches only threads of this process, whatever the memory says.
            // SAFETY: no pointers.
            unsafe { libc::syscall(libc::SYS_tgkill, self.pid, shared.thread.load(SeqCst), libc::SIGUSR1) };
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: a child of this process, which nobody has waited for.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// Makes a forked child the program at `path`, with `fds` as its files and nothing else of this process.
///
/// # Safety
/// Only in a child after a fork; the path ends with a zero byte.
unsafe fn become_program(path: &CString, fds: &[RawFd; 4], null: RawFd) -> ! {
    let none = [std::ptr::null::<libc::c_char>()];
    let arguments = [c"spinkit-hpus".as_ptr(), std::ptr::null()];
    let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let places = [FILE_CONTEXT, FILE_PORT, FILE_BELL, FILE_DATA];
    // SAFETY: only system calls, with pointers to local values.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_CORE, &raw const limit);
        // Out of the way of the places, which may be taken.
        let high = fds.map(|fd| libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 64));
        let null = libc::fcntl(null, libc::F_DUPFD_CLOEXEC, 64);
        // The path names the file of the program by its number.
        let moved = high.iter().chain([&null]).all(|fd| *fd >= 0);
        let program = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let program = libc::fcntl(program, libc::F_DUPFD_CLOEXEC, 64);
        for (fd, place) in high.into_iter().zip(places) {
            libc::dup2(fd, place);
        }
        for place in 0..3 {
            libc::dup2(null, place);
        }
        libc::syscall(libc::SYS_close_range, 7_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_uint);
        if moved && program >= 0 {
            libc::syscall(
                libc::SYS_execveat,
                program,
                c"".as_ptr(),
                arguments.as_ptr(),
                none.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        }
        libc::_exit(101)
    }
}

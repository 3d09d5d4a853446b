// SPDX-License-Identifier: Apache-2.0
//! Memory areas and state of a rank.

use crate::context::{self, Context};
use crate::program::{Function, PAGE, Program, Value};
use crate::streams::{Input, Random, Streams};
use crate::types::{Stop, Symbol};
use dlmalloc::Dlmalloc;
use portals::library_state::{Embedded, Services};
use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::hash::Hasher;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::rc::Rc;

thread_local! {
    /// The rank that runs on this thread; null while the simulator runs.
    static CURRENT: Cell<*mut Rank> = const { Cell::new(null_mut()) };
    /// Number of times that a rank of this thread was continued.
    static RUNS: Cell<u64> = const { Cell::new(0) };
    /// The simulator, while a rank runs.
    static SIMULATOR: Cell<Context> = const { Cell::new(Context(0)) };
}

/// Returns the rank that runs on this thread; null while the simulator runs. Async-signal-safe.
pub fn current() -> *mut Rank {
    CURRENT.get()
}

/// Returns the number of times that a rank of this thread was continued. Async-signal-safe.
pub fn runs() -> u64 {
    RUNS.get()
}

/// A rank in this process.
pub struct Rank {
    /// The suspended rank.
    pub context: Context,
    /// State of `libportals.so`.
    pub library: Embedded,
    /// Program.
    pub program: Rc<Program>,
    /// All memory of the rank: the program's image, heap and stack.
    pub area: Range<u64>,
    /// Allocator of the heap.
    pub heap: Dlmalloc<Arena>,
    /// Open streams.
    pub streams: Streams,
    /// Functions registered for the end, with their arguments.
    pub at_exit: Vec<(extern "C" fn(*mut c_void), usize)>,
    /// Value of `errno` while the rank is suspended.
    pub errno: c_int,
    /// Environment, ended by NULL.
    pub environment: Vec<*mut c_char>,
    /// Variable `environ`.
    pub environ: *mut *mut c_char,
    /// State of `rand` and `random`.
    pub random: Random,
    /// Rest of the string of `strtok`.
    pub token: *mut c_char,
    /// Reason of the latest suspension.
    pub stop: Stop,
    /// Registers at the place where a signal interrupted the rank, while it is suspended there.
    pub interrupted: *mut libc::ucontext_t,
    /// True while the rank executes one instruction.
    pub is_stepping: bool,
}

/// Part of a rank's memory that its allocator has not taken yet.
pub struct Arena {
    free: Cell<Range<u64>>,
}

// SAFETY: ranges are handed out once and never taken back.
unsafe impl dlmalloc::Allocator for Arena {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let free = self.free.take();
        let size = size.next_multiple_of(PAGE as usize);
        let end = free.start.checked_add(size as u64).filter(|end| *end <= free.end);
        self.free.set(end.unwrap_or(free.start)..free.end);
        end.map_or((null_mut(), 0, 0), |_| (free.start as *mut u8, size, 0))
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE as usize
    }
}

/// Description of a new rank.
pub struct Start<'a> {
    /// Address range, which is reserved and inaccessible.
    pub area: Range<u64>,
    /// Size of the stack in bytes.
    pub stack_size: u64,
    /// True for few mappings: constants share the protection of the code, and no page guards the stack.
    pub is_compact: bool,
    /// Arguments, beginning with the program's name.
    pub arguments: &'a [CString],
    /// Environment variables that are the same for all ranks; they stay valid.
    pub common: &'a [CString],
    /// Further environment variables.
    pub variables: &'a [CString],
    /// Session of the library.
    pub session: portals::session::Session,
    /// Standard input.
    pub input: Input,
    /// True if the simulator forwards the output.
    pub forwards: bool,
}

impl Rank {
    /// Loads the program for a rank, which is suspended at its entry point.
    ///
    /// # Errors
    /// The system's error when it provides no memory.
    pub fn new(program: &Rc<Program>, start: Start<'_>) -> io::Result<Box<Rank>> {
        let Start { area, stack_size, is_compact, .. } = start;
        let stack = area.end - stack_size;
        let heap_end = if is_compact { stack } else { stack - PAGE };
        let image_end = area.start.saturating_add(program.size());
        if image_end > heap_end {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        map_image(program, area.start, is_compact)?;
        map(image_end..heap_end)?;
        map(stack..area.end)?;
        let services = Services { wait, end: end_with, write_error };
        let mut rank = Box::new(Rank {
            context: Context(0),
            library: Embedded::new(start.session, services),
            program: program.clone(),
            area: area.clone(),
            heap: Dlmalloc::new_with_allocator(Arena { free: Cell::new(image_end..heap_end) }),
            streams: Streams::new(start.forwards, end_by_pipe),
            at_exit: Vec::new(),
            errno: 0,
            environment: Vec::new(),
            environ: null_mut(),
            random: Random::new(),
            token: null_mut(),
            stop: Stop::Waits,
            interrupted: null_mut(),
            is_stepping: false,
        });
        rank.streams.open(start.input)?;
        rank.fill_stack(start.arguments, start.common, start.variables);
        rank.relocate();
        Ok(rank)
    }

    /// Writes arguments and environment to the stack (System V ABI, §3.4.1), and prepares the entry.
    fn fill_stack(&mut self, arguments: &[CString], common: &[CString], variables: &[CString]) {
        let mut top = self.area.end;
        let mut push = |text: &CString| {
            let bytes = text.as_bytes_with_nul();
            top -= bytes.len() as u64;
            // SAFETY: the stack is mapped, and far larger than the strings.
            unsafe { (top as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            top as *mut c_char
        };
        let arguments: Vec<_> = arguments.iter().map(&mut push).collect();
        let variables = variables.iter().map(&mut push);
        self.environment = variables.chain(common.iter().map(|text| text.as_ptr().cast_mut())).collect();
        self.environment.push(null_mut());
        self.environ = self.environment.as_mut_ptr();
        let mut words = vec![arguments.len() as u64];
        words.extend(arguments.iter().map(|text| *text as u64));
        words.push(0);
        words.extend(self.environment.iter().map(|text| *text as u64));
        words.extend([0, 0]); // an empty auxiliary vector
        let stack = (top - words.len() as u64 * 8) & !15;
        // SAFETY: as above; the stack is below the strings.
        unsafe {
            (stack as *mut u64).copy_from_nonoverlapping(words.as_ptr(), words.len());
            self.context = Context::new(stack as usize, (self.area.start + self.program.entry) as usize);
        }
    }

    fn relocate(&mut self) {
        let base = self.area.start;
        for (offset, value) in &self.program.relocations {
            let value = match *value {
                Value::Base(addend) => base.wrapping_add(addend),
                Value::Outside(symbol, addend) => self.address(symbol).wrapping_add(addend),
                Value::Variable(symbol) => self.content(symbol),
                Value::Resolver(address) => {
                    // SAFETY: a resolver of the program; it uses only the processor's properties.
                    let resolver: extern "C" fn() -> u64 = unsafe { std::mem::transmute(base + address) };
                    resolver()
                }
            };
            // SAFETY: the loader's relocations are within the image's writable segments, which are mapped.
            unsafe { (base.wrapping_add(*offset) as *mut u64).write_unaligned(value) };
        }
    }

    /// Returns the address of a symbol outside of the program.
    fn address(&self, symbol: Symbol) -> u64 {
        match symbol {
            Symbol::Function(address) => address,
            Symbol::Stream(number) => &raw const self.streams.standard[usize::from(number)] as u64,
            Symbol::Environment => &raw const self.environ as u64,
        }
    }

    /// Returns the content of a variable outside of the program.
    fn content(&self, symbol: Symbol) -> u64 {
        match symbol {
            Symbol::Function(address) => address,
            Symbol::Stream(number) => self.streams.standard[usize::from(number)] as u64,
            Symbol::Environment => self.environ as u64,
        }
    }

    /// Returns the functions that run before (or, if `at_end`, after) `main`.
    pub fn functions(&self, at_end: bool) -> Vec<u64> {
        let base = self.area.start;
        let list = if at_end { &self.program.fini } else { &self.program.init };
        let address = |function: &Function| match function {
            Function::At(address) => base + address,
            // SAFETY: the array lies in the mapped image.
            Function::Pointer(address) => unsafe { ((base + address) as *const u64).read_unaligned() },
        };
        list.iter().map(address).collect()
    }

    /// Hashes registers and memory. Returns the number of bytes; `None` if there are more than `most`.
    ///
    /// # Safety
    /// The rank must be suspended in a call.
    pub unsafe fn hash(&self, most: u64, hasher: &mut impl Hasher) -> Option<u64> {
        let base = self.area.start;
        let data = self.program.segments.iter().filter(|segment| segment.is_writable);
        let data = data.map(|segment| base + segment.range.start..base + segment.range.end);
        let used = self.heap.allocator().free.take();
        self.heap.allocator().free.set(used.clone());
        let heap = base + self.program.size()..used.start;
        // Memory below the stack pointer holds leftovers of returned functions.
        let stack = self.context.0 as u64..self.area.end;
        let areas: Vec<Range<u64>> = data.chain([heap, stack]).collect();
        let length = areas.iter().map(|area| area.end - area.start).sum();
        if length > most {
            return None;
        }
        for area in areas {
            // SAFETY: the caller guarantees it: nothing changes the memory meanwhile.
            hasher.write(unsafe {
                std::slice::from_raw_parts(area.start as *const u8, (area.end - area.start) as usize)
            });
        }
        self.library.hash_state(hasher);
        self.random.hash_state(hasher);
        Some(length)
    }

    /// Continues a suspended rank until it is suspended again, unless it has ended.
    ///
    /// # Safety
    /// This thread must be the one that created the rank.
    pub unsafe fn run(rank: *mut Rank) -> Stop {
        // SAFETY: the caller guarantees it; `current` is null again before the rank can be dropped.
        unsafe {
            if matches!((*rank).stop, Stop::Ended(_)) {
                return (*rank).stop;
            }
            RUNS.set(RUNS.get() + 1);
            let errno = libc::__errno_location();
            Embedded::select(&raw const (*rank).library);
            (*rank).streams.select();
            let own_errno = errno.replace((*rank).errno);
            CURRENT.set(rank);
            context::switch(SIMULATOR.with(Cell::as_ptr), (*rank).context);
            CURRENT.set(null_mut());
            (*rank).errno = errno.replace(own_errno);
            Embedded::select(std::ptr::null());
            (*rank).stop
        }
    }
}

/// Suspends the current rank.
///
/// # Safety
/// A rank must run.
pub unsafe fn suspend(stop: Stop) {
    let rank = CURRENT.get();
    // SAFETY: the caller guarantees it; the simulator waits in `run`.
    unsafe {
        (*rank).stop = stop;
        context::switch(&raw mut (*rank).context, SIMULATOR.get());
    }
}

/// Ends the current rank with the status of waitpid(2).
///
/// # Safety
/// A rank must run.
pub unsafe fn end(status: c_int) -> ! {
    // SAFETY: as above.
    unsafe { suspend(Stop::Ended(status)) };
    unreachable!("an ended rank does not continue")
}

fn wait() {
    // SAFETY: the library calls it for the running rank.
    unsafe { suspend(Stop::Waits) };
}

fn end_with(status: i32) -> ! {
    // SAFETY: as above.
    unsafe {
        (*current()).streams.flush();
        end((status & 0xff) << 8)
    }
}

/// Ends the current rank, if any, as a process that writes to a closed pipe.
fn end_by_pipe() {
    if !current().is_null() {
        // SAFETY: a rank runs.
        unsafe { end(libc::SIGPIPE) };
    }
}

fn write_error(bytes: &[u8]) {
    // SAFETY: as above.
    unsafe { (*current()).streams.write(2, bytes) };
}

/// Maps zeroed memory over reserved addresses.
fn map(range: Range<u64>) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    mmap(range, protection, flags, -1, 0)
}

fn mmap(range: Range<u64>, protection: c_int, flags: c_int, file: c_int, offset: u64) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let length = (range.end - range.start) as usize;
    // SAFETY: replaces reserved addresses of this rank alone.
    let mapped = unsafe { libc::mmap(range.start as *mut _, length, protection, flags, file, offset as libc::off_t) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Maps the segments of a program.
fn map_image(program: &Program, base: u64, is_compact: bool) -> io::Result<()> {
    let file = program.file.as_raw_fd();
    for segment in &program.segments {
        let (start, end) = (segment.range.start & !(PAGE - 1), segment.range.end.next_multiple_of(PAGE));
        let range = base + start..base + end;
        if segment.is_writable {
            map(range)?;
            let (from, length) = (segment.file.start as usize, (segment.file.end - segment.file.start) as usize);
            let to = (base + segment.range.start) as *mut u8;
            // SAFETY: just mapped; the file's part is at most as long as the segment.
            unsafe { to.copy_from_nonoverlapping(program.bytes[from..].as_ptr(), length) };
            continue;
        }
        let execute = if segment.is_executable || is_compact { libc::PROT_EXEC } else { 0 };
        let offset = segment.file.start & !(PAGE - 1);
        mmap(range, libc::PROT_READ | execute, libc::MAP_PRIVATE | libc::MAP_FIXED, file, offset)?;
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! Streams of the C library for ranks, and other library state that each rank has separately.

use crate::rank::{self, Rank};
use std::ffi::{c_char, c_int, c_void};
use std::hash::Hasher;
use std::io;
use std::ptr::null_mut;

pub use libc::FILE as File;

/// Callbacks of `fopencookie` (stdio.h).
#[repr(C)]
struct Callbacks {
    read: Option<extern "C" fn(*mut c_void, *mut c_char, usize) -> isize>,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize>,
    seek: Option<extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int>,
    close: Option<extern "C" fn(*mut c_void) -> c_int>,
}

unsafe extern "C" {
    static mut stdin: *mut File;
    static mut stdout: *mut File;
    static mut stderr: *mut File;
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, callbacks: Callbacks) -> *mut File;
    fn __fpurge(stream: *mut File);
    fn initstate_r(seed: u32, state: *mut c_char, length: usize, data: *mut RandomData) -> c_int;
    fn srandom_r(seed: u32, data: *mut RandomData) -> c_int;
    fn random_r(data: *mut RandomData, result: *mut i32) -> c_int;
}

/// Source of a rank's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The program does not use it.
    None,
    /// Empty.
    Empty,
    /// That of this process.
    Inherited,
}

/// Opens the standard streams of a rank: line-buffered output, and unbuffered errors.
///
/// # Errors
/// The system's error.
pub fn standard(rank: *mut Rank, input: Input) -> io::Result<[*mut File; 3]> {
    // SAFETY: valid strings; nothing writes to the streams once the rank is dropped.
    unsafe {
        let input = match input {
            Input::Empty => libc::fopen(c"/dev/null".as_ptr(), c"r".as_ptr()),
            Input::None | Input::Inherited => stdin,
        };
        let output = fopencookie(rank.cast(), c"w".as_ptr(), Callbacks { write: Some(write_output), ..NONE });
        let errors = fopencookie(rank.cast(), c"w".as_ptr(), Callbacks { write: Some(write_errors), ..NONE });
        if input.is_null() || output.is_null() || errors.is_null() {
            return Err(io::Error::last_os_error());
        }
        // As libportals.so does in a process.
        libc::setvbuf(output, null_mut(), libc::_IOLBF, 0);
        libc::setvbuf(errors, null_mut(), libc::_IONBF, 0);
        Ok([input, output, errors])
    }
}

const NONE: Callbacks = Callbacks { read: None, write: None, seek: None, close: None };

/// Makes these streams the standard ones of the C library: its functions without a stream use its variables.
///
/// # Safety
/// The streams must be open.
pub unsafe fn select(streams: &[*mut File; 3]) {
    // SAFETY: only this thread uses the C library's streams.
    unsafe { (stdout, stderr) = (streams[1], streams[2]) };
}

/// Writes all buffered output of a rank.
pub fn flush(rank: &mut Rank) {
    let [_, output, errors] = rank.streams;
    for stream in [output, errors].into_iter().chain(rank.opened.iter().copied()) {
        // SAFETY: the rank's open streams.
        unsafe { libc::fflush(stream) };
    }
}

/// Discards the output that a rank has not written, and closes its streams except those of its output ([`close`]).
pub fn discard(rank: &mut Rank) {
    let [input, output, errors] = rank.streams;
    // SAFETY: open streams that the rank does not use any more.
    unsafe {
        for stream in [output, errors] {
            __fpurge(stream);
        }
        let input = Some(input).filter(|input| *input != stdin);
        for stream in input.into_iter().chain(std::mem::take(&mut rank.opened)) {
            __fpurge(stream);
            libc::fclose(stream);
        }
    }
}

/// Closes output streams. The C library searches its list of streams from the latest one, so those of many ranks must
/// be closed in the reverse order of their creation.
///
/// # Safety
/// The streams must be open, without buffered output, and used by nothing else.
pub unsafe fn close(streams: impl Iterator<Item = *mut File>) {
    for stream in streams {
        // SAFETY: the caller guarantees it.
        unsafe { libc::fclose(stream) };
    }
}

unsafe extern "C" fn write_output(rank: *mut c_void, bytes: *const c_char, length: usize) -> isize {
    // SAFETY: the C library passes the cookie of `standard`, and its buffer.
    unsafe { write(&mut *rank.cast(), 1, std::slice::from_raw_parts(bytes.cast(), length)) }
}

unsafe extern "C" fn write_errors(rank: *mut c_void, bytes: *const c_char, length: usize) -> isize {
    // SAFETY: as above.
    unsafe { write(&mut *rank.cast(), 2, std::slice::from_raw_parts(bytes.cast(), length)) }
}

/// Writes to the standard output (1) or error (2) of a rank. Returns the number of bytes, or 0 after an error. A rank
/// that writes to a closed pipe ends as a process does.
pub fn write(rank: &mut Rank, number: c_int, bytes: &[u8]) -> isize {
    if rank.forwards {
        rank.output[number as usize - 1].extend_from_slice(bytes);
        return bytes.len() as isize;
    }
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        // SAFETY: a valid buffer.
        match unsafe { libc::write(number, rest.as_ptr().cast(), rest.len()) } {
            -1 => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                // SAFETY: the rank runs.
                Some(libc::EPIPE) if !rank::current().is_null() => unsafe { rank::end(libc::SIGPIPE) },
                _ => return 0,
            },
            written => done += written as usize,
        }
    }
    done as isize
}

/// `struct random_data` of glibc.
#[repr(C)]
struct RandomData {
    pointers: [*mut i32; 3],
    numbers: [c_int; 3],
    end: *mut i32,
}

/// State of `rand` and `random`.
pub struct Random {
    /// `None` before the first use: the seed is then 1 (ISO C, §7.22.2.2).
    state: Option<Box<(RandomData, [u8; 128])>>,
}

impl Random {
    /// Creates the state before the first use.
    pub fn new() -> Random {
        Random { state: None }
    }

    /// Hashes the state.
    pub fn hash_state(&self, hasher: &mut impl Hasher) {
        if let Some(state) = &self.state {
            hasher.write(&state.1);
        }
    }

    fn state(&mut self) -> *mut RandomData {
        let state = self.state.get_or_insert_with(|| {
            let mut state: Box<(RandomData, [u8; 128])> = Box::new(rank::zeroed());
            // SAFETY: zeroed data and a buffer that stays with it.
            unsafe { initstate_r(1, state.1.as_mut_ptr().cast(), state.1.len(), &raw mut state.0) };
            state
        });
        &raw mut state.0
    }

    /// Sets the seed.
    pub fn seed(&mut self, seed: u32) {
        // SAFETY: initialised data.
        unsafe { srandom_r(seed, self.state()) };
    }

    /// Returns the next number.
    pub fn next(&mut self) -> i32 {
        let mut result = 0;
        // SAFETY: initialised data.
        unsafe { random_r(self.state(), &raw mut result) };
        result
    }
}

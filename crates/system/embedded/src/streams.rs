// SPDX-License-Identifier: Apache-2.0
//! Streams of the C library for ranks, and other library state that each rank has separately.

use crate::types::zeroed;
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

/// Streams of a rank.
pub struct Streams {
    /// Standard input, output and error.
    pub standard: [*mut File; 3],
    /// Other open streams.
    pub opened: Vec<*mut File>,
    /// Output that the simulator forwards: of standard output, and of standard error.
    pub output: [Vec<u8>; 2],
    forwards: bool,
    broken: fn(),
}

impl Streams {
    /// Creates the streams of a rank, none of which is open. `forwards` is true if the simulator forwards the output;
    /// `broken` is called when a rank writes to a closed pipe.
    pub fn new(forwards: bool, broken: fn()) -> Streams {
        Streams { standard: [null_mut(); 3], opened: Vec::new(), output: Default::default(), forwards, broken }
    }

    /// Opens the standard streams: line-buffered output, and unbuffered errors. The structure must not move afterwards.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(&mut self, input: Input) -> io::Result<()> {
        let cookie = (&raw mut *self).cast();
        // SAFETY: valid strings; nothing writes to the streams once the rank is dropped.
        unsafe {
            let input = match input {
                Input::Empty => libc::fopen(c"/dev/null".as_ptr(), c"r".as_ptr()),
                Input::None | Input::Inherited => stdin,
            };
            let output = fopencookie(cookie, c"w".as_ptr(), Callbacks { write: Some(write_output), ..NONE });
            let errors = fopencookie(cookie, c"w".as_ptr(), Callbacks { write: Some(write_errors), ..NONE });
            if input.is_null() || output.is_null() || errors.is_null() {
                return Err(io::Error::last_os_error());
            }
            // As libportals.so does in a process.
            libc::setvbuf(output, null_mut(), libc::_IOLBF, 0);
            libc::setvbuf(errors, null_mut(), libc::_IONBF, 0);
            self.standard = [input, output, errors];
        }
        Ok(())
    }

    /// Makes these streams the standard ones of the C library: its functions without a stream use its variables.
    ///
    /// # Safety
    /// The streams must be open.
    pub unsafe fn select(&self) {
        // SAFETY: only this thread uses the C library's streams.
        unsafe { (stdout, stderr) = (self.standard[1], self.standard[2]) };
    }

    /// Writes all buffered output.
    pub fn flush(&mut self) {
        let [_, output, errors] = self.standard;
        for stream in [output, errors].into_iter().chain(self.opened.iter().copied()) {
            // SAFETY: open streams.
            unsafe { libc::fflush(stream) };
        }
    }

    /// Discards the output that is still buffered, and closes all streams but those of the output ([`close`]).
    pub fn discard(&mut self) {
        let [input, output, errors] = self.standard;
        // SAFETY: open streams that the rank does not use any more.
        unsafe {
            for stream in [output, errors] {
                __fpurge(stream);
            }
            let input = Some(input).filter(|input| *input != stdin);
            for stream in input.into_iter().chain(std::mem::take(&mut self.opened)) {
                __fpurge(stream);
                libc::fclose(stream);
            }
        }
    }

    /// Writes to the standard output (1) or error (2). Returns the number of bytes, or 0 after an error.
    pub fn write(&mut self, number: c_int, bytes: &[u8]) -> isize {
        if self.forwards {
            self.output[number as usize - 1].extend_from_slice(bytes);
            return bytes.len() as isize;
        }
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            // SAFETY: a valid buffer.
            match unsafe { libc::write(number, rest.as_ptr().cast(), rest.len()) } {
                -1 => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EPIPE) => {
                        (self.broken)();
                        return 0;
                    }
                    _ => return 0,
                },
                written => done += written as usize,
            }
        }
        done as isize
    }
}

const NONE: Callbacks = Callbacks { read: None, write: None, seek: None, close: None };

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

unsafe extern "C" fn write_output(streams: *mut c_void, bytes: *const c_char, length: usize) -> isize {
    // SAFETY: the C library passes the cookie of `open`, and its buffer.
    unsafe { (*streams.cast::<Streams>()).write(1, std::slice::from_raw_parts(bytes.cast(), length)) }
}

unsafe extern "C" fn write_errors(streams: *mut c_void, bytes: *const c_char, length: usize) -> isize {
    // SAFETY: as above.
    unsafe { (*streams.cast::<Streams>()).write(2, std::slice::from_raw_parts(bytes.cast(), length)) }
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
            let mut state: Box<(RandomData, [u8; 128])> = Box::new(zeroed());
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

// SPDX-License-Identifier: Apache-2.0
//! Replacements for functions of the C library whose state is that of a process.

use crate::rank::{self, Rank};
use crate::streams::File;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

/// Returns the running rank.
fn current() -> &'static mut Rank {
    // SAFETY: the functions of this module are called by the program of a running rank, and hold no other reference.
    unsafe { &mut *rank::current() }
}

/// Returns a replacement by the name of the function.
pub fn function(name: &str) -> Option<*const c_void> {
    let list = [
        ("__libc_start_main", start_main as *const c_void),
        ("exit", exit as *const c_void),
        ("_exit", exit_now as *const c_void),
        ("_Exit", exit_now as *const c_void),
        ("abort", abort as *const c_void),
        ("__assert_fail", assert_fail as *const c_void),
        ("__stack_chk_fail", stack_check_fail as *const c_void),
        ("__cxa_atexit", at_exit as *const c_void),
        ("__cxa_finalize", finalize as *const c_void),
        ("malloc", malloc as *const c_void),
        ("calloc", calloc as *const c_void),
        ("realloc", realloc as *const c_void),
        ("free", free as *const c_void),
        ("aligned_alloc", aligned_alloc as *const c_void),
        ("memalign", aligned_alloc as *const c_void),
        ("posix_memalign", posix_memalign as *const c_void),
        ("strdup", strdup as *const c_void),
        ("strndup", strndup as *const c_void),
        ("getenv", getenv as *const c_void),
        ("secure_getenv", getenv as *const c_void),
        ("fopen", fopen as *const c_void),
        ("fopen64", fopen as *const c_void),
        ("fclose", fclose as *const c_void),
        ("fflush", fflush as *const c_void),
        ("rand", random as *const c_void),
        ("random", random_long as *const c_void),
        ("srand", seed as *const c_void),
        ("srandom", seed as *const c_void),
        ("strtok", strtok as *const c_void),
    ];
    list.into_iter().find(|(other, _)| *other == name).map(|(_, function)| function)
}

type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

extern "C" fn start_main(main: Main, count: c_int, arguments: *mut *mut c_char) -> c_int {
    let environment = current().environment.as_mut_ptr();
    for address in current().functions(false) {
        // SAFETY: an initialisation function of the program; its arguments are those of `main` (glibc).
        let function: Main = unsafe { std::mem::transmute(address) };
        function(count, arguments, environment);
    }
    exit(main(count, arguments, environment))
}

extern "C" fn exit(status: c_int) -> ! {
    portals::leave();
    while let Some((function, argument)) = current().at_exit.pop() {
        function(argument as *mut c_void);
    }
    for address in current().functions(true) {
        // SAFETY: a function of the program for its end.
        let function: extern "C" fn() = unsafe { std::mem::transmute(address) };
        function();
    }
    current().streams.flush();
    exit_now(status)
}

extern "C" fn exit_now(status: c_int) -> ! {
    // SAFETY: the rank runs.
    unsafe { rank::end((status & 0xff) << 8) }
}

extern "C" fn abort() -> ! {
    // SAFETY: as above.
    unsafe { rank::end(libc::SIGABRT) }
}

/// # Safety
/// The arguments must be strings, except that `function` may be NULL.
unsafe extern "C" fn assert_fail(
    assertion: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) -> ! {
    // SAFETY: the caller guarantees it.
    let text = |string: *const c_char| unsafe { CStr::from_ptr(string) }.to_string_lossy();
    let function = if function.is_null() { String::new() } else { format!("{}: ", text(function)) };
    let program = current().program.path.file_name().unwrap_or_default().display().to_string();
    let message = format!("{program}: {}:{line}: {function}Assertion `{}' failed.\n", text(file), text(assertion));
    current().streams.write(2, message.as_bytes());
    abort()
}

extern "C" fn stack_check_fail() -> ! {
    current().streams.write(2, b"*** stack smashing detected ***: terminated\n");
    abort()
}

extern "C" fn at_exit(function: extern "C" fn(*mut c_void), argument: *mut c_void, _: *mut c_void) -> c_int {
    current().at_exit.push((function, argument as usize));
    0
}

extern "C" fn finalize(_: *mut c_void) {}

/// Sets `errno` if an allocation failed.
fn checked(memory: *mut u8) -> *mut c_void {
    if memory.is_null() {
        set_errno(libc::ENOMEM);
    }
    memory.cast()
}

fn set_errno(number: c_int) {
    // SAFETY: the pointer to this thread's errno is valid.
    unsafe { *libc::__errno_location() = number };
}

extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size is valid.
    checked(unsafe { current().heap.c_malloc(size) })
}

extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return checked(null_mut()) };
    // SAFETY: any size is valid, and the alignment is that of `malloc`.
    checked(unsafe { current().heap.calloc(size, 16) })
}

/// Returns true if a pointer is one of the rank's heap; others are of the C library.
fn is_own(memory: *const c_void) -> bool {
    current().area.contains(&(memory as u64))
}

/// Ends the rank, with the message of glibc, if a pointer is not one of an allocated block.
///
/// # Safety
/// The pointer must be within the rank's heap.
unsafe fn check(memory: *const u8, function: &str) {
    /// Alignment of blocks, and the flag of an allocated block in the word before it (dlmalloc's CINUSE).
    const ALIGNMENT: usize = 16;
    const IN_USE: usize = 2;
    let is_aligned = (memory as usize).is_multiple_of(ALIGNMENT);
    // SAFETY: the word before a block is the allocator's.
    if !is_aligned || unsafe { memory.sub(8).cast::<usize>().read() } & IN_USE == 0 {
        let message =
            format!("{function}(): {}\n", if is_aligned { "double free or corruption" } else { "invalid pointer" });
        current().streams.write(2, message.as_bytes());
        abort();
    }
}

/// # Safety
/// That of the C function.
unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    if !memory.is_null() && !is_own(memory) {
        // SAFETY: memory of the C library.
        return unsafe { libc::realloc(memory, size) };
    }
    if size == 0 && !memory.is_null() {
        // SAFETY: as glibc does.
        unsafe { free(memory) };
        return null_mut();
    }
    // SAFETY: the caller guarantees it.
    unsafe {
        if !memory.is_null() {
            check(memory.cast(), "realloc");
        }
        checked(current().heap.c_realloc(memory.cast(), size))
    }
}

/// # Safety
/// That of the C function.
unsafe extern "C" fn free(memory: *mut c_void) {
    // SAFETY: the caller guarantees it.
    unsafe {
        if memory.is_null() {
            return;
        }
        if !is_own(memory) {
            return libc::free(memory);
        }
        check(memory.cast(), "free");
        current().heap.c_free(memory.cast());
    }
}

extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    // SAFETY: the alignment is a power of two.
    checked(unsafe { current().heap.c_memalign(alignment, size) })
}

/// # Safety
/// `place` must be valid for writing.
unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: as above.
    let memory = unsafe { current().heap.c_memalign(alignment, size) };
    if memory.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller guarantees it.
    unsafe { place.write(memory.cast()) };
    0
}

/// # Safety
/// `text` must be a string.
unsafe extern "C" fn strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    unsafe { strndup(text, usize::MAX) }
}

/// # Safety
/// `text` must be valid up to its end or for `most` bytes.
unsafe extern "C" fn strndup(text: *const c_char, most: usize) -> *mut c_char {
    // SAFETY: the caller guarantees it; the copy has room for the string and its end.
    unsafe {
        let length = libc::strnlen(text, most);
        let copy = malloc(length + 1).cast::<c_char>();
        if !copy.is_null() {
            copy.copy_from_nonoverlapping(text, length);
            copy.add(length).write(0);
        }
        copy
    }
}

/// # Safety
/// `name` must be a string.
unsafe extern "C" fn getenv(name: *const c_char) -> *mut c_char {
    // SAFETY: the caller guarantees it; the environment consists of strings.
    unsafe {
        let name = CStr::from_ptr(name).to_bytes();
        let value = |text: &*mut c_char| {
            let rest = CStr::from_ptr(*text).to_bytes().strip_prefix(name)?;
            rest.starts_with(b"=").then(|| text.add(name.len() + 1))
        };
        let variables = current().environment.iter().take_while(|text| !text.is_null());
        variables.into_iter().find_map(value).unwrap_or(null_mut())
    }
}

/// # Safety
/// Both must be strings.
unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut File {
    // SAFETY: the caller guarantees it.
    let stream = unsafe { libc::fopen(path, mode) };
    if !stream.is_null() {
        current().streams.opened.push(stream);
    }
    stream
}

/// # Safety
/// The stream must be open.
unsafe extern "C" fn fclose(stream: *mut File) -> c_int {
    let rank = current();
    rank.streams.opened.retain(|other| *other != stream);
    if rank.streams.standard.contains(&stream) {
        // The rank's end closes it.
        // SAFETY: an open stream.
        return unsafe { libc::fflush(stream) };
    }
    // SAFETY: the caller guarantees it.
    unsafe { libc::fclose(stream) }
}

/// # Safety
/// The stream must be open, or NULL.
unsafe extern "C" fn fflush(stream: *mut File) -> c_int {
    if stream.is_null() {
        current().streams.flush();
        return 0;
    }
    // SAFETY: the caller guarantees it.
    unsafe { libc::fflush(stream) }
}

extern "C" fn random() -> c_int {
    current().random.next()
}

extern "C" fn random_long() -> i64 {
    current().random.next().into()
}

extern "C" fn seed(seed: c_uint) {
    current().random.seed(seed);
}

/// # Safety
/// That of the C function.
unsafe extern "C" fn strtok(text: *mut c_char, delimiters: *const c_char) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    unsafe { libc::strtok_r(text, delimiters, &raw mut current().token) }
}

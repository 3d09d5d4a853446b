// SPDX-License-Identifier: Apache-2.0
//! Restores the real time-stamp counter for programs that a rank starts. They need it from their first instruction on:
//! the dynamic linker reads the counter before any handler can be installed, and the setting survives `exec`.

use std::ffi::CStr;
use std::mem::transmute;

use libc::{FILE, c_char, c_int, c_void, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

use crate::tsc;

/// Calls a function of the C library while this thread, and so any process that it starts, reads the real counter.
fn with_real_counter<R>(name: &CStr, call: impl FnOnce(*mut c_void) -> R) -> R {
    // SAFETY: the argument is a valid string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!function.is_null(), "the C library has no {name:?}");
    let is_simulated = tsc::is_simulated();
    if is_simulated {
        tsc::restore();
    }
    let result = call(function);
    if is_simulated {
        tsc::simulate();
    }
    result
}

macro_rules! starters {
    ($($name:ident($($argument:ident: $type:ty),+) -> $result:ty;)+) => { $(
        /// Replaces the C library's function.
        ///
        /// # Safety
        /// As for the C library's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> $result {
            let name = const {
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                }
            };
            with_real_counter(name, |function| {
                // SAFETY: the function has this type; the caller guarantees the rest.
                unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),+) -> $result>(function)($($argument),+) }
            })
        }
    )+ };
}

starters! {
    system(command: *const c_char) -> c_int;
    popen(command: *const c_char, mode: *const c_char) -> *mut FILE;
    posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const posix_spawn_file_actions_t,
                attributes: *const posix_spawnattr_t, arguments: *const *mut c_char, environment: *const *mut c_char) -> c_int;
    posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const posix_spawn_file_actions_t,
                 attributes: *const posix_spawnattr_t, arguments: *const *mut c_char, environment: *const *mut c_char) -> c_int;
    execve(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    execv(path: *const c_char, arguments: *const *const c_char) -> c_int;
    execvp(file: *const c_char, arguments: *const *const c_char) -> c_int;
    execvpe(file: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
}

/// Replaces the C library's function by a real fork, as POSIX allows. The child runs concurrently and reads the real
/// counter.
#[unsafe(no_mangle)]
pub extern "C" fn vfork() -> pid_t {
    // SAFETY: a child of `fork` may do everything that a child of `vfork` may.
    unsafe { libc::fork() }
}

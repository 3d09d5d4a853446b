//! Programs that a rank starts must have the real time-stamp counter from their first instruction on: the dynamic linker
//! reads it before any handler can be there. The setting outlives `exec`, so the real counter is restored before.

use std::ffi::CStr;
use std::mem::transmute;

use libc::{FILE, c_char, c_int, c_void, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

use crate::tsc;

/// Calls one of the C library's functions while this thread, and so what it starts, reads the real counter.
fn with_real_counter<R>(name: &CStr, call: impl FnOnce(*mut c_void) -> R) -> R {
    // SAFETY: a valid string.
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
        /// The C function.
        ///
        /// # Safety
        /// As the C function asks.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> $result {
            let name = const {
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                }
            };
            with_real_counter(name, |function| {
                // SAFETY: the function of this type; the caller promises the rest.
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

/// The C function: a real fork, whose child runs on its own and reads the real counter. POSIX lets it be one.
#[unsafe(no_mangle)]
pub extern "C" fn vfork() -> pid_t {
    // SAFETY: what the child of `vfork` may do, that of `fork` may, too.
    unsafe { libc::fork() }
}

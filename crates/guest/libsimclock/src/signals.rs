// SPDX-License-Identifier: Apache-2.0
//! Handler of SIGSEGV for the simulated time-stamp counter ([`tsc`](crate::tsc)). The library records the program's
//! action for the signal, and performs it for every fault of the program itself.
//!
//! SIGSEGV is never blocked, as a blocked one would end the process at its next read of the counter.

use std::ffi::CStr;
use std::mem::{MaybeUninit, transmute};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{SIG_DFL, SIG_IGN, SIGSEGV, c_int, c_void, sighandler_t, siginfo_t, sigset_t, ucontext_t};

use crate::tsc;

/// Latest action of the program; null while this library does not handle the signal. Earlier ones are not freed, as a
/// handler may be reading them.
static PROGRAM: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Signal = unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t;
type Sigmask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;

/// Functions of the C library that this module interposes.
struct Library {
    sigaction: Sigaction,
    signal: Signal,
    sigprocmask: Sigmask,
    pthread_sigmask: Sigmask,
}

impl Library {
    fn get() -> &'static Library {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        let find = |name: &CStr| {
            // SAFETY: the argument is a valid string.
            let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            assert!(!function.is_null(), "the C library has no {name:?}");
            function
        };
        // SAFETY: these functions have these types in every C library.
        LIBRARY.get_or_init(|| unsafe {
            Library {
                sigaction: transmute::<*mut c_void, Sigaction>(find(c"sigaction")),
                signal: transmute::<*mut c_void, Signal>(find(c"signal")),
                sigprocmask: transmute::<*mut c_void, Sigmask>(find(c"sigprocmask")),
                pthread_sigmask: transmute::<*mut c_void, Sigmask>(find(c"pthread_sigmask")),
            }
        })
    }
}

fn is_ours() -> bool {
    !PROGRAM.load(Ordering::Acquire).is_null()
}

/// Takes over SIGSEGV from the program, once.
pub fn take_over() {
    if is_ours() {
        return;
    }
    // SAFETY: reads into a local of the right type.
    let before = unsafe {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        (Library::get().sigaction)(SIGSEGV, null(), before.as_mut_ptr());
        before.assume_init()
    };
    remember(before);
    // SAFETY: a local set, for which zero bytes are a valid value.
    unsafe {
        let mut unblocked = MaybeUninit::<sigset_t>::zeroed().assume_init();
        libc::sigemptyset(&raw mut unblocked);
        libc::sigaddset(&raw mut unblocked, SIGSEGV);
        (Library::get().pthread_sigmask)(libc::SIG_UNBLOCK, &raw const unblocked, null_mut());
    }
}

/// Records the program's action, and installs this library's handler with the program's mask and stack.
fn remember(wanted: libc::sigaction) {
    let mut ours = wanted;
    ours.sa_sigaction = on_fault as *const () as sighandler_t;
    ours.sa_flags = wanted.sa_flags & !libc::SA_RESETHAND | libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: a valid signal set of the caller, and valid actions.
    unsafe {
        libc::sigdelset(&raw mut ours.sa_mask, SIGSEGV);
        PROGRAM.store(Box::into_raw(Box::new(wanted)), Ordering::Release);
        (Library::get().sigaction)(SIGSEGV, &raw const ours, null_mut());
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: this thread's errno, and the arguments from the kernel.
    unsafe {
        let errno = *libc::__errno_location();
        if !tsc::emulate(info, context.cast::<ucontext_t>()) {
            hand_on(signal, info, context);
        }
        *libc::__errno_location() = errno;
    }
}

/// Performs the program's action for a fault of the program.
///
/// # Safety
/// The arguments must be those of a signal handler.
unsafe fn hand_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let wanted = PROGRAM.load(Ordering::Acquire);
    // SAFETY: never freed, and not null once this library's handler is installed.
    let wanted = unsafe { wanted.read() };
    let once = wanted.sa_flags & libc::SA_RESETHAND != 0;
    if matches!(wanted.sa_sigaction, SIG_DFL | SIG_IGN) {
        // The fault repeats when this handler returns, and then ends the process with the default action.
        let default = libc::sigaction { sa_sigaction: SIG_DFL, ..wanted };
        // SAFETY: a valid action.
        unsafe {
            (Library::get().sigaction)(signal, &raw const default, null_mut());
            // A signal sent by a process does not repeat by itself.
            if (*info).si_code <= 0 {
                libc::raise(signal);
            }
        }
        return;
    }
    if once {
        remember(libc::sigaction { sa_sigaction: SIG_DFL, ..wanted });
    }
    // SAFETY: the flag determines the type of the program's handler.
    unsafe {
        if wanted.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = transmute(wanted.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = transmute(wanted.sa_sigaction);
            handler(signal);
        }
    }
}

/// Replaces the C library's function.
///
/// # Safety
/// `new` must be valid or NULL, and `old` valid for writing or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: the caller guarantees valid pointers; recorded actions are never freed.
    unsafe {
        if signal == SIGSEGV && is_ours() {
            let before = PROGRAM.load(Ordering::Acquire).read();
            if !new.is_null() {
                remember(new.read());
            }
            if !old.is_null() {
                old.write(before);
            }
            return 0;
        }
        if new.is_null() || !is_ours() {
            return (Library::get().sigaction)(signal, new, old);
        }
        let mut unblocking = new.read();
        libc::sigdelset(&raw mut unblocking.sa_mask, SIGSEGV);
        (Library::get().sigaction)(signal, &raw const unblocking, old)
    }
}

/// Replaces the C library's function.
///
/// # Safety
/// `handler` must be a signal handler, or one of the C library's constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the caller guarantees it; the pointers to locals are valid.
    unsafe {
        if signal != SIGSEGV || !is_ours() {
            return (Library::get().signal)(signal, handler);
        }
        let mut new = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        (new.sa_sigaction, new.sa_flags) = (handler, libc::SA_RESTART);
        let mut old = MaybeUninit::<libc::sigaction>::zeroed();
        sigaction(signal, &raw const new, old.as_mut_ptr());
        old.assume_init().sa_sigaction
    }
}

/// Replaces the C library's function; SIGSEGV stays unblocked.
///
/// # Safety
/// `new` must be valid or NULL, and `old` valid for writing or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { without_faults(Library::get().sigprocmask, how, new, old) }
}

/// Replaces the C library's function; SIGSEGV stays unblocked.
///
/// # Safety
/// `new` must be valid or NULL, and `old` valid for writing or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { without_faults(Library::get().pthread_sigmask, how, new, old) }
}

/// Changes the signal mask, but leaves SIGSEGV unblocked.
///
/// # Safety
/// The pointers must be valid, as for this function's callers.
unsafe fn without_faults(change: Sigmask, how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe {
        if new.is_null() || how == libc::SIG_UNBLOCK || !is_ours() {
            return change(how, new, old);
        }
        let mut fewer = new.read();
        libc::sigdelset(&raw mut fewer, SIGSEGV);
        change(how, &raw const fewer, old)
    }
}

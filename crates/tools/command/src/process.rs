// SPDX-License-Identifier: Apache-2.0
//! Process of a command: its stack, its end by a panic, and signals of writes.

use std::panic;
use std::process::{self, ExitCode};
use std::thread;

/// Stack of a command in bytes: the usual limit of the system.
const STACK: usize = 8 << 20;

/// Runs a command as this process. Its stack does not depend on the user's limit (`ulimit -s`).
pub fn run(command: impl FnOnce() -> ExitCode + Send + 'static) -> ExitCode {
    end_at_panic();
    report_full_files();
    if stack_limit() >= STACK as libc::rlim_t {
        return command();
    }
    match thread::Builder::new().stack_size(STACK).spawn(command) {
        Ok(thread) => thread.join().unwrap_or_else(|_| process::abort()),
        Err(error) => {
            eprintln!("error: no memory for a stack of {STACK} bytes: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes a panic of any thread end the process with its message, so that no other thread waits for the panicked one.
/// The profile cannot do it (`panic = "abort"`), because Cargo would compile every library once more for the tests.
fn end_at_panic() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        tell(panic);
        process::abort()
    }));
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail with an error instead of SIGXFSZ. It installs a handler,
/// because programs executed by this process would inherit an ignored signal.
fn report_full_files() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing, and an all-zero action is valid: no flags, an empty mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// Returns the stack limit of the first thread in bytes.
fn stack_limit() -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a place for the result.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    limit.rlim_cur
}

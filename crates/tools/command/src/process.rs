// SPDX-License-Identifier: Apache-2.0
//! The process of a command: its stack, the end by a panic, and the signals of writing.

use std::panic;
use std::process::{self, ExitCode};
use std::thread;

/// Stack of a command in bytes, the usual limit of the system.
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

/// Makes a panic of any thread end the process with its message, so that no other thread waits for that one. The profile
/// cannot do it (`panic = "abort"`), because Cargo would compile every library once more for the tests.
fn end_at_panic() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        tell(panic);
        process::abort()
    }));
}

/// Makes writes beyond the limit of a file's size (`ulimit -f`) fail with an error instead of ending the process by SIGXFSZ. A handler
/// does it, because programs that this process executes would inherit an ignored signal.
fn report_full_files() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing, and an action of zero bytes is one: no flags, an empty mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// Returns the limit of the first thread's stack in bytes.
fn stack_limit() -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a place for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    limit.rlim_cur
}

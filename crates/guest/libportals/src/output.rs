// SPDX-License-Identifier: Apache-2.0
//! Preserves the buffered output of a rank's C streams when the run fails.
//!
//! The C library writes standard output to a file or pipe in blocks of some kilobytes, so a crash or a time limit would
//! lose the last lines. In a rank it is line-buffered, as on a terminal, unless the program sets another mode
//! (setvbuf). A rank that waits in the library when the run ends also writes its unfinished line.

use crate::library_state::Embedded;
use abi::mailbox::env;

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// Load-time constructor.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = write_lines;

extern "C" fn write_lines() {
    if std::env::var_os(env::RANK).is_some() {
        // SAFETY: the C library's own stream, which allocates its buffer itself.
        unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
    }
}

/// Flushes all streams of the C library and ends the process, at the end of the run.
pub fn end_process() -> ! {
    if let Some(rank) = Embedded::selected() {
        (rank.services.end)(0);
    }
    // SAFETY: flushes all streams; exit handlers are skipped, as they would wait for the simulator.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(0)
    }
}

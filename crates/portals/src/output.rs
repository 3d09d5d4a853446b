//! What C's streams of a rank have buffered is not lost when its run ends badly.
//!
//! Standard output that goes to a file or a pipe would be written in blocks of some kilobytes, so that a crash or a
//! time limit lost the last lines before it. In a rank it is written line by line, as on a terminal, unless the program asks
//! for something else (setvbuf). A rank that waits in the library when the run ends also writes its unfinished line.

use abi::mailbox::env;

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = write_lines;

extern "C" fn write_lines() {
    if std::env::var_os(env::RANK).is_some() {
        // SAFETY: the C library's own stream, which keeps its buffer.
        unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
    }
}

/// Writes out what C's streams have buffered and ends the process, as the run is over.
pub fn end_process() -> ! {
    // SAFETY: flushes all streams; the exit handlers do not run, as they would wait for the simulator.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(0)
    }
}

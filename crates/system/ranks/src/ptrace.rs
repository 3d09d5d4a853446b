// SPDX-License-Identifier: Apache-2.0
//! The ptrace(2) requests needed for single-stepping. rustix has none of them, and nix cannot pass on real-time
//! signals, which the C library uses between threads.

use libc::user_regs_struct as Registers;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Request for a thread. A signal argument is delivered to the thread; 0 is none.
#[derive(Clone, Copy)]
pub enum Request {
    /// Attaches the simulator as tracer without stopping the thread. The thread is killed when the simulator ends.
    Seize,
    /// Stops the thread.
    Interrupt,
    /// Resumes the thread.
    Continue(i32),
    /// Executes one instruction.
    Step(i32),
    /// Resumes the thread without a tracer.
    Detach(i32),
}

/// Makes a request for a thread.
///
/// # Errors
/// The system's error, for example if the thread has ended or is not stopped.
pub fn request(tid: i32, request: Request) -> io::Result<()> {
    let (request, data) = match request {
        Request::Seize => (libc::PTRACE_SEIZE, libc::PTRACE_O_EXITKILL),
        Request::Interrupt => (libc::PTRACE_INTERRUPT, 0),
        Request::Continue(signal) => (libc::PTRACE_CONT, signal),
        Request::Step(signal) => (libc::PTRACE_SINGLESTEP, signal),
        Request::Detach(signal) => (libc::PTRACE_DETACH, signal),
    };
    let data = data as usize as *mut libc::c_void;
    // SAFETY: none of these requests touches memory of this process.
    match unsafe { libc::ptrace(request, tid, null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns the registers of a stopped thread.
///
/// # Errors
/// The system's error, for example if the thread has ended or is not stopped.
pub fn registers(tid: i32) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<Registers>::uninit();
    // SAFETY: the kernel writes a value of this type unless it reports an error.
    unsafe {
        match libc::ptrace(libc::PTRACE_GETREGS, tid, null_mut::<libc::c_void>(), registers.as_mut_ptr()) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(registers.assume_init()),
        }
    }
}

/// Returns the vector and floating-point registers of a stopped thread.
///
/// # Errors
/// The system's error, for example if the thread has ended or is not stopped.
pub fn vectors(tid: i32) -> io::Result<Vec<u8>> {
    /// Register set written by XSAVE.
    const NT_X86_XSTATE: usize = 0x202;
    let mut bytes = vec![0; 1 << 14];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let set = NT_X86_XSTATE as *mut libc::c_void;
    // SAFETY: the kernel writes at most the length of the buffer, and updates it.
    if unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, set, &raw mut piece) } == -1 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(piece.iov_len);
    Ok(bytes)
}

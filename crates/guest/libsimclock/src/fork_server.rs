// SPDX-License-Identifier: Apache-2.0
//! The fork server ([`abi::fork`]): a process with loaded and initialised libraries, which forks for each rank at
//! spinrun's request. So the loader does its work once, not in every rank.
//!
//! A rank is a child of spinrun, not of the server, so that spinrun waits for it as for a rank that it starts directly.
//! It differs from a directly executed process in one respect: the libraries' constructors run once for all ranks, so
//! the C library's stack canary is the same in all ranks. spinrun decides for which programs this does not matter.

use abi::fork::{ANCILLARY, Answer, DESCRIPTORS, Request, SERVER, STREAMS, VARIABLES};
use abi::mailbox::env;
use libc::{c_char, c_int, c_long, c_void};
use std::ffi::CStr;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;

/// Exit status of a server or rank that cannot continue.
const LOST: c_int = 1;
/// `PR_GET_TID_ADDRESS` of the kernel's headers.
const PR_GET_TID_ADDRESS: c_int = 40;
const _: () = {
    // SAFETY: pure arithmetic.
    let needed = unsafe { libc::CMSG_SPACE((DESCRIPTORS * size_of::<c_int>()) as u32) };
    assert!(needed as usize <= ANCILLARY * size_of::<u64>());
};

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Start = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

/// Replaces the C library's function that every program calls first. At that point all libraries are initialised, and
/// no code of the program itself has run.
///
/// # Safety
/// Only the start code of a program may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    of_loader: Hook,
    stack_end: *mut c_void,
) -> c_int {
    if variable(env::RANK) == Some(SERVER.as_bytes()) {
        serve();
    }
    // SAFETY: the C library has a function of this name and type; the arguments are the caller's.
    unsafe {
        let start = libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr());
        assert!(!start.is_null(), "the C library cannot start programs");
        transmute::<*mut c_void, Start>(start)(main, argc, argv, init, fini, of_loader, stack_end)
    }
}

/// Makes ranks until spinrun closes the connection. Returns in each rank, and never in the server.
fn serve() {
    let (Some(channel), Some(simulator)) = (number(env::SIM_FD), number(env::SIM_PID)) else { end(LOST) };
    let thread = match Thread::current() {
        Ok(thread) => thread,
        Err(error) => {
            answer(channel, error);
            end(LOST)
        }
    };
    answer(channel, 0);
    loop {
        let Some((request, descriptors)) = receive(channel) else { end(0) };
        let descriptors = descriptors.list();
        let (result, error) = (if descriptors.len() < STREAMS { -1 } else { thread.copy() }, errno());
        if result == 0 {
            thread.begin();
            become_rank(request.rank, simulator, channel, descriptors);
            return;
        }
        close(descriptors);
        answer(
            channel,
            match result {
                -1 if descriptors.len() < STREAMS => -libc::EMFILE,
                -1 => -error,
                process => process as c_int,
            },
        );
    }
}

/// Performs the set-up in a new copy that spinrun performs in a new process before it executes a program.
fn become_rank(rank: u32, simulator: c_int, channel: c_int, descriptors: &[c_int]) {
    // SAFETY: system calls that change only this process, with its own descriptors.
    unsafe {
        let is_ready = libc::setpgid(0, 0) == 0
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            && libc::getppid() == simulator // or the simulator ended before it was watched
            && (0..).zip(&descriptors[..STREAMS]).all(|(number, &stream)| libc::dup2(stream, number) != -1)
            && match descriptors.get(STREAMS) {
                Some(&pmi) => libc::dup2(pmi, channel) != -1,
                None => libc::close(channel) == 0,
            };
        if !is_ready {
            end(LOST);
        }
    }
    close(descriptors);
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = rank;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let digits = &digits[at..];
    for name in VARIABLES {
        if variable(name) == Some(SERVER.as_bytes()) {
            let place = place(name).cast::<u8>();
            // SAFETY: the value is that long. A process may write its own environment, and no other thread runs.
            (0..SERVER.len()).for_each(|k| unsafe { place.add(k).write(digits.get(k).copied().unwrap_or(0)) });
        }
    }
}

/// Kernel state of the only thread of this process, which a clone does not copy.
struct Thread {
    /// Address at which the C library keeps the thread's id.
    id: *mut c_int,
    /// List of robust mutexes, and the length of its head.
    robust: (*mut c_void, usize),
}

impl Thread {
    /// Reads the state of this thread. Returns an error number if the thread cannot be copied.
    fn current() -> Result<Thread, c_int> {
        unsafe extern "C" {
            static __libc_single_threaded: c_char;
        }
        let mut thread = Thread { id: null_mut(), robust: (null_mut(), 0) };
        // SAFETY: the calls write to these locals.
        unsafe {
            if (&raw const __libc_single_threaded).read_volatile() == 0 {
                return Err(libc::EBUSY);
            }
            let (head, length) = (&raw mut thread.robust.0, &raw mut thread.robust.1);
            if libc::prctl(PR_GET_TID_ADDRESS, &raw mut thread.id) == -1
                || libc::syscall(libc::SYS_get_robust_list, 0, head, length) == -1
            {
                return Err(errno());
            }
            // Holds in every thread of the C library; otherwise a copy would not have its own id.
            if thread.id.is_null() || thread.id.read() != libc::gettid() {
                return Err(libc::ENOSYS);
            }
        }
        Ok(thread)
    }

    /// Copies the process, as a child of its parent. Returns 0 in the copy, its id in the server, and -1 on failure.
    fn copy(&self) -> c_long {
        let flags = libc::CLONE_PARENT | libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
        let nothing = null_mut::<c_void>();
        // SAFETY: a fork of a single-threaded process; the kernel writes the new id to the C library's address. It
        // skips the handlers of pthread_atfork, which would mark the copy as a process that is no rank.
        unsafe { libc::syscall(libc::SYS_clone, flags as c_long, nothing, nothing, self.id, nothing) }
    }

    /// Restores the kernel state in a copy.
    fn begin(&self) {
        // SAFETY: the head of the list has the same address in the copy.
        unsafe { libc::syscall(libc::SYS_set_robust_list, self.robust.0, self.robust.1) };
    }
}

/// Descriptors received with a request.
struct Descriptors {
    numbers: [c_int; DESCRIPTORS],
    count: usize,
}

impl Descriptors {
    fn list(&self) -> &[c_int] {
        &self.numbers[..self.count]
    }
}

/// Waits for a request; `None` if the connection is closed.
fn receive(channel: c_int) -> Option<(Request, Descriptors)> {
    let mut request = Request { rank: 0 };
    let mut ancillary = [0_u64; ANCILLARY];
    let mut descriptors = Descriptors { numbers: [-1; DESCRIPTORS], count: 0 };
    let bytes = bytemuck::bytes_of_mut(&mut request);
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a zeroed header is valid; its pointers refer to locals that outlive it.
    unsafe {
        let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = ancillary.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&ancillary);
        let length = loop {
            match libc::recvmsg(channel, &raw mut message, libc::MSG_CMSG_CLOEXEC) {
                -1 if errno() == libc::EINTR => {}
                length => break length,
            }
        };
        if usize::try_from(length) != Ok(size_of::<Request>()) {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let length = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
            descriptors.count = (length / size_of::<c_int>()).min(DESCRIPTORS);
            let first = libc::CMSG_DATA(header).cast::<c_int>();
            (0..descriptors.count).for_each(|k| descriptors.numbers[k] = first.add(k).read_unaligned());
        }
        if message.msg_flags & libc::MSG_CTRUNC != 0 {
            close(descriptors.list()); // some descriptors could not be received, so the request is void
            descriptors.count = 0;
        }
    }
    Some((request, descriptors))
}

fn answer(channel: c_int, answer: Answer) {
    // SAFETY: the bytes of a number. If spinrun has ended, the server detects it in its next wait.
    unsafe { libc::send(channel, (&raw const answer).cast(), size_of::<Answer>(), libc::MSG_NOSIGNAL) };
}

fn close(descriptors: &[c_int]) {
    for &descriptor in descriptors {
        // SAFETY: a descriptor received with a request.
        unsafe { libc::close(descriptor) };
    }
}

/// Returns the address of an environment variable's value.
fn place(name: &str) -> *mut c_char {
    let mut buffer = [0; 32];
    buffer[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: a NUL-terminated name.
    unsafe { libc::getenv(buffer.as_ptr().cast()) }
}

/// Returns the value of an environment variable.
fn variable<'a>(name: &str) -> Option<&'a [u8]> {
    let value = place(name);
    // SAFETY: a string that is not changed while it is in use here.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value).to_bytes() })
}

fn number(name: &str) -> Option<c_int> {
    std::str::from_utf8(variable(name)?).ok()?.parse().ok()
}

fn errno() -> c_int {
    // SAFETY: the pointer to this thread's errno is valid.
    unsafe { *libc::__errno_location() }
}

fn end(status: c_int) -> ! {
    // SAFETY: ends the process. No exit handlers run, as the program has not started.
    unsafe { libc::_exit(status) }
}

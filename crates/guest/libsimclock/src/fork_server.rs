//! The fork server ([`abi::fork`]): a process whose libraries are loaded and initialised, and which copies itself for each rank that
//! spinrun asks for. So the loader does once what it would do in every rank.
//!
//! A rank is a child of spinrun, not of the server, so that spinrun waits for it as for one that it has started itself. It differs
//! from a process that has executed the program in one respect only: what the libraries' constructors have done was done once, and so the
//! C library's canary is the same in all ranks. spinrun decides for which programs that is the same.

use abi::fork::{ANCILLARY, Answer, DESCRIPTORS, Request, SERVER, STREAMS, VARIABLES};
use abi::mailbox::env;
use libc::{c_char, c_int, c_long, c_void};
use std::ffi::CStr;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;

/// The exit status of a server or rank that cannot go on.
const LOST: c_int = 1;
/// What the kernel's headers call `PR_GET_TID_ADDRESS`.
const PR_GET_TID_ADDRESS: c_int = 40;
const _: () = {
    // SAFETY: arithmetic.
    let needed = unsafe { libc::CMSG_SPACE((DESCRIPTORS * size_of::<c_int>()) as u32) };
    assert!(needed as usize <= ANCILLARY * size_of::<u64>());
};

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Start = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

/// The function of the C library that every program calls first. All libraries are initialised when it is called, and
/// nothing of the program itself is.
///
/// # Safety
/// Only the first instructions of a program may call it.
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

/// Makes ranks until spinrun needs no more of them. Returns in each of them, and never in the server.
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

/// Does in a new copy what spinrun does in a new process that executes a program.
fn become_rank(rank: u32, simulator: c_int, channel: c_int, descriptors: &[c_int]) {
    // SAFETY: system calls that change this process alone, with descriptors that are its own.
    unsafe {
        let is_ready = libc::setpgid(0, 0) == 0
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
            && libc::getppid() == simulator // or it has ended before it was watched
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
            // SAFETY: the value is that long. The variables of a process are its own to write, and nobody else runs.
            (0..SERVER.len()).for_each(|k| unsafe { place.add(k).write(digits.get(k).copied().unwrap_or(0)) });
        }
    }
}

/// What the kernel knows about the only thread of this process, and does not copy with it.
struct Thread {
    /// Where the C library keeps the thread's id.
    id: *mut c_int,
    /// The list of robust mutexes, and the length of its head.
    robust: (*mut c_void, usize),
}

impl Thread {
    /// Returns the number of an error if it cannot be copied.
    fn current() -> Result<Thread, c_int> {
        unsafe extern "C" {
            static __libc_single_threaded: c_char;
        }
        let mut thread = Thread { id: null_mut(), robust: (null_mut(), 0) };
        // SAFETY: the calls write to these places.
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
            // So it is in every thread of the C library; elsewhere a copy would not know its own id.
            if thread.id.is_null() || thread.id.read() != libc::gettid() {
                return Err(libc::ENOSYS);
            }
        }
        Ok(thread)
    }

    /// Copies the process, as a child of its parent. Returns 0 in the copy, its id in the server, and -1 if there is no copy.
    fn copy(&self) -> c_long {
        let flags = libc::CLONE_PARENT | libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
        let nothing = null_mut::<c_void>();
        // SAFETY: a fork of a process with one thread, in which the kernel writes the new id to where the C library looks for it. No
        // handler of pthread_atfork runs, which would tell a library that this is no rank.
        unsafe { libc::syscall(libc::SYS_clone, flags as c_long, nothing, nothing, self.id, nothing) }
    }

    /// Tells the kernel in a copy what it has not copied.
    fn begin(&self) {
        // SAFETY: the head of the list is where it was.
        unsafe { libc::syscall(libc::SYS_set_robust_list, self.robust.0, self.robust.1) };
    }
}

/// Descriptors that have come with a request.
struct Descriptors {
    numbers: [c_int; DESCRIPTORS],
    count: usize,
}

impl Descriptors {
    fn list(&self) -> &[c_int] {
        &self.numbers[..self.count]
    }
}

/// Waits for a request; `None` when the connection has ended.
fn receive(channel: c_int) -> Option<(Request, Descriptors)> {
    let mut request = Request { rank: 0 };
    let mut ancillary = [0_u64; ANCILLARY];
    let mut descriptors = Descriptors { numbers: [-1; DESCRIPTORS], count: 0 };
    let bytes = bytemuck::bytes_of_mut(&mut request);
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros are a valid header; it refers to what lives as long as it.
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
            close(descriptors.list()); // some had no number left, so that the others are of no use
            descriptors.count = 0;
        }
    }
    Some((request, descriptors))
}

fn answer(channel: c_int, answer: Answer) {
    // SAFETY: the bytes of a number. If spinrun has ended, the server learns it by its next wait.
    unsafe { libc::send(channel, (&raw const answer).cast(), size_of::<Answer>(), libc::MSG_NOSIGNAL) };
}

fn close(descriptors: &[c_int]) {
    for &descriptor in descriptors {
        // SAFETY: a descriptor that has come with a request.
        unsafe { libc::close(descriptor) };
    }
}

/// Returns where the value of an environment variable is.
fn place(name: &str) -> *mut c_char {
    let mut buffer = [0; 32];
    buffer[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: a name that ends with a null byte.
    unsafe { libc::getenv(buffer.as_ptr().cast()) }
}

/// Returns the value of an environment variable.
fn variable<'a>(name: &str) -> Option<&'a [u8]> {
    let value = place(name);
    // SAFETY: a string; it is not changed while it is in use here.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value).to_bytes() })
}

fn number(name: &str) -> Option<c_int> {
    std::str::from_utf8(variable(name)?).ok()?.parse().ok()
}

fn errno() -> c_int {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() }
}

fn end(status: c_int) -> ! {
    // SAFETY: ends the process. No exit handlers run, as nothing has begun.
    unsafe { libc::_exit(status) }
}

//! What people are told: on the standard error output, and what handlers print on that of the C library.

use std::ffi::c_int;
use std::path::PathBuf;

use accel::pspin::her::{DriverEvent, Failure, HpuId, Role, TaskOutcome};
use hpu::{Fault, Program};
use machine::MachineError;
use thiserror::Error;

/// The error of a call.
#[derive(Debug, Error)]
pub enum Error {
    /// The driver passes something that the call does not take.
    #[error("{0}")]
    Argument(String),
    /// Another call must come first.
    #[error("{0} must be called first, by the same thread")]
    Order(&'static str),
    /// A file cannot be read.
    #[error("{path}: {0}", path = .1.display())]
    Read(std::io::Error, PathBuf),
    /// A file is not what it should be.
    #[error("{path}: {0}", path = .1.display())]
    File(String, PathBuf),
    /// The machine cannot be loaded.
    #[error("machine {0}: {1}")]
    Machine(String, MachineError),
    /// The machine has another accelerator.
    #[error("machine {0} has an accelerator of kind {1:?}; this interface is that of \"pspin\"")]
    Kind(String, &'static str),
    /// The environment is wrong.
    #[error("{0}")]
    Environment(String),
    /// The run has failed.
    #[error("{0}")]
    Run(String),
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Tells something that the user should know.
pub fn warn(text: &str) {
    eprintln!("libpspin: {text}");
}

/// Prints text on the C library's standard output, in order with what the driver prints.
pub fn print(text: &[u8]) {
    let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
    // SAFETY: the format takes a length and that number of bytes.
    unsafe { libc::printf(c"%.*s".as_ptr(), length, text.as_ptr()) };
}

/// A line that a handler has printed.
pub fn print_line(hpu: HpuId, line: &[u8]) {
    print(&[format!("[{},{}] ", hpu.cluster, hpu.hpu).as_bytes(), line, b"\n"].concat());
}

/// What the driver of the card was told about a handler or a message that failed; `None` for what is no failure.
pub fn failure(event: &DriverEvent, program: &Program) -> Option<String> {
    match *event {
        DriverEvent::Command { .. } => None,
        DriverEvent::Idle { message, .. } => Some(format!("message {message} was given up: no packet came for it")),
        DriverEvent::Failed { hpu, role, message, outcome, .. } => {
            let role = match role {
                Role::Header => "header",
                Role::Payload => "payload",
                Role::Completion => "completion",
            };
            let what = outcome_text(outcome, program);
            let HpuId { cluster, hpu } = hpu;
            Some(format!("{role} handler of message {message} on HPU {hpu} of cluster {cluster}: {what}"))
        }
    }
}

fn outcome_text(outcome: TaskOutcome, program: &Program) -> String {
    match outcome {
        TaskOutcome::TimedOut => "killed by the watchdog (accelerator.default_watchdog_cycles)".to_owned(),
        TaskOutcome::Faulted(Failure::Command { address, size }) => {
            format!("a command or transfer names {size} B at {address:#010x}, which are not the handler's")
        }
        TaskOutcome::Faulted(Failure::Host { address }) => {
            format!("a command names host address {address:#x}, which is in no execution context's host memory")
        }
        TaskOutcome::Faulted(Failure::Fault(fault)) => fault_text(fault, program),
        TaskOutcome::Done | TaskOutcome::Skipped | TaskOutcome::MessageReset => "ended".to_owned(),
    }
}

fn fault_text(fault: Fault, program: &Program) -> String {
    let (pc, what) = match fault {
        Fault::Load { pc, addr, len } => (pc, format!("load of {len} B from {addr:#010x}, which it may not read")),
        Fault::Store { pc, addr, len } => (pc, format!("store of {len} B to {addr:#010x}, which it may not write")),
        Fault::Misaligned { pc, addr } => (pc, format!("misaligned atomic operation at {addr:#010x}")),
        Fault::Fetch { pc } => (pc, "execution left the program".to_owned()),
        Fault::Illegal { pc, word } => (pc, format!("illegal instruction {word:#010x}")),
        Fault::Breakpoint { pc } => (pc, "breakpoint, as compilers put into code that is never reached".to_owned()),
    };
    let mut text = format!("{what}, at {pc:#010x}");
    if let Some(function) = program.function(pc) {
        text += &format!(" in {function}");
    }
    if let Some(place) = program.line(pc) {
        text += &format!(" ({}:{})", place.file, place.line);
    }
    text
}

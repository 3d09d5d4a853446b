// SPDX-License-Identifier: Apache-2.0
//! What people are told: on the standard error output, and what handlers print on that of the C library.

use std::ffi::c_int;
use std::path::PathBuf;

use hpu::Program;
use machine::MachineError;
use pspin_nic::report;
use pspin_unit::her::{DriverEvent, HpuId, Role};
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
    /// A file cannot be written.
    #[error("{path}: {0}", path = .1.display())]
    Write(std::io::Error, PathBuf),
    /// The hardware cannot be simulated.
    #[error(transparent)]
    Hardware(#[from] pspin_rtl::RtlError),
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

/// What the driver of the card was told about a handler or a message that failed; `None` for what is no failure, and for the end
/// that a program wants, with which the run fails.
pub fn failure(event: &DriverEvent, killed_at: impl FnOnce(HpuId) -> u32, program: &Program) -> Option<String> {
    match *event {
        DriverEvent::Command { .. } | DriverEvent::Terminated { .. } => None,
        DriverEvent::Idle { message, .. } => Some(format!("message {message} was given up: no packet came for it")),
        DriverEvent::Failed { hpu: id, role, message, outcome, .. } => {
            let role = match role {
                Role::Header => "header",
                Role::Payload => "payload",
                Role::Completion => "completion",
            };
            let HpuId { cluster, hpu } = id;
            let end = report::ending(outcome, killed_at(id), program);
            Some(format!("{role} handler of message {message} on HPU {hpu} of cluster {cluster} {end}"))
        }
    }
}

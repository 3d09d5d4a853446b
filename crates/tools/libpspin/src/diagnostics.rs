// SPDX-License-Identifier: Apache-2.0
//! Messages on standard error, and output of handlers on the C library's standard output.

use std::ffi::c_int;
use std::path::PathBuf;

use hpu::Program;
use machine::MachineError;
use pspin_nic::report;
use pspin_unit::her::{DriverEvent, HpuId, Role};
use thiserror::Error;

/// Error of a call.
#[derive(Debug, Error)]
pub enum Error {
    /// Invalid argument of the driver.
    #[error("{0}")]
    Argument(String),
    /// Another call must come first.
    #[error("{0} must be called first, by the same thread")]
    Order(&'static str),
    /// A file cannot be read.
    #[error("{path}: {0}", path = .1.display())]
    Read(std::io::Error, PathBuf),
    /// Wrong contents of a file.
    #[error("{path}: {0}", path = .1.display())]
    File(String, PathBuf),
    /// The machine cannot be loaded.
    #[error("machine {0}: {1}")]
    Machine(String, MachineError),
    /// The machine has another kind of accelerator.
    #[error("machine {0} has an accelerator of kind {1:?}; this interface is that of \"pspin\"")]
    Kind(String, &'static str),
    /// Invalid environment variable.
    #[error("{0}")]
    Environment(String),
    /// A file cannot be written.
    #[error("{path}: {0}", path = .1.display())]
    Write(std::io::Error, PathBuf),
    /// The hardware cannot be simulated.
    #[error(transparent)]
    Hardware(#[from] pspin_rtl::RtlError),
    /// The run failed.
    #[error("{0}")]
    Run(String),
}

/// Result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Prints a warning.
pub fn warn(text: &str) {
    eprintln!("libpspin: {text}");
}

/// Prints text on the C library's standard output, in order with the driver's output.
pub fn print(text: &[u8]) {
    let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
    // SAFETY: the format takes a length and that number of bytes.
    unsafe { libc::printf(c"%.*s".as_ptr(), length, text.as_ptr()) };
}

/// Prints a line of a handler.
pub fn print_line(hpu: HpuId, line: &[u8]) {
    print(&[format!("[{},{}] ", hpu.cluster, hpu.hpu).as_bytes(), line, b"\n"].concat());
}

/// Describes the failure of a handler or a message; `None` for other events, and for the end requested by a program,
/// with which the run fails.
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

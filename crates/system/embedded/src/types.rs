// SPDX-License-Identifier: Apache-2.0
//! Types of the interface that are the same on all processors.

use std::ffi::{CString, c_int};
use std::os::fd::RawFd;
use thiserror::Error;

/// Reason why a program cannot be embedded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unfit {
    /// This processor is another.
    #[error("threads of the simulator are for processors with the x86-64 architecture only")]
    Processor,
    /// The file is no position-independent program for this machine.
    #[error("it is no position-independent program for x86-64")]
    Format,
    /// The program has thread-local variables.
    #[error("it has thread-local variables")]
    ThreadLocal,
    /// The program is linked to another library.
    #[error("it links {0}")]
    Library(String),
    /// The program uses a function that is not among the known ones.
    #[error("it uses {0}, which may need a process")]
    Function(String),
    /// The program has a relocation of an unknown kind.
    #[error("it has a relocation of kind {0}")]
    Relocation(u32),
}

/// Reason why a rank is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It waits for the answer to its call.
    Waits,
    /// It was interrupted while it computed.
    Computes,
    /// It ended, with this status of waitpid(2).
    Ended(c_int),
}

/// Form in which ranks are loaded and connected.
#[derive(Clone, Debug)]
pub struct Style {
    /// True if the simulator forwards the output ([`Host::take_output`]).
    pub forwards: bool,
    /// Arguments of the program, beginning with its name.
    pub arguments: Vec<CString>,
    /// Environment variables that are the same for all ranks.
    pub variables: Vec<CString>,
}

/// The job's shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Number of ranks.
    pub ranks: usize,
    /// Start of the memory.
    pub memory: *mut u8,
    /// Descriptor of its file.
    pub file: RawFd,
}

/// A symbol outside of the program.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// Address of a function, or 0 for a weak one that does not exist.
    Function(u64),
    /// Standard stream 0, 1 or 2 of the rank.
    Stream(u8),
    /// Environment of the rank.
    Environment,
}

/// Returns a zeroed C structure.
#[cfg(target_arch = "x86_64")]
pub fn zeroed<T>() -> T {
    // SAFETY: used for plain C structures, for which all bits zero are valid.
    unsafe { std::mem::MaybeUninit::zeroed().assume_init() }
}

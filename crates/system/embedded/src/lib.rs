// SPDX-License-Identifier: Apache-2.0
//! Ranks as user-level threads of the simulator's process.
//!
//! A [`Host`] loads a program once for each rank, with separate globals, heap and stack, and switches between ranks and
//! the simulator in some ten nanoseconds. A program qualifies if it uses only functions of the C library that keep no
//! state, or whose state this crate separates ([`c_library`], [`symbols`]); [`Program::open`] returns the reason for
//! which another one does not. All calls of `libportals.so` are those of the crate `portals`, with one state a rank.
//!
//! Modules, top-down:
//!
//! * [`host`]: all ranks of a job: start, run, end, memory
//! * [`rank`]: memory areas and state of a rank
//! * [`c_library`]: functions that replace those of the C library
//! * [`suspended`]: registers of a rank that computes, and its single steps
//! * [`program`], [`symbols`]: the program's file, and the functions that it may use
//! * [`faults`]: signals of ranks: crashes, and the clock that interrupts a computing rank
//! * [`streams`]: streams and random numbers of a rank
//! * [`context`]: switches between stacks
//! * [`types`]: types of the interface; `stub` replaces the rest on other processors

#[cfg(target_arch = "x86_64")]
mod c_library;
#[cfg(target_arch = "x86_64")]
mod context;
#[cfg(target_arch = "x86_64")]
mod faults;
#[cfg(target_arch = "x86_64")]
mod host;
#[cfg(target_arch = "x86_64")]
mod program;
#[cfg(target_arch = "x86_64")]
mod rank;
#[cfg(target_arch = "x86_64")]
mod streams;
#[cfg(target_arch = "x86_64")]
mod suspended;
#[cfg(target_arch = "x86_64")]
mod symbols;

#[cfg(not(target_arch = "x86_64"))]
mod stub;
mod types;

#[cfg(target_arch = "x86_64")]
pub use host::Host;
#[cfg(target_arch = "x86_64")]
pub use program::Program;
#[cfg(not(target_arch = "x86_64"))]
pub use stub::{Host, Program, Suspended};
#[cfg(target_arch = "x86_64")]
pub use suspended::Suspended;
pub use types::{Job, Stop, Style, Unfit};

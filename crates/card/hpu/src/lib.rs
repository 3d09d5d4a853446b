// SPDX-License-Identifier: Apache-2.0
//! Handler processing units: instruction sets and timing models of cores.
//!
//! A [`Program`] is the device ELF of one HPU kind. An [`Engine`] runs its handlers, each as a [`Thread`] on the bytes
//! of a [`Memory`], until the card must make a decision ([`Stop`]).
//!
//! * `program`, `map`: the ELF with its segments, symbols and line table, and the addresses for segments
//! * [`isa`]: the interface of an instruction set ([`isa::Isa`]), and RISC-V
//! * `op`: micro-operations, the only form of instructions in the other modules; `architectural_state`: the registers and counters of
//!   a thread
//! * `fences`, `watch`: find the accesses that must execute at their exact time, in the order of all HPUs: those next
//!   to fences, and those to words on which a handler waits
//! * `blocks`: code is decoded once into straight-line blocks; `engine` runs them
//! * `stepper`: runs a thread access by access ([`Stepper`]), for cards that time each access; `ways`: memo of repeated
//!   paths from one access to the next
//! * `interpreter`: untimed instruction-by-instruction interpreter, for comparison with hardware
//! * `profile`: execution counts of instructions, on request
//! * `timing`: HPU memory has fixed latency and no caches, so a block that starts in a given pipeline state always
//!   takes the same cycles and leaves the same state; each such transition is simulated once and looked up afterwards.
//!   `predictor` holds the state of the branch predictor of an out-of-order card.
//! * [`testing`]: encoders of RISC-V instructions, for tests and fuzzers
//!
//! Determinism: the outcome depends on the program, the arguments, the bytes and, for `ooo-a15`, on the branches that
//! the card has run before, because its branch predictor learns.

mod architectural_state;
mod blocks;
mod engine;
mod fences;
mod interpreter;
pub mod isa;
mod map;
mod memory;
mod op;
mod predictor;
mod profile;
mod program;
mod stepper;
mod stop;
pub mod testing;
mod thread;
mod timing;
mod watch;
mod ways;
mod window;

pub use engine::Engine;
pub use interpreter::{Accessed, Interpreter, Retired};
pub use map::{LoadMap, Region};
pub use memory::{Memory, Watcher};
pub use predictor::Predictor;
pub use program::{ElfError, Frame, Location, Program, Symbols};
pub use stepper::{Access, Lines, Pause, Stall, Stepper};
pub use stop::{Fault, Stop};
pub use thread::Thread;
pub use watch::Watched;
pub use window::{Sharing, Window};

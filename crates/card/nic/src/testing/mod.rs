// SPDX-License-Identifier: Apache-2.0
//! A test bench: cards in an artificial environment, without processes, compilers or files.
//!
//! A test delivers packets to a card, makes library calls, and observes the card's actions with their simulated times:
//! events, counters, host memory, departing packets, and timeline slices.
//!
//! * [`Bench`]: cards, their event queue and the current time; everything else is a [`Surroundings`]
//! * [`Recorder`]: surroundings with records of all actions and sparse host memories
//! * `calls`: shortcuts for library calls, the methods of `Bench<Recorder>`
//! * [`packets`]: hand-written requests and packets
//! * [`code`]: handlers assembled from RISC-V instructions
//!
//! Only tests and fuzzers use this module.

mod bench;
mod calls;

pub mod packets;
mod recorder;

pub use accel::testing::code;
pub use bench::{Bench, BenchPorts, Surroundings};
pub use calls::any_entry;
pub use recorder::{Departure, HostStore, Recorder, Seen};

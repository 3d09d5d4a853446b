//! A test bench: cards in a world of their own, without processes, compilers or files.
//!
//! A test puts packets before a card by hand, makes library calls, and sees what the card does: events, counters, host
//! memory, the packets that leave, and the slices of the timeline, each with its simulated time.
//!
//! * [`Bench`]: cards, their event queue and the current time; everything else is a [`Surroundings`]
//! * [`Recorder`]: surroundings that keep what they are told and have sparse host memories
//! * `calls`: shortcuts for library calls, the methods of `Bench<Recorder>`
//! * [`packets`]: requests and packets written by hand
//! * [`code`]: handlers assembled from RISC-V instructions
//!
//! Nothing outside tests and fuzzers uses this module.

mod bench;
mod calls;

pub mod packets;
mod recorder;

pub use accel::testing::code;
pub use bench::{Bench, BenchPorts, Surroundings};
pub use calls::any_entry;
pub use recorder::{Departure, HostStore, Recorder, Seen};

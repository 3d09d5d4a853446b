//! The simulation core: [`Time`] in integer picoseconds, the [`EventQueue`] ordered by time and then by insertion, the
//! [`DelayQueue`] of the same order for events that come after one of a few delays, serial resources with a rate
//! ([`SerialResource`]), a bandwidth that several share ([`SharedBandwidth`]), the detours of CPUs ([`noise`]), random
//! numbers ([`random`]), tables in huge pages ([`memory`]), and timelines ([`trace`]).
//!
//! Time is passed in, never read from a clock, so a run depends on nothing but its inputs.

mod delay_queue;
pub mod memory;
pub mod noise;
mod pool;
mod queue;
pub mod random;
mod serial_resource;
mod shared_bandwidth;
mod time;
pub mod trace;

pub use delay_queue::{DelayQueue, Soon};
pub use pool::Pool;
pub use queue::EventQueue;
pub use serial_resource::{SerialResource, Train};
pub use shared_bandwidth::{SharedBandwidth, WorkId};
pub use time::{Clock, Time, TimePerByte};

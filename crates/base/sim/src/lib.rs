// SPDX-License-Identifier: Apache-2.0
//! The simulation core: [`Time`] in integer picoseconds, the [`EventQueue`] ordered by time and then by insertion, the
//! [`DelayQueue`] with the same order for a few distinct delays, serial resources with a rate ([`SerialResource`]),
//! shared bandwidth ([`SharedBandwidth`]), CPU noise ([`noise`]), random numbers ([`random`]), tables in huge pages
//! ([`memory`]), and timelines ([`trace`]).
//!
//! Time is passed in, never read from a clock, so a run depends only on its inputs.

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

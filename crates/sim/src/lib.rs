//! The simulation core: [`Time`] in integer picoseconds, the [`EventQueue`] ordered by time and then by insertion,
//! [`Pipe`]s (serial resources with a rate), tables in huge pages ([`memory`]), and timelines ([`trace`]).
//!
//! Time is passed in, never read from a clock, so a run depends on nothing but its inputs.

pub mod memory;
mod pipe;
mod pool;
mod queue;
mod time;
pub mod trace;

pub use pipe::{Pipe, Train};
pub use pool::Pool;
pub use queue::EventQueue;
pub use time::{Clock, Rate, Time};

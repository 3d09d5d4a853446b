//! The frame of all executors of schedules.
//!
//! [`RunState`] is what every model has: which operations are blocked, ready and done, which receives and messages wait for
//! each other, and how a run ends or finds that it cannot. [`Executor`] adds an event queue, CPUs that do one task after
//! the other, noise, and the loop; a [`Model`] supplies what a task costs, how a message is sent and how it arrives.
//! LogGOPS has a queue and resources of its own, as it executes ten million events a second, and uses only [`RunState`].

mod cpu;
mod executor;
mod state;

pub(crate) use executor::{AHEAD, Executor, Model};
pub(crate) use state::{RunState, refuse_card_operations};

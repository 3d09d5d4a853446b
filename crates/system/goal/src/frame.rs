// SPDX-License-Identifier: Apache-2.0
//! Common framework of all schedule executors.
//!
//! [`RunState`] is the model-independent state: blocked, ready and finished operations, matching of receives and
//! messages, and the end or deadlock of a run. [`Executor`] adds an event queue, CPUs that execute one task at a time,
//! noise, and the loop; a [`Model`] supplies the cost of a task and the sending and arrival of messages. LogGOPS has
//! its own queue and resources, as it executes ten million events per second, and uses only [`RunState`].

mod cpu;
mod executor;
mod run_state;

pub(crate) use executor::{AHEAD, Executor, Model};
pub(crate) use run_state::{RunState, refuse_card_operations};

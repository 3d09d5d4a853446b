//! Execution of GOAL schedules on cards: every rank has a [`nic::Card`], a modelled CPU, and memory that costs nothing
//! until it is touched, but no process. Bytes are real, handlers run on the HPU simulator, and all times are those that
//! `spinrun` would give a program that makes the same calls.
//!
//! * `world`: ranks, cards and network in one event loop
//! * `cpu`: what operations cost the CPU, and what happens when it has done them
//! * `entries`: Portals and sPIN operations as commands of a card
//! * `messages`: `send` and `recv` over Portals matching
//! * `memory`, `ports`: what a card sees of its rank and of the world
//! * `check`: what a schedule must not ask for

mod check;
mod cpu;
mod entries;
mod error;
mod memory;
mod messages;
mod ports;
mod world;

pub use error::{RunError, StuckRank};
pub use memory::{HostMemory, buffer};
pub use world::{Outcome, World};

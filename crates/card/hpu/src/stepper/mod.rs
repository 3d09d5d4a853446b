// SPDX-License-Identifier: Apache-2.0
//! Runs a thread from access to access, so that memories, caches and devices determine the time of each access.

mod access;
mod lines;
mod pause;
mod step;

pub use access::{Stall, Stepper};
pub use lines::Lines;
pub use pause::{Access, Pause};

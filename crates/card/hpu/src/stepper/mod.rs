//! Runs a thread up to each of its accesses, so that memories, caches and devices decide when the access happens.

mod lines;
mod pause;
mod run;
mod step;

pub use lines::Lines;
pub use pause::{Access, Pause};
pub use run::{Stall, Stepper};

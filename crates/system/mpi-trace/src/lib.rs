// SPDX-License-Identifier: Apache-2.0
//! Converts traces of MPI programs to GOAL schedules with the same communication.
//!
//! [`import`] reads a folder with one file for each rank, written by `libspintrace.so` (`sdk/tracer`) or liballprof.

#![deny(clippy::cast_possible_truncation)] // values come from input

mod binary;
mod choice;
mod convert;
mod error;
mod event;
mod import;
mod options;
mod text;
mod windows;

pub use choice::{ChoiceError, Collectives};
pub use error::{Damage, ImportError};
pub use import::{Import, RankReport, import, report};
pub use options::{Options, Wildcards};

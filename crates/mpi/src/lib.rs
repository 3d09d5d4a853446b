//! MPI traces: from what the ranks of a program did to the GOAL schedule that does the same.
//!
//! [`import`] reads a folder with one file a rank, as `libspintrace.so` (`sdk/tracer`) or liballprof writes them.

mod binary;
mod choice;
mod convert;
mod error;
mod event;
mod import;
mod text;
mod windows;

pub use choice::{ChoiceError, Collectives};
pub use error::{Damage, ImportError};
pub use import::{Import, Options, RankReport, Wildcards, import, report};

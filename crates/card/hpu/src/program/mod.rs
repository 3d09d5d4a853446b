// SPDX-License-Identifier: Apache-2.0
//! Device programs.

#![deny(clippy::cast_possible_truncation)] // values come from input

mod calls;
mod elf;
mod error;
mod lines;
mod symbols;

pub use calls::Frame;
pub use elf::Program;
pub use error::ElfError;
pub use lines::Location;
pub use symbols::Symbols;

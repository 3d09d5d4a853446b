//! Device programs.

mod elf;
mod error;
mod lines;

pub use elf::Program;
pub use error::ElfError;
pub use lines::Location;

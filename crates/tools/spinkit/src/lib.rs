//! The commands `spinkit goal`, `spinkit machines` and `spinkit pspin`, and the man pages of all commands. The package has the
//! executables of `spincc` and `spinrun` too, whose code is in crates of their names.

#[macro_use]
extern crate command;

pub mod goal;
pub mod machines;
pub mod manuals;
pub mod pspin;

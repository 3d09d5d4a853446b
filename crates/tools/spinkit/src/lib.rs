// SPDX-License-Identifier: Apache-2.0
//! Commands `spinkit goal`, `spinkit machines` and `spinkit pspin`, and the man pages of all commands. The package also
//! has the executables of `spincc` and `spinrun`, whose code is in crates of these names.

#[macro_use]
extern crate command;

pub mod goal;
pub mod machines;
pub mod manuals;
pub mod pspin;

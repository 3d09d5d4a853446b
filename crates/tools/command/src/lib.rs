// SPDX-License-Identifier: Apache-2.0
//! Parts shared by the commands.
//!
//! * [`process`]: the main function of every command: signals, panics and exit codes
//! * [`progress`]: the progress line on a terminal, and messages above it; [`card_messages`] prints those of a simulation
//! * [`sdk`]: the folders of the SDK; [`listable`] gives paths that compilers can read
//! * [`units`], [`noise`], [`transport`], [`clock`], [`card`]: options in units, and their text in reports
//! * [`drops`], [`failures`]: dropped packets, and injected failures

/// Prints a line to standard error, above the progress line if there is one. Unlike the standard library's macro of
/// this name, it does not panic when the pipe has no reader (`2>&1 | head`).
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::progress::say(&format!($($text)*)) };
}

pub mod card;
pub mod card_messages;
pub mod clock;
pub mod drops;
pub mod failures;
pub mod listable;
pub mod noise;
pub mod process;
pub mod progress;
pub mod sdk;
pub mod transport;
pub mod units;

/// Cards and messages allocate and free many small pieces of memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

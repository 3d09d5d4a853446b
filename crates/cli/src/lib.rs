//! The commands: `spincc`, `spinrun`, `spinkit goal`, `spinkit machines` and `spinkit pspin`, and their man pages.

/// Prints a line to standard error, above the progress line if there is one. Unlike the standard library's macro of this name, it does not panic
/// when the reader is gone (`2>&1 | head`).
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::progress::say(&format!($($text)*)) };
}

mod card;
mod clock;
mod drops;
mod failures;
pub mod goal;
mod listable;
pub mod machines;
pub mod manuals;
mod messages;
mod noise;
pub mod process;
mod progress;
pub mod pspin;
pub mod sdk;
pub mod spincc;
pub mod spinrun;
mod transport;
mod units;

/// Cards and messages are many small pieces of memory that come and go.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

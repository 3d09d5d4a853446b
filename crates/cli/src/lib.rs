//! The commands: `spincc`, `spinrun`, `spinkit goal`, `spinkit machines` and `spinkit pspin`.

mod card;
mod clock;
mod failures;
pub mod goal;
pub mod machines;
mod noise;
mod progress;
pub mod pspin;
pub mod sdk;
pub mod spincc;
pub mod spinrun;
mod units;

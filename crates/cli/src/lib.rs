//! The commands: `spincc`, `spinrun`, `spinkit goal` and `spinkit machines`.

mod card;
mod clock;
pub mod goal;
pub mod machines;
mod noise;
mod progress;
pub mod sdk;
pub mod spincc;
pub mod spinrun;
mod units;

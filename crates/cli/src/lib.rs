//! The commands: `spincc`, `spinrun` and `spinkit goal`.

mod card;
mod clock;
pub mod goal;
mod progress;
pub mod sdk;
pub mod spincc;
pub mod spinrun;

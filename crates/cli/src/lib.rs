//! The commands: `spincc`, `spinrun` and `spinkit goal`.

pub mod goal;
pub mod sdk;
pub mod spincc;
pub mod spinrun;

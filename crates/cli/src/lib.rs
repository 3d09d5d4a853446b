//! The commands: `spincc` and `spinrun`.

pub mod sdk;
pub mod spincc;
pub mod spinrun;

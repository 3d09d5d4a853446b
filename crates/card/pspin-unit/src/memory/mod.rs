//! The memories of the unit: their bytes and addresses, and how packet buffers are allocated.

mod arena;
mod banks;
mod ring;

pub use arena::{Arena, Place};
pub use banks::{Banks, Wide};
pub use ring::{Allocation, Ring};

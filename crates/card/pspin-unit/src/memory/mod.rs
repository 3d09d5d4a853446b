// SPDX-License-Identifier: Apache-2.0
//! Memories of the unit: contents and addresses, bank arbitration, and packet buffer allocation.

mod arena;
mod banks;
mod ring;

pub use arena::{Arena, Place};
pub use banks::{Banks, Wide};
pub use ring::{Allocation, Ring};

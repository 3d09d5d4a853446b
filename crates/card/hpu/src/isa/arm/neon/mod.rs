// SPDX-License-Identifier: Apache-2.0
//! Advanced SIMD (A7.4, A7.7): integers, and single precision in the standard mode. Operations get the whole instruction
//! word. Vectors are arrays of double registers; a lane is read without sign into 64 bits.

mod lanes;
mod memory;
mod miscellaneous;
mod permute;
mod shifts;
mod three;
mod wide;

pub use memory::ACCESS;
pub use miscellaneous::MISCELLANEOUS;
pub use permute::PERMUTATIONS;
pub use shifts::{IMMEDIATE, SHIFTS};
pub use three::THREE;
pub use wide::{LONG, SCALAR};

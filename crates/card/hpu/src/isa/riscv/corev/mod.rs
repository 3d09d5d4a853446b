// SPDX-License-Identifier: Apache-2.0
//! CORE-V extensions of CV32E40P (its user manual, "CORE-V Instruction Set Custom Extensions", version 1.0.0): loads
//! and stores with post-increment, hardware loops, bit manipulation, general ALU operations, branches on immediates,
//! multiply-accumulate, and SIMD on half-words and bytes. `cv.elw` is missing: it belongs to the event unit of another
//! cluster.

mod alu;
mod bits;
mod loops;
mod mac;
mod memory;
mod simd;
mod table;

pub use loops::{at_end, control_register, well_formed};
pub use table::{ALU, BITS, BRANCHES, LOOPS, MAC, MEMORY, SIMD, SIMD_LANES};

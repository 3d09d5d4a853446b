// SPDX-License-Identifier: Apache-2.0
//! Register fields of RISC-V encodings.

use crate::op::Op;

/// Register of the file that discards writes to `x0`. Integer register `x`*n* is 32-bit register *n* of the file,
/// floating-point register `f`*n* is 64-bit register *n*; a single is NaN-boxed (RISC-V Unpriv. 21.2).
pub const SINK: u8 = 32;

/// Register fields of an encoding (RISC-V Unpriv. 2.2).
pub trait Fields {
    /// Returns the destination; [`SINK`] for `x0`.
    fn rd(&self) -> u8;
    /// Returns the first source.
    fn rs1(&self) -> u8;
    /// Returns the second source.
    fn rs2(&self) -> u8;
    /// Returns the third source.
    fn rs3(&self) -> u8;
}

impl Fields for Op {
    #[inline(always)]
    fn rd(&self) -> u8 {
        self.registers[0]
    }

    #[inline(always)]
    fn rs1(&self) -> u8 {
        self.registers[1]
    }

    #[inline(always)]
    fn rs2(&self) -> u8 {
        self.registers[2]
    }

    #[inline(always)]
    fn rs3(&self) -> u8 {
        self.registers[3]
    }
}

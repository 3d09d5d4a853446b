use crate::op::Op;

/// Register of the file that discards what instructions write to `x0`. Integer register `x`*n* is 32-bit register *n*
/// of the file, floating-point register `f`*n* is 64-bit register *n*; a single is boxed (RISC-V Unpriv. 21.2).
pub const SINK: u8 = 32;

/// The fields of an encoding that name registers (RISC-V Unpriv. 2.2).
pub trait Fields {
    /// Destination; [`SINK`] for `x0`.
    fn rd(&self) -> u8;
    /// First source.
    fn rs1(&self) -> u8;
    /// Second source.
    fn rs2(&self) -> u8;
    /// Third source.
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

// SPDX-License-Identifier: Apache-2.0
//! Rows of the instruction tables: an encoding and its meaning.

use Rounding::Absent;

use crate::op::{Class, Run, Semantics};

/// Fields of an instruction, and the register files that they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    None,
    R,
    I,
    Shift,
    S,
    B,
    U,
    /// `U`, pc-relative.
    Auipc,
    J,
    Csr,
    CsrI,
    FloatLoad,
    FloatStore,
    FloatR,
    Float1,
    Float4,
    FloatCompare,
    FloatToInt,
    IntToFloat,
    /// Load of `rd` from `rs1`, post-incremented by an immediate.
    LoadStep,
    /// Load of `rd` from `rs1`, post-incremented by `rs2`.
    LoadStepRegister,
    /// Load of `rd` from `rs1 + rs2`.
    LoadOffset,
    /// Store of `rs2` to `rs1`, post-incremented by an immediate.
    StoreStep,
    /// Store of `rs2` to `rs1`, post-incremented by the register in the `rd` field.
    StoreStepRegister,
    /// Store of `rs2` to `rs1` plus the register in the `rd` field.
    StoreOffset,
    /// Branch that compares `rs1` with an immediate in the `rs2` field.
    BranchImmediate,
    /// Position and size of a bit field.
    Field,
    /// `R` with an immediate between function and `rs2`.
    Normalized,
    /// SIMD with a signed immediate.
    PackedSigned,
    PackedUnsigned,
    /// Hardware loop: pc-relative start address.
    LoopAddress,
    /// Hardware loop: pc-relative end address.
    LoopEndAddress,
    /// Hardware loop: end address in `rs1`.
    LoopEndRegister,
    LoopCount,
    LoopRegister,
    /// Hardware loop: count in `rs1`, end from an immediate.
    LoopSetup,
    /// Hardware loop: count and end from immediates.
    LoopSetupImmediate,
}

/// Values of the rounding-mode field (RISC-V Unpriv. 21.2) that an instruction supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// No rounding-mode field.
    Absent,
    /// Rounding to nearest, ties to even; also through `frm`, which always has that value.
    Nearest,
    /// All five rounding modes.
    All,
}

impl Rounding {
    pub fn allows(self, mode: u32) -> bool {
        match self {
            Rounding::Absent => true,
            Rounding::Nearest => matches!(mode, 0 | 7),
            Rounding::All => matches!(mode, 0..=4 | 7),
        }
    }
}

/// An encoding and its meaning.
pub(crate) struct Row {
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row in the tests of the table"))]
    pub name: &'static str,
    pub mask: u32,
    pub bits: u32,
    pub format: Format,
    pub class: Class,
    pub rounding: Rounding,
    /// True if the instruction also reads its result register.
    pub accumulates: bool,
    pub run: Run,
}

impl Row {
    pub fn matches(&self, word: u32) -> bool {
        word & self.mask == self.bits
    }
}

pub(super) const fn row<F: Semantics>(
    name: &'static str,
    mask: u32,
    bits: u32,
    format: Format,
    class: Class,
    semantics: F,
) -> Row {
    Row { name, mask, bits, format, class, rounding: Absent, accumulates: false, run: Run::new(semantics) }
}

/// Builds the row of a load or store, with one function for memory at hand and one for all memory.
pub(super) const fn access<F: Semantics, G: Semantics>(
    name: &'static str,
    mask: u32,
    bits: u32,
    format: Format,
    class: Class,
    at_hand: F,
    anywhere: G,
) -> Row {
    let run = Run::of_access(at_hand, anywhere);
    Row { name, mask, bits, format, class, rounding: Absent, accumulates: false, run }
}

pub(super) const fn accumulates(row: Row) -> Row {
    Row { accumulates: true, ..row }
}

pub(super) const fn rounded(row: Row, rounding: Rounding) -> Row {
    Row { rounding, ..row }
}

pub(super) const F3: u32 = 0x0000_707f;
pub(super) const F7: u32 = 0xfe00_707f;

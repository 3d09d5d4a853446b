// SPDX-License-Identifier: Apache-2.0
//! Sets of RISC-V extensions and their names.

use std::fmt;
use std::ops::BitOr;

/// A set of RISC-V extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions(u16);

/// Base instruction set only; Zicsr, Zifencei and Zicntr are always included.
pub const I: Extensions = Extensions(0);
/// Multiplication and division.
pub const M: Extensions = Extensions(1);
/// Atomic operations.
pub const A: Extensions = Extensions(2);
/// Single-precision floating point.
pub const F: Extensions = Extensions(4);
/// Double-precision floating point.
pub const D: Extensions = Extensions(8);
/// 16-bit encodings.
pub const C: Extensions = Extensions(16);

/// CORE-V: general ALU operations.
pub const XCV_ALU: Extensions = Extensions(32);
/// CORE-V: loads and stores with post-increment.
pub const XCV_MEM: Extensions = Extensions(64);
/// CORE-V: multiply-accumulate.
pub const XCV_MAC: Extensions = Extensions(128);
/// CORE-V: branches on immediates.
pub const XCV_BI: Extensions = Extensions(256);
/// CORE-V: bit manipulation.
pub const XCV_BITMANIP: Extensions = Extensions(512);
/// CORE-V: SIMD on half-words and bytes.
pub const XCV_SIMD: Extensions = Extensions(1024);
/// CORE-V: hardware loops.
pub const XCV_HWLP: Extensions = Extensions(2048);
/// All CORE-V extensions.
const COREV: Extensions = Extensions(32 + 64 + 128 + 256 + 512 + 1024 + 2048);
/// Suffix of a kind's name that stands for all CORE-V extensions.
const COREV_NAME: &str = "corev";

/// Single-letter extensions, in the order of names.
const LETTERS: [(char, Extensions); 5] = [('m', M), ('a', A), ('f', F), ('d', D), ('c', C)];

/// Long-named extensions that one of the above contains, as compilers write them into attributes.
const PARTS: [(&str, Extensions); 17] = [
    ("zicsr", I),
    ("zifencei", I),
    ("zicntr", I),
    ("zmmul", M),
    ("zaamo", A),
    ("zalrsc", A),
    ("zca", C),
    ("zcf", Extensions(C.0 | F.0)),
    ("zcd", Extensions(C.0 | D.0)),
    // Permits linker relaxation; adds no instructions.
    ("relax", I),
    ("xcvalu", XCV_ALU),
    ("xcvmem", XCV_MEM),
    ("xcvmac", XCV_MAC),
    ("xcvbi", XCV_BI),
    ("xcvbitmanip", XCV_BITMANIP),
    ("xcvsimd", XCV_SIMD),
    ("xcvhwlp", XCV_HWLP),
];

impl Extensions {
    /// Returns the extensions of a name like "rv32imac" or "rv32imac-corev"; `None` if the name is invalid. Other
    /// suffixes add no extensions.
    pub fn of_name(name: &str) -> Option<Extensions> {
        let mut words = name.split('-');
        let mut rest = words.next()?.strip_prefix("rv32i")?;
        let mut all = if words.any(|word| word == COREV_NAME) { COREV } else { I };
        for (letter, extension) in LETTERS {
            if let Some(behind) = rest.strip_prefix(letter) {
                (all, rest) = (all | extension, behind);
            }
        }
        (rest.is_empty() && (!all.contain(D) || all.contain(F))).then_some(all)
    }

    /// Returns the extension that a part of an architecture string names, such as "m" or "zmmul"; `None` if it is not
    /// supported.
    pub fn of_part(part: &str) -> Option<Extensions> {
        let letter = LETTERS.iter().find(|(letter, _)| part.strip_prefix(*letter) == Some(""));
        let named = || PARTS.iter().find(|(name, _)| *name == part).map(|(_, extensions)| *extensions);
        letter.map(|(_, extension)| *extension).or_else(named)
    }

    /// Returns true if all of `other` are in this set.
    pub const fn contain(self, other: Extensions) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Extensions {
    type Output = Extensions;

    fn bitor(self, other: Extensions) -> Extensions {
        Extensions(self.0 | other.0)
    }
}

impl fmt::Display for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rv32i")?;
        let mut letters = LETTERS.iter().filter(|(_, extension)| self.contain(*extension));
        letters.try_for_each(|(letter, _)| write!(f, "{letter}"))?;
        if self.contain(COREV) { write!(f, "-{COREV_NAME}") } else { Ok(()) }
    }
}

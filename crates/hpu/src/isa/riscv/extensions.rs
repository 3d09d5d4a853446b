use std::fmt;
use std::ops::BitOr;

/// A set of the standard extensions that the simulator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions(u8);

/// The base instruction set alone; Zicsr, Zifencei and Zicntr are always included.
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

/// The extensions with one letter, in the order in which a name has them.
const LETTERS: [(char, Extensions); 5] = [('m', M), ('a', A), ('f', F), ('d', D), ('c', C)];

/// Extensions with long names that an extension above contains, as compilers write them into attributes.
const PARTS: [(&str, Extensions); 10] = [
    ("zicsr", I),
    ("zifencei", I),
    ("zicntr", I),
    ("zmmul", M),
    ("zaamo", A),
    ("zalrsc", A),
    ("zca", C),
    ("zcf", Extensions(C.0 | F.0)),
    ("zcd", Extensions(C.0 | D.0)),
    // Permission to make instructions shorter at link time; no instructions of its own.
    ("relax", I),
];

impl Extensions {
    /// The extensions of a name like "rv32imac"; `None` when it is not one.
    pub fn of_name(name: &str) -> Option<Extensions> {
        let mut rest = name.strip_prefix("rv32i")?;
        let mut all = I;
        for (letter, extension) in LETTERS {
            if let Some(behind) = rest.strip_prefix(letter) {
                (all, rest) = (all | extension, behind);
            }
        }
        (rest.is_empty() && (!all.contain(D) || all.contain(F))).then_some(all)
    }

    /// The extension that a part of an architecture string names: "m" or "zmmul". `None` when the simulator does not
    /// have it.
    pub fn of_part(part: &str) -> Option<Extensions> {
        let letter = LETTERS.iter().find(|(letter, _)| part.strip_prefix(*letter) == Some(""));
        let named = || PARTS.iter().find(|(name, _)| *name == part).map(|(_, extensions)| *extensions);
        letter.map(|(_, extension)| *extension).or_else(named)
    }

    /// Whether all of `other` are in this set.
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
        letters.try_for_each(|(letter, _)| write!(f, "{letter}"))
    }
}

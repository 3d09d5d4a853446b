// SPDX-License-Identifier: Apache-2.0
//! Findings of the sanitizer that were reported to the user, by source location.

/// Source location of an access.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) pc: u32,
    pub(super) function: Option<String>,
    /// File and line; `None` without debug information, or if the compiler moved the instruction away from its line.
    pub(super) line: Option<(String, u32)>,
}

impl Place {
    fn is_like(&self, other: &Place) -> bool {
        let same_line = match (&self.line, &other.line) {
            (Some(line), Some(other)) => line == other,
            (None, None) => self.pc == other.pc,
            _ => true,
        };
        self.function == other.function && same_line
    }
}

/// A reported mistake.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) is_race: bool,
    pub(super) places: [Place; 2],
}

impl Told {
    pub(super) fn is_like(&self, other: &Told) -> bool {
        let ([a, b], [c, d]) = (&self.places, &other.places);
        self.is_race == other.is_race && (a.is_like(c) && b.is_like(d) || a.is_like(d) && b.is_like(c))
    }
}

//! Findings of the sanitizer that the user knows, by the places in the source.

/// The place of an access in the source.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) pc: u32,
    pub(super) function: Option<String>,
    /// File and number; `None` where the compiler has moved the instruction away from its line, or without debug information.
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

/// A mistake of which the user knows.
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

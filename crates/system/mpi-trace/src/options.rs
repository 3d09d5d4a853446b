//! Options of the conversion.

use crate::choice::Collectives;

/// The treatment of receives from any source or with any tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wildcards {
    /// They stay wildcards. The simulation decides which messages they receive.
    Keep,
    /// They receive the messages that they received when the program was traced, where the trace contains that.
    #[default]
    Resolve,
}

/// Options of the conversion of traces to a schedule.
#[derive(Clone, Debug)]
pub struct Options {
    /// The factor by which all computation is multiplied.
    pub calc_scale: f64,
    /// The algorithms of collectives.
    pub collectives: Collectives,
    /// The treatment of wildcards.
    pub wildcards: Wildcards,
    /// The number of copies of the program, at least one. Collectives of all ranks span all copies; all other messages
    /// stay within a copy.
    pub extrapolate: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            calc_scale: 1.0,
            collectives: Collectives::default(),
            wildcards: Wildcards::default(),
            extrapolate: 1,
        }
    }
}

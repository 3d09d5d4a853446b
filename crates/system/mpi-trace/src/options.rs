// SPDX-License-Identifier: Apache-2.0
//! Options of the conversion.

use crate::choice::Collectives;

/// Treatment of receives from any source or with any tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wildcards {
    /// They stay wildcards. The simulation decides which messages they receive.
    Keep,
    /// They receive the same messages as in the traced run, if the trace contains these.
    #[default]
    Resolve,
}

/// Options of the conversion of traces to a schedule.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scale factor of all computation.
    pub calc_scale: f64,
    /// Algorithms of collectives.
    pub collectives: Collectives,
    /// Treatment of wildcards.
    pub wildcards: Wildcards,
    /// Number of copies of the program, at least one. Collectives of all ranks span all copies; all other messages stay
    /// within a copy.
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

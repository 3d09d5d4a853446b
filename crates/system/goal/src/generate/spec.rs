use thiserror::Error;

use crate::build::BuildError;
use crate::op::{MAX_CALC_NS, MAX_OPS, MAX_RANKS};

/// Largest size of a message in a generated schedule.
const MAX_BYTES: u64 = 1 << 62;

/// The parameters of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of ranks
    pub ranks: u32,
    /// Bytes of the collective's vector; of one rank's part in all-to-all, gather, scatter and all-gather; of a message
    /// of halo and sweep
    pub bytes: u64,
    /// The rank where broadcast and scatter start, and where reduce and gather end
    pub root: u32,
    /// Tag of all messages; the second of two trees adds one, halo twice the dimension and one for upward
    pub tag: u32,
    /// Nanoseconds of computation after each receive; halo and sweep: of each step
    pub calc_ns: u64,
    /// Bytes of a segment of pipelined patterns; 0 means one segment
    pub segment: u64,
    /// k of a k-nomial tree
    pub radix: u32,
    /// Size of the grid in each dimension; their product is the number of ranks
    pub dims: Vec<u32>,
    /// Nanoseconds of a halo step's computation that needs no message, and runs while they travel
    pub overlap_ns: u64,
    /// Whether the receives of a halo step are posted before the last step's computation
    pub early_receives: bool,
    /// Whether the grid of a halo exchange is a torus
    pub periodic: bool,
    /// Steps of halo and sweep
    pub iterations: u32,
}

impl Default for Spec {
    /// Returns the parameters of one rank and one byte, without options.
    fn default() -> Spec {
        Spec {
            ranks: 1,
            bytes: 1,
            root: 0,
            tag: 0,
            calc_ns: 0,
            segment: 0,
            radix: 2,
            dims: Vec::new(),
            overlap_ns: 0,
            early_receives: false,
            periodic: false,
            iterations: 1,
        }
    }
}

/// Why a pattern cannot be generated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// There are no ranks or too many.
    #[error("the number of ranks is from 1 to {MAX_RANKS}, not {0}")]
    Ranks(u32),
    /// The root is not a rank.
    #[error("root {root} does not exist: there are {ranks} ranks, numbered from 0")]
    Root {
        /// The root that was asked for
        root: u32,
        /// Number of ranks
        ranks: u32,
    },
    /// The radix of a tree is too small.
    #[error("the radix of a k-nomial tree is at least 2, not {0}")]
    Radix(u32),
    /// The grid has other dimensions than the pattern.
    #[error("{pattern} takes {expected} dimensions, not {found}")]
    Dimensions {
        /// Its name
        pattern: &'static str,
        /// The number of dimensions that the pattern takes
        expected: &'static str,
        /// The number of dimensions that were given
        found: usize,
    },
    /// The grid has another number of ranks.
    #[error("a grid of {dims:?} is {product} ranks, not {ranks}")]
    Grid {
        /// The grid
        dims: Vec<u32>,
        /// Its ranks
        product: u64,
        /// Number of ranks
        ranks: u32,
    },
    /// A number is beyond its limit.
    #[error("the {0} is too large: at most {1}")]
    TooLarge(&'static str, u64),
    /// More operations than a schedule may have.
    #[error("{pattern} with {ranks} ranks has {operations} operations; a schedule has at most {MAX_OPS}")]
    TooManyOperations {
        /// Its name
        pattern: &'static str,
        /// Number of ranks
        ranks: u32,
        /// Number of its operations, without calculations that follow receives
        operations: u128,
    },
    /// Too many operations or dependencies.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Spec {
    /// Checks what does not depend on the pattern.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.ranks == 0 || self.ranks > MAX_RANKS {
            return Err(SpecError::Ranks(self.ranks));
        }
        if self.root >= self.ranks {
            return Err(SpecError::Root { root: self.root, ranks: self.ranks });
        }
        // A halo exchange adds up to seven to the tag.
        for (what, value, most) in [
            ("size", self.bytes, MAX_BYTES),
            ("tag", u64::from(self.tag), u64::from(u32::MAX) - 8),
            ("computation", self.calc_ns.max(self.overlap_ns), MAX_CALC_NS),
        ] {
            if value > most {
                return Err(SpecError::TooLarge(what, most));
            }
        }
        Ok(())
    }
}

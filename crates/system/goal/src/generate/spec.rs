// SPDX-License-Identifier: Apache-2.0
//! Parameters of patterns.

use thiserror::Error;

use crate::build::BuildError;
use crate::op::{MAX_CALC_NS, MAX_OPS, MAX_RANKS};

/// Maximum size of a message in a generated schedule.
const MAX_BYTES: u64 = 1 << 62;

/// Parameters of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of ranks
    pub ranks: u32,
    /// Bytes of the collective's vector; of one rank's part in all-to-all, gather, scatter and all-gather; of a message
    /// of halo and sweep
    pub bytes: u64,
    /// Root: start of broadcast and scatter, end of reduce and gather
    pub root: u32,
    /// Tag of all messages; the second of two trees adds one, halo adds twice the dimension, and one for upward
    pub tag: u32,
    /// Nanoseconds of computation after each receive; in halo and sweep, of each step
    pub calc_ns: u64,
    /// Bytes of a segment of pipelined patterns; 0 for one segment
    pub segment: u64,
    /// k of a k-nomial tree
    pub radix: u32,
    /// Size of the grid in each dimension; the product is the number of ranks
    pub dims: Vec<u32>,
    /// Nanoseconds of a halo step's computation that needs no message, and overlaps with the messages
    pub overlap_ns: u64,
    /// True to post the receives of a halo step before the previous step's computation
    pub early_receives: bool,
    /// True if the grid of a halo exchange is a torus
    pub periodic: bool,
    /// Number of steps of halo and sweep
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

/// Error of an invalid pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// The number of ranks is zero or too large.
    #[error("the number of ranks is from 1 to {MAX_RANKS}, not {0}")]
    Ranks(u32),
    /// The root is not a rank.
    #[error("root {root} does not exist: there are {ranks} ranks, numbered from 0")]
    Root {
        /// Requested root
        root: u32,
        /// Number of ranks
        ranks: u32,
    },
    /// The radix of a tree is too small.
    #[error("the radix of a k-nomial tree is at least 2, not {0}")]
    Radix(u32),
    /// The number of dimensions does not suit the pattern.
    #[error("{pattern} takes {expected} dimensions, not {found}")]
    Dimensions {
        /// Name of the pattern
        pattern: &'static str,
        /// Required number of dimensions
        expected: &'static str,
        /// Given number of dimensions
        found: usize,
    },
    /// The grid does not have the given number of ranks.
    #[error("a grid of {dims:?} is {product} ranks, not {ranks}")]
    Grid {
        /// Dimensions of the grid
        dims: Vec<u32>,
        /// Number of ranks of the grid
        product: u64,
        /// Number of ranks
        ranks: u32,
    },
    /// A number exceeds its limit.
    #[error("the {0} is too large: at most {1}")]
    TooLarge(&'static str, u64),
    /// The pattern exceeds the maximum number of operations.
    #[error("{pattern} with {ranks} ranks has {operations} operations; a schedule has at most {MAX_OPS}")]
    TooManyOperations {
        /// Name of the pattern
        pattern: &'static str,
        /// Number of ranks
        ranks: u32,
        /// Number of its operations, without calculations after receives
        operations: u128,
    },
    /// Too many operations or dependencies.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl Spec {
    /// Checks the pattern-independent parameters.
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

// SPDX-License-Identifier: Apache-2.0
//! Number of operations of a pattern, checked before generation.

use super::pattern::Pattern;
use super::spec::{Spec, SpecError};
use crate::op::MAX_OPS;

/// Refuses a pattern with too many operations for a schedule, before generating it.
pub fn check(pattern: Pattern, spec: &Spec, dims: &[u32]) -> Result<(), SpecError> {
    let operations = operations(pattern, spec, dims);
    match operations <= MAX_OPS as u128 {
        true => Ok(()),
        false => Err(SpecError::TooManyOperations { pattern: pattern.name(), ranks: spec.ranks, operations }),
    }
}

/// Returns the number of operations of a pattern, without the calculations after receives.
pub fn operations(pattern: Pattern, spec: &Spec, dims: &[u32]) -> u128 {
    let ranks = u128::from(spec.ranks);
    let others = ranks - 1;
    // Rounds of doubling distance, up to all ranks or to the largest power of two of them.
    let rounds = u128::from(spec.ranks.next_power_of_two().trailing_zeros());
    let (power, full_rounds) = (1 << spec.ranks.ilog2(), u128::from(spec.ranks.ilog2()));
    let segments = |bytes: u64| match spec.segment {
        0 => 1,
        segment => u128::from(bytes.div_ceil(segment).max(1)),
    };
    let steps = u128::from(spec.iterations);
    let messages = match pattern {
        Pattern::Bcast
        | Pattern::BcastKnomial
        | Pattern::Reduce
        | Pattern::Gather
        | Pattern::Scatter
        | Pattern::GatherBinomial
        | Pattern::ScatterBinomial => others,
        Pattern::BcastPipeline => others * segments(spec.bytes),
        Pattern::BcastDoubleTree => {
            let half = spec.bytes.div_ceil(2);
            others * (segments(half) + segments(spec.bytes - half))
        }
        Pattern::BcastScatterAllgather => others + ranks * others,
        // An entry and a test for each rank but the root; a put for each of them, or handlers that do the same.
        Pattern::BcastTriggered => return 3 * others,
        Pattern::BcastSpin => return 2 * others + rounds,
        Pattern::AllreduceRing => 2 * ranks * others,
        Pattern::AllreduceRecursiveDoubling => power * full_rounds + 2 * (ranks - power),
        Pattern::AllreduceRabenseifner => 2 * power * full_rounds + 2 * (ranks - power),
        Pattern::Dissemination | Pattern::AllgatherBruck => ranks * rounds,
        Pattern::Alltoall | Pattern::AlltoallPairwise | Pattern::AllgatherRing | Pattern::ReduceScatterRing => {
            ranks * others
        }
        Pattern::Scan => ranks * rounds - ((1 << rounds) - 1),
        Pattern::Halo => {
            let pairs: u128 = dims.iter().map(|&side| neighbours(ranks, side, spec.periodic)).sum();
            let calcs = ranks * if spec.overlap_ns > 0 { 2 } else { 1 };
            return steps * (2 * 2 * pairs + calcs);
        }
        Pattern::Sweep => {
            let pairs: u128 = dims.iter().map(|&side| neighbours(ranks, side, false)).sum();
            return steps * (2 * pairs + ranks);
        }
    };
    2 * messages
}

/// Returns the number of pairs of neighbours in one dimension of a grid.
fn neighbours(ranks: u128, side: u32, periodic: bool) -> u128 {
    let side = u128::from(side);
    match periodic && side > 1 {
        true => ranks,
        false => ranks / side * (side - 1),
    }
}

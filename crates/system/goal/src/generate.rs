// SPDX-License-Identifier: Apache-2.0
//! Generates schedules of collective operations and of common application patterns.

mod exchange;
mod grid;
mod offload;
mod pattern;
mod rank;
mod size;
mod spec;
mod tree;

use crate::build::{BuildError, Builder};
use crate::schedule::Schedule;
pub use pattern::Pattern;
pub use rank::{Place, Sizes};
pub use spec::{Spec, SpecError};

use rank::Rank;

/// Generates the schedule of a pattern.
///
/// # Errors
/// See [`SpecError`].
pub fn generate(pattern: Pattern, spec: &Spec) -> Result<Schedule, SpecError> {
    let (of_rank, dims) = prepare(pattern, spec)?;
    size::check(pattern, spec, &dims)?;
    let mut builder = Builder::new(spec.ranks);
    for me in 0..spec.ranks {
        let place = Place { me, members: &|rank| rank, space: 0, sizes: None, after: &[] };
        builder.begin_rank(me);
        of_rank(&mut Rank { builder: &mut builder, spec, dims: &dims, place, waited_for: None })?;
        builder.end_rank()?;
    }
    Ok(builder.finish()?)
}

/// Adds one rank's part of a pattern to the current rank of a schedule under construction. Appends the operations
/// without dependents in this part to `ends`.
///
/// # Errors
/// See [`SpecError`].
pub fn emit(
    pattern: Pattern,
    spec: &Spec,
    place: Place,
    builder: &mut Builder,
    ends: &mut Vec<u32>,
) -> Result<(), SpecError> {
    let (of_rank, dims) = prepare(pattern, spec)?;
    let first = builder.len();
    let mut rank = Rank { builder, spec, dims: &dims, place, waited_for: Some((first, Vec::new())) };
    of_rank(&mut rank)?;
    let (_, waited_for) = rank.waited_for.unwrap_or_default();
    ends.extend((first..builder.len()).filter(|op| !waited_for.get((op - first) as usize).unwrap_or(&false)));
    Ok(())
}

type OfRank = fn(&mut Rank) -> Result<(), BuildError>;

fn prepare(pattern: Pattern, spec: &Spec) -> Result<(OfRank, Vec<u32>), SpecError> {
    spec.check()?;
    let of_rank: OfRank = match pattern {
        Pattern::Bcast => |rank| tree::broadcast(rank, 2),
        Pattern::BcastKnomial if spec.radix < 2 => return Err(SpecError::Radix(spec.radix)),
        Pattern::BcastKnomial => |rank| tree::broadcast(rank, rank.spec.radix),
        Pattern::BcastPipeline => tree::pipeline,
        Pattern::BcastDoubleTree => tree::double_tree,
        Pattern::BcastScatterAllgather => tree::scatter_allgather,
        Pattern::BcastTriggered => offload::triggered,
        Pattern::BcastSpin => offload::spin,
        Pattern::Reduce => tree::reduce,
        Pattern::AllreduceRing => exchange::ring,
        Pattern::AllreduceRecursiveDoubling => exchange::recursive_doubling,
        Pattern::AllreduceRabenseifner => exchange::rabenseifner,
        Pattern::Dissemination => exchange::dissemination,
        Pattern::Alltoall => exchange::all_to_all,
        Pattern::AlltoallPairwise => exchange::pairwise,
        Pattern::Gather => tree::gather,
        Pattern::Scatter => tree::scatter,
        Pattern::GatherBinomial => tree::gather_binomial,
        Pattern::ScatterBinomial => tree::scatter_binomial,
        Pattern::AllgatherRing => exchange::allgather_ring,
        Pattern::AllgatherBruck => exchange::allgather_bruck,
        Pattern::ReduceScatterRing => exchange::reduce_scatter_ring,
        Pattern::Scan => exchange::scan,
        Pattern::Halo => grid::halo,
        Pattern::Sweep => grid::sweep,
    };
    let dims = match pattern {
        Pattern::Halo => grid::dims(pattern.name(), spec, 1..=4, "1 to 4")?,
        Pattern::Sweep => grid::dims(pattern.name(), spec, 2..=2, "2")?,
        _ => Vec::new(),
    };
    Ok((of_rank, dims))
}

#[cfg(test)]
mod tests;

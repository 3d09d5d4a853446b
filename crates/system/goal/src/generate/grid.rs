// SPDX-License-Identifier: Apache-2.0
//! Patterns on grids: halo exchange and sweep.

use std::ops::RangeInclusive;

use super::rank::Rank;
use super::spec::{Spec, SpecError};
use crate::build::BuildError;

/// Returns the given grid, or a two-dimensional one as square as possible.
pub fn dims(
    pattern: &'static str,
    spec: &Spec,
    allowed: RangeInclusive<usize>,
    expected: &'static str,
) -> Result<Vec<u32>, SpecError> {
    if spec.dims.is_empty() {
        let root = spec.ranks.isqrt();
        let first = (1..=root).rev().find(|side| spec.ranks.is_multiple_of(*side)).unwrap_or(1);
        return Ok(vec![spec.ranks / first, first]);
    }
    if !allowed.contains(&spec.dims.len()) {
        return Err(SpecError::Dimensions { pattern, expected, found: spec.dims.len() });
    }
    let product = spec.dims.iter().fold(1u64, |product, &side| product.saturating_mul(side.into()));
    if product != u64::from(spec.ranks) {
        return Err(SpecError::Grid { dims: spec.dims.clone(), product, ranks: spec.ranks });
    }
    Ok(spec.dims.clone())
}

/// Returns the neighbour of a rank in one dimension. Consecutive ranks are neighbours in the last dimension.
fn neighbour(rank: &Rank, dimension: usize, up: bool, periodic: bool) -> Option<u32> {
    let stride: u32 = rank.dims[dimension + 1..].iter().product();
    let side = rank.dims[dimension];
    let place = rank.me() / stride % side;
    let next = match (up, place) {
        (true, place) if place + 1 < side => place + 1,
        (false, 1..) => place - 1,
        _ if periodic && side > 1 => side - 1 - place,
        _ => return None,
    };
    Some(rank.me() - place * stride + next * stride)
}

/// Halo exchange: in each step a rank exchanges messages with all neighbours and meanwhile computes the part that does
/// not need them; then it computes the rest. Early receives are posted for the next step as soon as the messages
/// arrive, before the computation.
pub fn halo(rank: &mut Rank) -> Result<(), BuildError> {
    let (bytes, periodic, early) = (rank.spec.bytes, rank.spec.periodic, rank.spec.early_receives);
    let mut last = None;
    let mut receives = Vec::new();
    for _ in 0..rank.spec.iterations {
        let (mut step, earlier) = (Vec::new(), std::mem::take(&mut receives));
        for dimension in 0..rank.dims.len() {
            for up in [false, true] {
                if let Some(other) = neighbour(rank, dimension, up, periodic) {
                    let tag = |up| rank.spec.tag + 2 * dimension as u32 + u32::from(up);
                    let (out, into) = (tag(up), tag(!up));
                    step.push(rank.tagged_send(other, bytes, out, last.as_slice())?);
                    let received = rank.tagged_recv(other, bytes, into)?;
                    step.push(rank.after(received, if early { &earlier } else { last.as_slice() }));
                    receives.push(received);
                }
            }
        }
        if rank.spec.overlap_ns > 0 {
            step.push(rank.calc_for(rank.spec.overlap_ns, last.as_slice())?);
        }
        step.extend(last);
        last = Some(rank.calc(&step)?);
    }
    Ok(())
}

/// Wavefronts as in Sweep3D: a rank computes after the messages of two neighbours arrive, and then sends to the two
/// opposite ones. Each step starts from the next of the four corners.
pub fn sweep(rank: &mut Rank) -> Result<(), BuildError> {
    let bytes = rank.spec.bytes;
    let mut last = None;
    for step in 0..rank.spec.iterations {
        let ups = [step % 4 < 2, step % 2 == 0];
        let mut needed = Vec::from_iter(last);
        for (dimension, up) in ups.into_iter().enumerate() {
            if let Some(from) = neighbour(rank, dimension, !up, false) {
                needed.push(rank.tagged_recv(from, bytes, rank.spec.tag)?);
            }
        }
        let calc = rank.calc(&needed)?;
        for (dimension, up) in ups.into_iter().enumerate() {
            if let Some(to) = neighbour(rank, dimension, up, false) {
                rank.send(to, bytes, &[calc])?;
            }
        }
        last = Some(calc);
    }
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0
//! Collectives by exchanges: all-reduce, all-gather, reduce-scatter, all-to-all, barrier and scan.

use super::rank::Rank;
use crate::build::BuildError;

/// Returns the powers of two below `ranks`.
fn distances(ranks: u32) -> impl DoubleEndedIterator<Item = u32> {
    (0..ranks.next_power_of_two().trailing_zeros()).map(|bit| 1 << bit)
}

pub fn dissemination(rank: &mut Rank) -> Result<(), BuildError> {
    let (bytes, mut last) = (rank.spec.bytes, None);
    for distance in distances(rank.ranks()) {
        rank.send(rank.ahead(distance), bytes, last.as_slice())?;
        last = Some(rank.recv(rank.behind(distance), bytes)?);
    }
    Ok(())
}

pub fn scan(rank: &mut Rank) -> Result<(), BuildError> {
    let (bytes, me, mut last) = (rank.spec.bytes, rank.me(), None);
    for distance in distances(rank.ranks()) {
        if me + distance < rank.ranks() {
            rank.send(me + distance, bytes, last.as_slice())?;
        }
        if me >= distance {
            let from = rank.recv(me - distance, bytes)?;
            // The received part is added to the local one.
            rank.after(from, last.as_slice());
            last = Some(from);
        }
    }
    Ok(())
}

pub fn ring(rank: &mut Rank) -> Result<(), BuildError> {
    let (ranks, me, mut last) = (rank.ranks(), rank.me(), None);
    // Each block travels around the ring once for the reduction, and once more for the distribution.
    for round in 0..2 * (ranks - 1) {
        let block =
            |behind: u32| ((u64::from(me) + 2 * u64::from(ranks) - u64::from(behind)) % u64::from(ranks)) as u32;
        let (out, into) = (block(round), block(round + 1));
        rank.send(rank.ahead(1), rank.blocks(out, out + 1), last.as_slice())?;
        last = Some(rank.recv(rank.behind(1), rank.blocks(into, into + 1))?);
    }
    Ok(())
}

/// The largest power of two of ranks takes part. Each other rank first sends its vector to a participating neighbour,
/// and finally receives the result from it (Thakur, Rabenseifner, Gropp 2005).
struct Fold {
    /// Index of the rank among the participating ranks.
    number: Option<u32>,
    extra: u32,
    last: Option<u32>,
}

impl Fold {
    fn begin(rank: &mut Rank) -> Result<Fold, BuildError> {
        let (bytes, me) = (rank.spec.bytes, rank.me());
        let extra = rank.ranks() - Fold::power(rank);
        let mut fold = Fold { number: None, extra, last: None };
        if me >= 2 * extra {
            fold.number = Some(me - extra);
        } else if me % 2 == 1 {
            fold.number = Some(me / 2);
            fold.last = Some(rank.recv(me - 1, bytes)?);
        } else {
            rank.send(me + 1, bytes, &[])?;
        }
        Ok(fold)
    }

    /// Returns the number of participating ranks.
    fn power(rank: &Rank) -> u32 {
        1 << rank.ranks().ilog2()
    }

    /// Returns the rank with index `number` among the participating ones.
    fn rank(&self, number: u32) -> u32 {
        if number < self.extra { 2 * number + 1 } else { number + self.extra }
    }

    fn end(self, rank: &mut Rank) -> Result<(), BuildError> {
        let (bytes, me) = (rank.spec.bytes, rank.me());
        if self.number.is_none() {
            rank.tagged_recv(me + 1, bytes, rank.spec.tag)?;
        } else if me < 2 * self.extra {
            rank.send(me - 1, bytes, self.last.as_slice())?;
        }
        Ok(())
    }
}

pub fn recursive_doubling(rank: &mut Rank) -> Result<(), BuildError> {
    let bytes = rank.spec.bytes;
    let mut fold = Fold::begin(rank)?;
    if let Some(number) = fold.number {
        for distance in distances(Fold::power(rank)) {
            let partner = fold.rank(number ^ distance);
            rank.send(partner, bytes, fold.last.as_slice())?;
            fold.last = Some(rank.recv(partner, bytes)?);
        }
    }
    fold.end(rank)
}

/// All-reduce: exchanges and reduces halves of the vector at doubling distance until each rank has one block, then
/// gathers the blocks in the opposite order.
pub fn rabenseifner(rank: &mut Rank) -> Result<(), BuildError> {
    let (power, total) = (Fold::power(rank), rank.spec.bytes);
    let mut fold = Fold::begin(rank)?;
    let start = |block: u32| (u128::from(total) * u128::from(block) / u128::from(power)) as u64;
    let bytes = |from: u32, blocks: u32| start(from + blocks) - start(from);
    if let Some(number) = fold.number {
        // `first` and `blocks` are the range that this rank still reduces.
        let (mut first, mut blocks, mut steps) = (0, power, Vec::new());
        for distance in distances(power) {
            blocks /= 2;
            let keeps_upper = number & distance != 0;
            let (kept, given) = if keeps_upper { (first + blocks, first) } else { (first, first + blocks) };
            let partner = fold.rank(number ^ distance);
            rank.send(partner, bytes(given, blocks), fold.last.as_slice())?;
            fold.last = Some(rank.recv(partner, bytes(kept, blocks))?);
            steps.push((partner, given, kept, blocks));
            first = kept;
        }
        for (partner, given, kept, blocks) in steps.into_iter().rev() {
            rank.send(partner, bytes(kept, blocks), fold.last.as_slice())?;
            // The result returns complete, so no computation is needed.
            fold.last = Some(rank.tagged_recv(partner, bytes(given, blocks), rank.spec.tag)?);
        }
    }
    fold.end(rank)
}

/// Returns true if a pair exchanges a message. With individual sizes, size 0 means no message.
fn has_message(rank: &Rank, bytes: u64) -> bool {
    bytes > 0 || rank.place.sizes.is_none()
}

pub fn all_to_all(rank: &mut Rank) -> Result<(), BuildError> {
    for distance in 1..rank.ranks() {
        let (to, from) = (rank.ahead(distance), rank.behind(distance));
        let (out, into) = (rank.bytes_to(to), rank.bytes_from(from));
        if has_message(rank, out) {
            rank.send(to, out, &[])?;
        }
        if has_message(rank, into) {
            rank.recv(from, into)?;
        }
    }
    Ok(())
}

pub fn pairwise(rank: &mut Rank) -> Result<(), BuildError> {
    let is_power = rank.ranks().is_power_of_two();
    let mut last = Vec::new();
    for distance in 1..rank.ranks() {
        let (to, from) = match is_power {
            true => (rank.me() ^ distance, rank.me() ^ distance),
            false => (rank.ahead(distance), rank.behind(distance)),
        };
        let (out, into) = (rank.bytes_to(to), rank.bytes_from(from));
        let mut round = Vec::new();
        if has_message(rank, out) {
            round.push(rank.send(to, out, &last)?);
        }
        if has_message(rank, into) {
            let recv = rank.tagged_recv(from, into, rank.spec.tag)?;
            rank.after(recv, &last);
            round.push(rank.computed(recv)?);
        }
        if !round.is_empty() {
            last = round;
        }
    }
    Ok(())
}

/// All-gather: each rank forwards to one neighbour the data received from the other.
pub fn allgather_ring(rank: &mut Rank) -> Result<(), BuildError> {
    let mut last = None;
    for round in 0..rank.ranks() - 1 {
        let (out, into) = (rank.bytes_from(rank.behind(round)), rank.bytes_from(rank.behind(round + 1)));
        rank.send(rank.ahead(1), out, last.as_slice())?;
        last = Some(rank.recv(rank.behind(1), into)?);
    }
    Ok(())
}

/// All-gather of Bruck et al. (1997): each rank sends all of its data to the rank at a distance that doubles each
/// round.
pub fn allgather_bruck(rank: &mut Rank) -> Result<(), BuildError> {
    let mut last = None;
    for distance in distances(rank.ranks()) {
        let bytes = rank.parts(distance.min(rank.ranks() - distance));
        rank.send(rank.behind(distance), bytes, last.as_slice())?;
        last = Some(rank.recv(rank.ahead(distance), bytes)?);
    }
    Ok(())
}

/// Reduce-scatter: each block travels around the ring once and ends, reduced, at the rank of its number.
pub fn reduce_scatter_ring(rank: &mut Rank) -> Result<(), BuildError> {
    let mut last = None;
    let bytes = |rank: &Rank, block: u32| match rank.place.sizes {
        Some(_) => rank.bytes_from(block),
        None => rank.blocks(block, block + 1),
    };
    for round in 1..rank.ranks() {
        let (out, into) = (bytes(rank, rank.behind(round)), bytes(rank, rank.behind(round + 1)));
        rank.send(rank.ahead(1), out, last.as_slice())?;
        last = Some(rank.recv(rank.behind(1), into)?);
    }
    Ok(())
}

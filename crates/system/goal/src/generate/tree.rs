// SPDX-License-Identifier: Apache-2.0
//! Collectives on trees: broadcast, reduce, gather and scatter.

use super::rank::Rank;
use crate::build::BuildError;

/// Returns parent and children of a rank in a k-nomial tree, nearest children first. In each round every rank with the
/// message sends it to `radix - 1` others, at distances that grow by the factor `radix` from round to round.
fn k_nomial(relative: u32, ranks: u32, radix: u32) -> (Option<u32>, Vec<u32>) {
    let (relative, ranks, radix) = (u64::from(relative), u64::from(ranks), u64::from(radix));
    let mut distance = 1;
    while distance <= relative {
        distance *= radix;
    }
    let parent = (relative > 0).then(|| (relative % (distance / radix)) as u32);
    let mut children = Vec::new();
    while distance < ranks {
        let round = (1..radix).map(|step| relative + step * distance).take_while(|&child| child < ranks);
        children.extend(round.map(|child| child as u32));
        distance *= radix;
    }
    (parent, children)
}

pub fn broadcast(rank: &mut Rank, radix: u32) -> Result<(), BuildError> {
    let bytes = rank.spec.bytes;
    let (parent, children) = k_nomial(rank.relative(), rank.ranks(), radix);
    let from = parent.map(|parent| rank.recv(rank.absolute(parent), bytes)).transpose()?;
    for child in children {
        rank.send(rank.absolute(child), bytes, from.as_slice())?;
    }
    Ok(())
}

pub fn reduce(rank: &mut Rank) -> Result<(), BuildError> {
    let bytes = rank.spec.bytes;
    let (parent, children) = k_nomial(rank.relative(), rank.ranks(), 2);
    let mut parts = Vec::new();
    for child in children {
        parts.push(rank.recv(rank.absolute(child), bytes)?);
    }
    if let Some(parent) = parent {
        rank.send(rank.absolute(parent), bytes, &parts)?;
    }
    Ok(())
}

pub fn pipeline(rank: &mut Rank) -> Result<(), BuildError> {
    let relative = rank.relative();
    let next = (relative + 1 < rank.ranks()).then(|| rank.ahead(1));
    for bytes in rank.segments(rank.spec.bytes) {
        let from = (relative > 0).then(|| rank.recv(rank.behind(1), bytes)).transpose()?;
        if let Some(next) = next {
            rank.send(next, bytes, from.as_slice())?;
        }
    }
    Ok(())
}

/// Returns parent (0 is the root of the broadcast) and children of `node` in the in-order binary tree of the nodes 1 to
/// `count`.
fn in_order(node: u32, count: u32) -> (u32, impl Iterator<Item = u32>) {
    let bit = 1 << node.trailing_zeros();
    let without = node ^ bit;
    let above = without | bit << 1;
    let parent = if above <= count { above } else { without };
    let left = (bit > 1).then(|| node - bit / 2);
    let steps = std::iter::successors(Some(bit / 2), |step| Some(step / 2)).take_while(|&step| step > 0);
    let right = steps.map(|step| node + step).find(|&child| child <= count);
    // `above` can be a non-ancestor only for the top node.
    let top = 1 << count.ilog2();
    (if node == top { 0 } else { parent }, left.into_iter().chain(right))
}

/// Double tree of Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast (2009). The inner nodes of
/// one tree are leaves of the other, except one, so that every rank sends about as much as it receives.
pub fn double_tree(rank: &mut Rank) -> Result<(), BuildError> {
    let (relative, count) = (rank.relative(), rank.ranks() - 1);
    if count == 0 {
        return Ok(());
    }
    // The second tree is the first with its nodes mirrored or, for an odd number of nodes, shifted, so that leaves
    // become inner nodes.
    let is_even = count.is_multiple_of(2);
    let to_second = |node: u32| if is_even { count + 1 - node } else { node % count + 1 };
    let from_second = |node: u32| if is_even { count + 1 - node } else { (node + count - 2) % count + 1 };
    let half = rank.spec.bytes.div_ceil(2);
    let halves = [rank.segments(half).collect::<Vec<_>>(), rank.segments(rank.spec.bytes - half).collect()];
    let top = 1 << count.ilog2();
    let [(first_parent, first), (second_parent, second)] = if relative == 0 {
        [(None, vec![top]), (None, vec![from_second(top)])]
    } else {
        let (parent, children) = in_order(relative, count);
        let first = (Some(parent), children.collect());
        let (parent, children) = in_order(to_second(relative), count);
        let parent = if parent == 0 { 0 } else { from_second(parent) };
        [first, (Some(parent), children.map(from_second).collect())]
    };
    let trees = [(first_parent, first), (second_parent, second)];
    let segments = halves[0].len().max(halves[1].len());
    for segment in 0..segments {
        for (((parent, children), half), tag) in trees.iter().zip(&halves).zip(rank.spec.tag..) {
            let Some(&bytes) = half.get(segment) else { continue };
            let mut from = None;
            if let Some(parent) = *parent {
                let receive = rank.tagged_recv(rank.absolute(parent), bytes, tag)?;
                from = Some(rank.computed(receive)?);
            }
            for &child in children {
                rank.tagged_send(rank.absolute(child), bytes, tag, from.as_slice())?;
            }
        }
    }
    Ok(())
}

/// Scatters blocks down a binomial tree to their ranks, and then passes them around a ring.
pub fn scatter_allgather(rank: &mut Rank) -> Result<(), BuildError> {
    let (relative, ranks) = (rank.relative(), rank.ranks());
    let reach = if relative == 0 { ranks.next_power_of_two() } else { 1 << relative.trailing_zeros() };
    let mut last = None;
    if relative > 0 {
        let end = ranks.min(relative + reach);
        last = Some(rank.recv(rank.absolute(relative - reach), rank.blocks(relative, end))?);
    }
    let scattered = last;
    let mut distance = reach / 2;
    while distance > 0 {
        let child = relative + distance;
        if child < ranks {
            let end = ranks.min(child + distance);
            rank.send(rank.absolute(child), rank.blocks(child, end), scattered.as_slice())?;
        }
        distance /= 2;
    }
    for round in 0..ranks - 1 {
        let block = |behind: u32| (relative + ranks - behind) % ranks;
        let (out, into) = (block(round), block(round + 1));
        rank.send(rank.ahead(1), rank.blocks(out, out + 1), last.as_slice())?;
        last = Some(rank.recv(rank.behind(1), rank.blocks(into, into + 1))?);
    }
    Ok(())
}

pub fn gather(rank: &mut Rank) -> Result<(), BuildError> {
    if rank.relative() > 0 {
        return rank.send(rank.spec.root, rank.spec.bytes, &[]).map(drop);
    }
    (1..rank.ranks()).try_for_each(|other| {
        let other = rank.absolute(other);
        rank.recv(other, rank.bytes_from(other)).map(drop)
    })
}

pub fn scatter(rank: &mut Rank) -> Result<(), BuildError> {
    if rank.relative() > 0 {
        return rank.recv(rank.spec.root, rank.spec.bytes).map(drop);
    }
    (1..rank.ranks()).try_for_each(|other| {
        let other = rank.absolute(other);
        rank.send(other, rank.bytes_to(other), &[]).map(drop)
    })
}

/// Returns the parent of a rank in a binomial tree whose subtrees are consecutive ranks, the size of the rank's
/// subtree, and its children with the sizes of their subtrees, largest first.
fn halving(relative: u32, ranks: u32) -> (Option<u32>, u32, Vec<(u32, u32)>) {
    let reach = if relative == 0 { ranks.next_power_of_two() } else { 1 << relative.trailing_zeros() };
    let steps = std::iter::successors(Some(reach / 2), |step| Some(step / 2)).take_while(|&step| step > 0);
    let children = steps.map(|step| (relative + step, step)).filter(|&(child, _)| child < ranks);
    let children = children.map(|(child, step)| (child, step.min(ranks - child))).collect();
    ((relative > 0).then(|| relative - reach), reach.min(ranks - relative), children)
}

pub fn gather_binomial(rank: &mut Rank) -> Result<(), BuildError> {
    let (parent, size, children) = halving(rank.relative(), rank.ranks());
    let mut parts = Vec::new();
    for (child, size) in children.into_iter().rev() {
        parts.push(rank.recv(rank.absolute(child), rank.parts(size))?);
    }
    if let Some(parent) = parent {
        rank.send(rank.absolute(parent), rank.parts(size), &parts)?;
    }
    Ok(())
}

pub fn scatter_binomial(rank: &mut Rank) -> Result<(), BuildError> {
    let (parent, size, children) = halving(rank.relative(), rank.ranks());
    let from = parent.map(|parent| rank.recv(rank.absolute(parent), rank.parts(size))).transpose()?;
    for (child, size) in children {
        rank.send(rank.absolute(child), rank.parts(size), from.as_slice())?;
    }
    Ok(())
}

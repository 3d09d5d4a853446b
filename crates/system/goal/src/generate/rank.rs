// SPDX-License-Identifier: Apache-2.0
//! Construction of one rank's part of a pattern.

use super::spec::Spec;
use crate::build::{BuildError, Builder};
use crate::op::Action;
use crate::schedule::Wait;

/// Position of one rank's part of a pattern in a schedule under construction.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Index of the rank in the pattern
    pub me: u32,
    /// Maps a pattern index to a rank of the schedule
    pub members: &'a dyn Fn(u32) -> u32,
    /// Matching space of the messages
    pub space: u16,
    /// Individual sizes, for the linear, pairwise and ring patterns without a root, and for the root of linear gather
    /// and scatter
    pub sizes: Option<Sizes<'a>>,
    /// Operations on which the first operations of the pattern depend
    pub after: &'a [(u32, Wait)],
}

/// Sizes by index in the pattern, repeated cyclically.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// Bytes for each rank
    pub send: &'a [u64],
    /// Bytes from each rank
    pub recv: &'a [u64],
}

/// One rank of a pattern under construction.
pub(super) struct Rank<'a> {
    pub builder: &'a mut Builder,
    pub spec: &'a Spec,
    pub dims: &'a [u32],
    pub place: Place<'a>,
    /// First operation of the part, and for each operation from there on, true if another depends on it; `None` if not
    /// needed.
    pub waited_for: Option<(u32, Vec<bool>)>,
}

impl Rank<'_> {
    /// Returns this rank's index.
    pub fn me(&self) -> u32 {
        self.place.me
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.spec.ranks
    }

    /// Returns this rank's index relative to the root, which is 0.
    pub fn relative(&self) -> u32 {
        (u64::from(self.me()) + u64::from(self.ranks()) - u64::from(self.spec.root)) as u32 % self.ranks()
    }

    /// Returns the rank with this relative index.
    pub fn absolute(&self, relative: u32) -> u32 {
        ((u64::from(relative) + u64::from(self.spec.root)) % u64::from(self.ranks())) as u32
    }

    /// Returns the rank `ahead` places after this one in a ring.
    pub fn ahead(&self, ahead: u32) -> u32 {
        ((u64::from(self.me()) + u64::from(ahead)) % u64::from(self.ranks())) as u32
    }

    /// Returns the rank `behind` places before this one in a ring.
    pub fn behind(&self, behind: u32) -> u32 {
        self.ahead(self.ranks() - behind % self.ranks())
    }

    /// Makes `op` depend on the operations of `after`, and returns it.
    pub fn after(&mut self, op: u32, after: &[u32]) -> u32 {
        for &earlier in after {
            self.builder.depend(op, earlier, Wait::Done);
            if let Some((first, waited_for)) = &mut self.waited_for {
                let index = (earlier - *first) as usize;
                waited_for.resize(waited_for.len().max(index + 1), false);
                waited_for[index] = true;
            }
        }
        op
    }

    /// Adds an operation that depends on those of `after`, or without any, on those before the pattern.
    pub fn add(&mut self, action: Action, after: &[u32]) -> Result<u32, BuildError> {
        let op = self.builder.add(action, 0, 0)?;
        if after.is_empty() {
            for &(earlier, wait) in self.place.after {
                self.builder.depend(op, earlier, wait);
            }
        }
        Ok(self.after(op, after))
    }

    pub fn tagged_send(&mut self, to: u32, bytes: u64, tag: u32, after: &[u32]) -> Result<u32, BuildError> {
        let to = (self.place.members)(to);
        self.add(Action::Send { bytes, to, tag, space: self.place.space }, after)
    }

    pub fn tagged_recv(&mut self, from: u32, bytes: u64, tag: u32) -> Result<u32, BuildError> {
        let from = Some((self.place.members)(from));
        self.add(Action::Recv { bytes, from, tag: Some(tag), space: self.place.space }, &[])
    }

    pub fn send(&mut self, to: u32, bytes: u64, after: &[u32]) -> Result<u32, BuildError> {
        self.tagged_send(to, bytes, self.spec.tag, after)
    }

    /// Adds a receive and its computation. Returns the last operation.
    pub fn recv(&mut self, from: u32, bytes: u64) -> Result<u32, BuildError> {
        let op = self.tagged_recv(from, bytes, self.spec.tag)?;
        self.computed(op)
    }

    /// Adds the computation after a receive, if any. Returns the last operation.
    pub fn computed(&mut self, receive: u32) -> Result<u32, BuildError> {
        if self.spec.calc_ns == 0 { Ok(receive) } else { self.calc(&[receive]) }
    }

    pub fn calc(&mut self, after: &[u32]) -> Result<u32, BuildError> {
        self.calc_for(self.spec.calc_ns, after)
    }

    pub fn calc_for(&mut self, ns: u64, after: &[u32]) -> Result<u32, BuildError> {
        self.add(Action::Calc(ns), after)
    }

    /// Returns the total bytes of the parts of `count` ranks.
    pub fn parts(&self, count: u32) -> u64 {
        self.spec.bytes.saturating_mul(count.into())
    }

    /// Returns the bytes to rank `other`, if each rank gets an individual part.
    pub fn bytes_to(&self, other: u32) -> u64 {
        self.place.sizes.map_or(self.spec.bytes, |sizes| sizes.send[other as usize % sizes.send.len()])
    }

    /// Returns the bytes from rank `other`, if each rank sends an individual part.
    pub fn bytes_from(&self, other: u32) -> u64 {
        self.place.sizes.map_or(self.spec.bytes, |sizes| sizes.recv[other as usize % sizes.recv.len()])
    }

    /// Returns the bytes of the blocks `from..to` of the vector, which is split into one block for each rank, as evenly
    /// as possible.
    pub fn blocks(&self, from: u32, to: u32) -> u64 {
        let start = |block: u32| {
            let start = u128::from(self.spec.bytes) * u128::from(block) / u128::from(self.ranks());
            start as u64
        };
        start(to) - start(from)
    }

    /// Returns the sizes of the segments of `bytes`; at least one segment.
    pub fn segments(&self, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let segment = if self.spec.segment == 0 { bytes.max(1) } else { self.spec.segment };
        (0..bytes.div_ceil(segment).max(1)).map(move |index| segment.min(bytes - index * segment))
    }
}

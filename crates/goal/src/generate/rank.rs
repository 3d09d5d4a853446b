use super::spec::Spec;
use crate::build::{BuildError, Builder};
use crate::op::Action;
use crate::schedule::Wait;

/// Where the operations of one rank's part in a pattern go: into a rank of a schedule in the making.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The rank's number in the pattern
    pub me: u32,
    /// The schedule's rank of each number
    pub members: &'a dyn Fn(u32) -> u32,
    /// Matching space of the messages
    pub space: u16,
    /// Sizes that differ from rank to rank: of the linear, pairwise and ring patterns without a root, and of the root of
    /// linear gather and scatter
    pub sizes: Option<Sizes<'a>>,
    /// What the pattern's first operations wait for
    pub after: &'a [(u32, Wait)],
}

/// Bytes by number in the pattern; counted through again from the start where there are fewer than ranks.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// For each rank
    pub send: &'a [u64],
    /// From each rank
    pub recv: &'a [u64],
}

/// A rank in the making.
pub(super) struct Rank<'a> {
    pub builder: &'a mut Builder,
    pub spec: &'a Spec,
    pub dims: &'a [u32],
    pub place: Place<'a>,
    /// The first operation, and for each from there on whether another waits for it; if anyone wants to know.
    pub waited_for: Option<(u32, Vec<bool>)>,
}

impl Rank<'_> {
    /// This rank's number.
    pub fn me(&self) -> u32 {
        self.place.me
    }

    pub fn ranks(&self) -> u32 {
        self.spec.ranks
    }

    /// This rank's number when the root is 0 and the others follow it.
    pub fn relative(&self) -> u32 {
        (u64::from(self.me()) + u64::from(self.ranks()) - u64::from(self.spec.root)) as u32 % self.ranks()
    }

    /// The rank of a relative number.
    pub fn absolute(&self, relative: u32) -> u32 {
        ((u64::from(relative) + u64::from(self.spec.root)) % u64::from(self.ranks())) as u32
    }

    /// The rank `ahead` after this one, in a ring.
    pub fn ahead(&self, ahead: u32) -> u32 {
        ((u64::from(self.me()) + u64::from(ahead)) % u64::from(self.ranks())) as u32
    }

    /// The rank `behind` before this one, in a ring.
    pub fn behind(&self, behind: u32) -> u32 {
        self.ahead(self.ranks() - behind % self.ranks())
    }

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

    /// Adds an operation, that of the pattern's start if it is after none.
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

    /// Receives and computes. Returns what stands for both.
    pub fn recv(&mut self, from: u32, bytes: u64) -> Result<u32, BuildError> {
        let op = self.tagged_recv(from, bytes, self.spec.tag)?;
        self.computed(op)
    }

    /// The computation after a receive, if there is any.
    pub fn computed(&mut self, receive: u32) -> Result<u32, BuildError> {
        if self.spec.calc_ns == 0 { Ok(receive) } else { self.calc(&[receive]) }
    }

    pub fn calc(&mut self, after: &[u32]) -> Result<u32, BuildError> {
        self.calc_for(self.spec.calc_ns, after)
    }

    pub fn calc_for(&mut self, ns: u64, after: &[u32]) -> Result<u32, BuildError> {
        self.add(Action::Calc(ns), after)
    }

    /// Bytes of so many ranks' parts.
    pub fn parts(&self, count: u32) -> u64 {
        self.spec.bytes.saturating_mul(count.into())
    }

    /// Bytes for another rank, where each gets its own.
    pub fn bytes_to(&self, other: u32) -> u64 {
        self.place.sizes.map_or(self.spec.bytes, |sizes| sizes.send[other as usize % sizes.send.len()])
    }

    /// Bytes from another rank, where each gives its own.
    pub fn bytes_from(&self, other: u32) -> u64 {
        self.place.sizes.map_or(self.spec.bytes, |sizes| sizes.recv[other as usize % sizes.recv.len()])
    }

    /// Bytes of the blocks `from..to` when the vector is cut into one block a rank, as even as can be.
    pub fn blocks(&self, from: u32, to: u32) -> u64 {
        let start = |block: u32| {
            let start = u128::from(self.spec.bytes) * u128::from(block) / u128::from(self.ranks());
            start as u64
        };
        start(to) - start(from)
    }

    /// Sizes of the segments of `bytes`; one at least.
    pub fn segments(&self, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let segment = if self.spec.segment == 0 { bytes.max(1) } else { self.spec.segment };
        (0..bytes.div_ceil(segment).max(1)).map(move |index| segment.min(bytes - index * segment))
    }
}

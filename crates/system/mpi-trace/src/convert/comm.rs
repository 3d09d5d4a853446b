// SPDX-License-Identifier: Apache-2.0
//! One rank's view of a communicator, and the ranks of a collective.

use std::ops::Range;

use goal::MAX_SPACE;

use crate::event::{Group, Root, index_of};

/// Number of communicators with separate matching spaces. Each has two: for messages and for collectives.
pub const SPACES: u32 = (MAX_SPACE as u32).div_ceil(2);

/// One rank's view of a communicator.
pub struct Comm<'a> {
    pub group: &'a Group,
    pub number: u32,
    pub me: u32,
    /// True if it contains all ranks of the trace.
    pub is_whole: bool,
    pub collectives: u32,
}

impl Comm<'_> {
    /// Returns the matching space of its messages.
    #[expect(clippy::cast_possible_truncation, reason = "a space is at most MAX_SPACE, a u16")]
    pub fn space(&self) -> u16 {
        (self.number % SPACES * 2) as u16
    }

    /// Returns the matching space and the tag of the next collective.
    pub fn next_collective(&mut self) -> (u16, u32) {
        // Some patterns use two tags.
        let tag = self.collectives % (1 << 30) * 2;
        self.collectives += 1;
        (self.space() + 1, tag)
    }
}

/// Ranks of a collective.
pub struct CollectiveGroup {
    pub members: Vec<u32>,
    pub me: u32,
    pub root: u32,
    /// Members on the other side of an intercommunicator, to which sizes refer.
    remote: Option<Range<usize>>,
}

impl CollectiveGroup {
    /// Returns the ranks in pattern order, from the view of `rank`.
    pub fn new(comm: &Comm, rank: u32, root: Root) -> CollectiveGroup {
        let local = &comm.group.local;
        let Some(remote) = &comm.group.remote else {
            let root = if let Root::At(root) = root { root } else { 0 };
            return CollectiveGroup { members: local.clone(), me: comm.me, root, remote: None };
        };
        let chain = |first: &[u32], then: &[u32]| [first, then].concat();
        let (members, me, remote) = match root {
            Root::Here => (chain(&[rank], remote), 0, 1..1 + remote.len()),
            Root::At(root) => (chain(&[remote[root as usize]], local), comm.me + 1, 0..1),
            // Both sides put the lexicographically smaller group first.
            Root::Nowhere | Root::Beside if local < remote => {
                (chain(local, remote), comm.me, local.len()..local.len() + remote.len())
            }
            Root::Nowhere | Root::Beside => (chain(remote, local), comm.me + index_of(remote.len()), 0..remote.len()),
        };
        CollectiveGroup { members, me, root: 0, remote: Some(remote) }
    }

    /// Returns the sizes for all members. In an intercommunicator, members of the same side exchange nothing.
    pub fn expand(&self, sizes: &[u64]) -> Vec<u64> {
        let Some(remote) = self.remote.clone().filter(|_| !sizes.is_empty()) else { return sizes.to_vec() };
        let mut all = vec![0; self.members.len()];
        for (size, &given) in all[remote].iter_mut().zip(sizes) {
            *size = given;
        }
        all
    }
}

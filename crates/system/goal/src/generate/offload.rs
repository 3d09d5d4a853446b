// SPDX-License-Identifier: Apache-2.0
//! Broadcasts forwarded by the cards, along the binomial tree of `sdk/handlers/broadcast`.

use super::rank::Rank;
use crate::build::BuildError;
use crate::nic::{Append, List, NicOp, Verb};
use crate::op::Action;

/// Handlers of `sdk/handlers/broadcast`.
const HANDLERS: [&str; 3] = ["broadcast_header", "broadcast_payload", "broadcast_completion"];
/// Size of the handlers' state, `struct broadcast`, in bytes.
const STATE: u64 = 40;
/// `max_packet` of the state without a segment size: the paper's MTU.
const PACKET: u64 = 4096;

/// Returns the distances of a rank's children, farthest first: the powers of two below the lowest set bit of its
/// number.
fn distances(relative: u32, ranks: u32) -> impl Iterator<Item = u32> {
    let powers = if relative == 0 { u32::BITS } else { relative.trailing_zeros() };
    (0..powers).rev().map(|power| 1 << power).filter(move |distance| *distance < ranks - relative)
}

/// Broadcast: each rank prepares the puts that its message triggers.
pub fn triggered(rank: &mut Rank) -> Result<(), BuildError> {
    if rank.relative() > 0 {
        rank.expect(None, [None; 4])?;
    }
    rank.pass_on(true)
}

/// Broadcast: the handlers of each rank forward its message.
pub fn spin(rank: &mut Rank) -> Result<(), BuildError> {
    let relative = rank.relative();
    if relative == 0 {
        return rank.pass_on(false);
    }
    let pair = |low: u32, high: u32| Some(u64::from(low) | u64::from(high) << 32);
    let reach = distances(relative, rank.ranks()).next().unwrap_or(0);
    let packet = if rank.spec.segment == 0 { PACKET } else { rank.spec.segment };
    let state = [
        Some(rank.spec.tag.into()),
        pair(relative, rank.ranks()),
        pair(reach, rank.spec.root),
        Some(packet & u64::from(u32::MAX)),
    ];
    rank.expect(Some(HANDLERS), state)?;
    rank.await_message()
}

impl Rank<'_> {
    fn card(
        &mut self,
        verb: Verb,
        when: Option<(u32, u64)>,
        args: [Option<u64>; 4],
        ct: Option<u32>,
    ) -> Result<u32, BuildError> {
        let op = NicOp { verb, when, args, counter: ct, tag: self.spec.tag };
        self.add(Action::Nic(&op), &[])
    }

    /// Adds an entry for the message; counter 0 counts it.
    fn expect(&mut self, handlers: Option<[&str; 3]>, args: [Option<u64>; 4]) -> Result<(), BuildError> {
        let append = Append {
            bytes: self.spec.bytes,
            list: List::Priority,
            handlers: handlers.map_or([const { None }; 3], |names| names.map(|name| Some(name.into()))),
            memory: handlers.map(|_| STATE),
            allowed: None,
            use_once: false,
        };
        self.card(Verb::Append(append), None, args, Some(0)).map(|_| ())
    }

    /// Adds the puts to the children. Those of the root start at once; those of other ranks are triggered by the
    /// message. If `waits` is true, the rank then waits for the message.
    fn pass_on(&mut self, waits: bool) -> Result<(), BuildError> {
        let (relative, bytes) = (self.relative(), self.spec.bytes);
        let when = (relative > 0).then_some((0, 1));
        for distance in distances(relative, self.ranks()) {
            let to = (self.place.members)(self.absolute(relative + distance));
            self.card(Verb::Put { bytes, to }, when, [None; 4], None)?;
        }
        if waits && relative > 0 { self.await_message() } else { Ok(()) }
    }

    fn await_message(&mut self) -> Result<(), BuildError> {
        let op =
            NicOp { verb: Verb::Test { counter: 0, reaches: 1 }, when: None, args: [None; 4], counter: None, tag: 0 };
        let test = self.add(Action::Nic(&op), &[])?;
        self.computed(test).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_parent() {
        for ranks in 1..=40 {
            let mut parents = vec![0; ranks as usize];
            for rank in 0..ranks {
                distances(rank, ranks).for_each(|distance| parents[(rank + distance) as usize] += 1);
            }
            assert_eq!(parents[0], 0);
            assert!(parents[1..].iter().all(|count| *count == 1), "{ranks}: {parents:?}");
        }
        assert_eq!(distances(4, 8).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(distances(0, 6).collect::<Vec<_>>(), [4, 2, 1]);
    }
}

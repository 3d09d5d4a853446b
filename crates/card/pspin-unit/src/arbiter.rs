// SPDX-License-Identifier: Apache-2.0
//! Round-robin arbiters and service orders.

/// Round-robin arbiter for up to 64 requesters: the latest granted has the lowest priority.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    next: u8,
}

impl RoundRobin {
    /// Returns the requester in the set `requests` that the arbiter would grant.
    #[inline]
    pub fn choice(&self, requests: u64) -> Option<u32> {
        let from_next = requests & (u64::MAX << self.next);
        let set = if from_next != 0 { from_next } else { requests };
        (set != 0).then(|| set.trailing_zeros())
    }

    /// Commits the grant to `requester`.
    #[inline]
    pub fn grant(&mut self, requester: u32) {
        self.next = (requester as u8 + 1) % 64;
    }
}

/// Service order of up to 64 requesters when several can be granted in one cycle. It starts at the first requester that
/// lost a cycle, so no other overtakes it and none starves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    first: u8,
}

impl Order {
    /// Iterates over the set `requests` in this order.
    #[inline]
    pub fn of(self, requests: u64) -> impl Iterator<Item = usize> {
        let from_first = requests & (u64::MAX << self.first);
        members(from_first).chain(members(requests ^ from_first))
    }

    /// Starts the order at `lost`, the first requester that was not granted.
    #[inline]
    pub fn begin_at(&mut self, lost: usize) {
        self.first = lost as u8 % 64;
    }
}

/// Iterates over the members of a set in ascending order.
#[inline]
fn members(set: u64) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let member = (left != 0).then(|| left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        member
    })
}

/// Returns the first member of a set at or after `from`, wrapping around.
#[inline]
pub fn first_from(set: &[u64], from: u32) -> Option<u32> {
    let (word, bit) = ((from / 64) as usize, from % 64);
    let in_word = |(index, word): (usize, &u64)| (*word != 0).then(|| index as u32 * 64 + word.trailing_zeros());
    let first = set.get(word).map(|set| set & (u64::MAX << bit)).filter(|set| *set != 0);
    if let Some(first) = first {
        return Some(word as u32 * 64 + first.trailing_zeros());
    }
    let behind = set.iter().enumerate().skip(word + 1).find_map(in_word);
    behind.or_else(|| set.iter().enumerate().take(word + 1).find_map(in_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_a_turn() {
        let mut arbiter = RoundRobin::default();
        let mut granted = Vec::new();
        for _ in 0..6 {
            let choice = arbiter.choice(0b1000_0101).unwrap();
            arbiter.grant(choice);
            granted.push(choice);
        }
        assert_eq!(granted, [0, 2, 7, 0, 2, 7]);
        assert_eq!(arbiter.choice(0), None);
        arbiter.grant(63);
        assert_eq!(arbiter.choice(1 << 63 | 2), Some(1));
    }

    #[test]
    fn an_order_begins_at_the_first_that_got_nothing() {
        let mut order = Order::default();
        assert_eq!(order.of(0b1010_0101).collect::<Vec<_>>(), [0, 2, 5, 7]);
        order.begin_at(5);
        assert_eq!(order.of(0b1010_0101).collect::<Vec<_>>(), [5, 7, 0, 2]);
        order.begin_at(63);
        assert_eq!(order.of(1 << 63 | 0b11).collect::<Vec<_>>(), [63, 0, 1]);
        assert_eq!(order.of(0).next(), None);
    }

    #[test]
    fn the_first_of_a_set_wraps_around() {
        let set = [0b100, 0, 1 << 63];
        assert_eq!(first_from(&set, 0), Some(2));
        assert_eq!(first_from(&set, 2), Some(2));
        assert_eq!(first_from(&set, 3), Some(191));
        assert_eq!(first_from(&set, 191), Some(191));
        assert_eq!(first_from(&[0b11, 0], 64), Some(0));
        assert_eq!(first_from(&[0, 0], 5), None);
        assert_eq!(first_from(&[1 << 3], 60), Some(3));
    }
}

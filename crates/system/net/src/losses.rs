// SPDX-License-Identifier: Apache-2.0
//! Injected packet losses: on paths between nodes, or on links of a fabric.

use std::collections::HashMap;

use sim::random::{self, mix};

/// Location and rate of packet losses.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Location.
    pub place: LossyPlace,
    /// Probability of a packet's loss there, from 0 to 1.
    pub rate: f64,
}

/// Location of packet losses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossyPlace {
    /// On the path from one node to another; `None` stands for any node. Each packet is tested once, in every network
    /// model.
    Path {
        /// Sending node.
        from: Option<u32>,
        /// Receiving node.
        to: Option<u32>,
    },
    /// On a link of a fabric, between the vertices with these names.
    Link {
        /// Name of the start vertex.
        from: String,
        /// Name of the end vertex.
        to: String,
    },
}

/// Fate of the packets at one location: a random sequence that depends only on the seed and the location.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    state: u64,
    rate: f64,
    pub lost: u64,
}

impl Fate {
    pub fn new(seed: u64, loss: usize, place: u64, rate: f64) -> Fate {
        Fate { state: mix(mix(seed ^ mix(loss as u64 + 1)) ^ place), rate, lost: 0 }
    }

    /// Returns true if the next packet is lost.
    pub fn loses(&mut self) -> bool {
        let is_lost = random::fraction(&mut self.state) < self.rate;
        self.lost += u64::from(is_lost);
        is_lost
    }
}

/// Losses on paths.
#[derive(Debug, Default)]
pub(crate) struct PathLosses {
    seed: u64,
    /// Number, location and rate of each loss.
    losses: Vec<(usize, [Option<u32>; 2], f64)>,
    /// Fate of packets by loss and path.
    fates: HashMap<(usize, u32, u32), Fate>,
}

impl PathLosses {
    /// Selects the path losses of a list.
    pub fn new(losses: &[Loss], seed: u64) -> PathLosses {
        let on_path = |(number, loss): (usize, &Loss)| match loss.place {
            LossyPlace::Path { from, to } => Some((number, [from, to], loss.rate)),
            LossyPlace::Link { .. } => None,
        };
        let losses = losses.iter().enumerate().filter_map(on_path).collect();
        PathLosses { seed, losses, fates: HashMap::new() }
    }

    /// Returns true if the next packet from `from` to `to` is lost.
    pub fn loses(&mut self, from: u32, to: u32) -> bool {
        if self.losses.is_empty() || from == to {
            return false;
        }
        let mut is_lost = false;
        for &(number, [first, last], rate) in &self.losses {
            if first.is_some_and(|node| node != from) || last.is_some_and(|node| node != to) {
                continue;
            }
            let place = u64::from(from) << 32 | u64::from(to);
            let fate =
                self.fates.entry((number, from, to)).or_insert_with(|| Fate::new(self.seed, number, place, rate));
            is_lost |= fate.loses();
        }
        is_lost
    }

    /// Returns the number of packets lost by each loss, with the number of the loss.
    pub fn lost(&self) -> impl Iterator<Item = (usize, u64)> {
        self.fates.iter().map(|((number, ..), fate)| (*number, fate.lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(from: Option<u32>, to: Option<u32>, rate: f64) -> Loss {
        Loss { place: LossyPlace::Path { from, to }, rate }
    }

    fn lost(losses: &mut PathLosses, from: u32, to: u32, packets: u32) -> Vec<bool> {
        (0..packets).map(|_| losses.loses(from, to)).collect()
    }

    #[test]
    fn packets_are_lost_where_the_user_says_and_as_often() {
        let losses = [path(Some(0), Some(1), 1.0), path(Some(2), None, 0.25), path(None, Some(3), 0.0)];
        let mut losses = PathLosses::new(&losses, 1);
        assert_eq!(lost(&mut losses, 0, 1, 3), [true; 3]);
        assert_eq!(lost(&mut losses, 1, 0, 3), [false; 3]);
        assert_eq!(lost(&mut losses, 0, 3, 3), [false; 3]);
        assert_eq!(lost(&mut losses, 2, 2, 9), [false; 9], "a node reaches itself without the network");
        let count = lost(&mut losses, 2, 5, 100_000).iter().filter(|lost| **lost).count();
        assert!((24_500..25_500).contains(&count), "{count}");
        let mut counts: Vec<_> = losses.lost().filter(|(_, lost)| *lost > 0).collect();
        counts.sort_unstable();
        assert_eq!(counts, [(0, 3), (1, count as u64)]);
    }

    #[test]
    fn the_fate_of_a_packet_depends_on_its_path_and_the_seed_only() {
        let all = [path(None, None, 0.5)];
        let (mut alone, mut mixed) = (PathLosses::new(&all, 7), PathLosses::new(&all, 7));
        let first = lost(&mut alone, 0, 1, 64);
        let among_others: Vec<bool> = (0..64).map(|_| (mixed.loses(1, 0), mixed.loses(0, 1)).1).collect();
        assert_eq!(first, among_others);
        assert_ne!(first, lost(&mut PathLosses::new(&all, 8), 0, 1, 64));
        assert_ne!(first, lost(&mut PathLosses::new(&all, 7), 1, 0, 64));
    }
}

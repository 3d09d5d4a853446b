// SPDX-License-Identifier: Apache-2.0
//! Banks of an L1 memory, and the arbitration between accesses in a cycle (§III-C, §IV-B2).

use machine::Pspin;

use crate::cycle::Cycle;

/// Banks of one L1. Wide accesses (DMA beats, NIC beats, accesses of other clusters) are announced for a cycle; the
/// cluster's HPUs take the remaining banks when the cycle comes.
pub struct Banks {
    /// Log2 of a bank's width in bytes.
    shift: u32,
    /// Number of banks, a power of two, and number of 64-bit words of a set of banks.
    count: u32,
    words: usize,
    dma_wins: bool,
    atomic_cycles: u64,
    /// Words of the sets of banks for the next cycles, indexed modulo a power of two.
    slots: Vec<Slot>,
    /// Mask of the cycle index: the number of cycles minus one.
    ahead: usize,
    /// Banks that an HPU has lost to a beat, and at which it has priority.
    owed: Vec<u64>,
    /// Bank that a word of another cluster used last, and the last cycle of that use.
    remote: Option<(u32, Cycle)>,
    /// Latest cycle in which an HPU waited for that bank since then, if no HPU has been granted it.
    waits: Cycle,
}

/// A wide port of an L1, for one beat per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// Read port.
    Read,
    /// Write port.
    Write,
}

/// Up to 64 banks in a cycle.
#[derive(Clone, Copy)]
struct Slot {
    /// Cycle that the slot describes.
    cycle: Cycle,
    /// Banks that are taken, and those among them that an HPU with priority may take instead.
    taken: u64,
    announced: u64,
    /// Set for wide ports that are taken; used only in the slot of the first 64 banks.
    wide: [bool; 2],
}

impl Slot {
    #[inline]
    fn new(cycle: Cycle) -> Slot {
        Slot { cycle, taken: 0, announced: 0, wide: [false; 2] }
    }

    #[inline]
    fn announce(&mut self, banks: u64) {
        self.taken |= banks;
        self.announced |= banks;
    }
}

impl Banks {
    /// Creates the banks of a unit's L1.
    pub fn new(unit: &Pspin) -> Banks {
        let ahead = unit.dma.latency_cycles.max(unit.pe.remote_l1_cycles) + unit.l1.atomic_bank_cycles + 2;
        let depth = ahead.next_power_of_two() as usize;
        let words = unit.l1.banks.div_ceil(64) as usize;
        Banks {
            shift: (unit.l1.bank_bits / 8).trailing_zeros(),
            count: unit.l1.banks,
            words,
            dma_wins: unit.l1.dma_wins,
            atomic_cycles: u64::from(unit.l1.atomic_bank_cycles),
            slots: vec![Slot::new(Cycle::NEVER); depth * words],
            ahead: depth - 1,
            owed: vec![0; words],
            remote: None,
            waits: Cycle::NEVER,
        }
    }

    /// Returns the slot of a cycle, clearing it on first use.
    #[inline]
    fn slot(&mut self, cycle: Cycle, word: usize) -> &mut Slot {
        let slot = &mut self.slots[(cycle.0 as usize & self.ahead) * self.words + word];
        if slot.cycle != cycle {
            *slot = Slot::new(cycle);
        }
        slot
    }

    /// Iterates over the non-empty words of the set of banks that a range touches, with their indices.
    #[inline]
    fn banks(&self, offset: u32, bytes: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let count = self.count;
        let first = offset >> self.shift;
        let banks = (((offset + bytes.max(1) - 1) >> self.shift) - first + 1).min(count);
        let first = first & (count - 1);
        // The range may wrap: from the first bank to the end, then from bank 0 on.
        let behind = banks.min(count - first);
        let pieces = [(first, behind), (0, banks - behind)];
        pieces.into_iter().flat_map(|(start, banks)| words(start, banks))
    }

    /// Returns true if the banks of a range are free in a cycle.
    pub fn are_free(&mut self, cycle: Cycle, offset: u32, bytes: u32) -> bool {
        self.banks(offset, bytes).all(|(word, bits)| self.slot(cycle, word).taken & bits == 0)
    }

    /// Announces an access from outside to a range in a cycle.
    #[inline]
    pub fn announce(&mut self, cycle: Cycle, offset: u32, bytes: u32) {
        // With 64 banks, the set is one word: the range's length in low bits, rotated by the first bank.
        if self.count == 64 {
            let first = offset >> self.shift;
            let banks = ((offset + bytes.max(1) - 1) >> self.shift) - first + 1;
            return self.slot(cycle, 0).announce((u64::MAX >> (64 - banks.min(64))).rotate_left(first % 64));
        }
        for (word, bits) in self.banks(offset, bytes) {
            self.slot(cycle, word).announce(bits);
        }
    }

    /// Announces a beat of a DMA engine in a cycle.
    #[inline]
    pub fn announce_beat(&mut self, cycle: Cycle, offset: u32, bytes: u32, port: Wide) {
        self.slot(cycle, 0).wide[port as usize] = true;
        self.announce(cycle, offset, bytes);
    }

    /// Announces a beat of the NIC or host in a cycle. Returns false if the port or a bank is taken.
    #[inline]
    pub fn take_beat(&mut self, cycle: Cycle, offset: u32, bytes: u32, port: Wide) -> bool {
        let is_free = !self.slot(cycle, 0).wide[port as usize] && self.are_free(cycle, offset, bytes);
        if is_free {
            self.announce_beat(cycle, offset, bytes, port);
        }
        is_free
    }

    /// Requests the bank of another cluster's word for cycle `now`, before this cluster's HPUs. Returns false on a
    /// conflict. To prevent starvation of the HPUs, also returns false if the previous remote word used this bank and
    /// an HPU has waited for it since.
    pub fn take_remote(&mut self, now: Cycle, offset: u32, bytes: u32, is_atomic: bool) -> bool {
        let bank = offset >> self.shift & (self.count - 1);
        let last = if is_atomic { now + (self.atomic_cycles - 1) } else { now };
        let cycles = (now.0..=last.0).map(Cycle);
        let is_owed = self.waits + 1_u64 == now;
        if is_owed && self.remote.is_some_and(|(used, _)| used == bank)
            || !cycles.clone().all(|at| self.are_free(at, offset, bytes))
        {
            return false;
        }
        cycles.for_each(|at| self.announce(at, offset, bytes));
        (self.remote, self.waits) = (Some((bank, last)), Cycle::NEVER);
        true
    }

    /// Requests the bank of an HPU's word for cycle `now`. Returns false on a conflict.
    #[inline]
    pub fn take(&mut self, now: Cycle, offset: u32, is_atomic: bool) -> bool {
        let bank = offset >> self.shift & (self.count - 1);
        let is_granted = self.take_bank(now, bank, is_atomic);
        if let Some((used, until)) = self.remote
            && used == bank
        {
            let is_owed = until >= now || self.waits != Cycle::NEVER && self.waits + 1_u64 >= now;
            self.waits = if is_owed && !is_granted { now } else { Cycle::NEVER };
        }
        is_granted
    }

    #[inline]
    fn take_bank(&mut self, now: Cycle, bank: u32, is_atomic: bool) -> bool {
        let (word, bit) = ((bank / 64) as usize, 1_u64 << (bank % 64));
        // An atomic operation begins only if it can end.
        if is_atomic && (1..self.atomic_cycles).any(|later| self.slot(now + later, word).taken & bit != 0) {
            return false;
        }
        let slot = self.slot(now, word);
        let is_taken = slot.taken & bit != 0;
        slot.taken |= bit;
        if is_taken && !self.take_from_beat(now, word, bit) {
            return false;
        }
        if is_atomic {
            for later in 1..self.atomic_cycles {
                self.slot(now + later, word).taken |= bit;
            }
        }
        true
    }

    /// Requests a taken bank for an HPU. Returns true if a beat holds the bank and the HPU has priority.
    fn take_from_beat(&mut self, now: Cycle, word: usize, bit: u64) -> bool {
        let is_next = self.owed[word] & bit != 0;
        if self.dma_wins || self.slot(now, word).announced & bit == 0 || !is_next {
            self.owed[word] |= bit;
            return false;
        }
        // The beat's word is written in the next cycle.
        self.owed[word] &= !bit;
        self.slot(now, word).announced &= !bit;
        self.slot(now + 1_u64, word).taken |= bit;
        true
    }
}

/// Iterates over the words of the set of `banks` banks from `start` on.
fn words(start: u32, banks: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = start + banks;
    (start / 64..end.div_ceil(64)).filter(move |_| banks > 0).map(move |word| {
        let (from, to) = (start.max(word * 64) % 64, end.min(word * 64 + 64) - word * 64);
        (word as usize, (u64::MAX << from) & (u64::MAX >> (64 - to)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::Order;
    use crate::testing::unit;

    /// An L1 has one wide read port and one wide write port; their beats conflict if they use the same banks.
    #[test]
    fn wide_ports_take_a_beat_a_cycle() {
        let mut banks = Banks::new(&unit());
        banks.announce_beat(Cycle(5), 0, 64, Wide::Read);
        assert!(!banks.take_beat(Cycle(5), 64, 64, Wide::Read), "the port");
        assert!(!banks.take_beat(Cycle(5), 256, 64, Wide::Write), "the banks");
        assert!(banks.take_beat(Cycle(5), 64, 64, Wide::Write) && banks.take_beat(Cycle(6), 0, 64, Wide::Read));
        assert!(!banks.take(Cycle(5), 68, false) && banks.take(Cycle(5), 128, false));
        assert!(!banks.take(Cycle(5), 4, true), "an atomic operation begins when it can end");
    }

    /// Words of other clusters and HPUs alternate at a contended bank.
    #[test]
    fn a_word_of_another_cluster_gives_way_to_an_hpu_that_has_waited() {
        let mut banks = Banks::new(&unit());
        // An atomic operation holds the bank in 5 and 6; the HPU waits, and gets it in 7, for two cycles.
        assert!(banks.take_remote(Cycle(5), 0, 4, true) && !banks.take(Cycle(5), 256, true));
        assert!(!banks.take_remote(Cycle(6), 0, 4, true) && !banks.take(Cycle(6), 256, true));
        assert!(!banks.take_remote(Cycle(7), 0, 4, true) && banks.take(Cycle(7), 256, true));
        assert!(!banks.take_remote(Cycle(8), 0, 4, true), "the HPU's operation");
        assert!(banks.take_remote(Cycle(9), 0, 4, true), "its turn again");
        // A beat stalls the HPU longer. A word for another bank passes, and then the HPU's priority is lost.
        banks.announce_beat(Cycle(11), 0, 64, Wide::Write);
        assert!(!banks.take(Cycle(10), 0, false) && !banks.take(Cycle(11), 0, false));
        assert!(!banks.take_remote(Cycle(12), 0, 4, false) && banks.take_remote(Cycle(12), 64, 4, false));
        assert!(banks.take_remote(Cycle(13), 0, 4, false));
        // An HPU that no longer waits, because it was killed, has no priority.
        assert!(!banks.take(Cycle(13), 0, false) && banks.take_remote(Cycle(15), 0, 4, false));
    }

    /// Simulates eight HPUs and other clusters that share banks. HPU 0 stores to bank 0 repeatedly. The HPUs in `swaps`
    /// and the other clusters swap its word in each cycle in which they can, and those in `loads` load a word of bank 1
    /// whenever bank 0 is held. Returns the maximum number of cycles that a store took, and the number of swaps of
    /// other clusters.
    fn compete(cycles: u64, swaps: u64, loads: u64) -> (u64, u32) {
        let mut banks = Banks::new(&unit());
        let mut order = Order::default();
        let (mut remote, mut waited, mut longest) = (0, 0_u64, 0_u64);
        // First cycle in which an HPU requests again: an atomic operation takes two cycles.
        let mut next = [Cycle(0); 8];
        for cycle in (0..cycles).map(Cycle) {
            remote += u32::from(banks.take_remote(cycle, 0, 4, true));
            waited += 1;
            let is_held = !banks.are_free(cycle, 0, 4);
            let asks = (0..8).filter(|hpu| next[*hpu] <= cycle).fold(0, |asks, hpu| asks | 1 << hpu);
            let mut first_lost = None;
            for hpu in order.of(asks & (1 | swaps | if is_held { loads } else { 0 })) {
                let (swaps, loads) = (swaps >> hpu & 1 != 0, loads >> hpu & 1 != 0);
                if !banks.take(cycle, if loads { 4 } else { 0 }, swaps) {
                    first_lost = first_lost.or(Some(hpu));
                } else if swaps {
                    next[hpu] = cycle + 2_u64;
                } else if hpu == 0 {
                    (longest, waited) = (longest.max(waited), 0);
                }
            }
            if let Some(lost) = first_lost {
                order.begin_at(lost);
            }
        }
        (longest.max(waited), remote)
    }

    /// Seven HPUs and the other clusters swap a word repeatedly; one more HPU stores to its bank.
    #[test]
    fn nobody_starves_at_a_bank() {
        // Each turn takes two cycles for an HPU, or one for the store, and two for another cluster before it.
        const TURNS: u64 = 8 * 4 - 1;
        assert_eq!(compete(64 * TURNS, 0b1111_1110, 0), (TURNS, 64 * 8));
    }

    /// HPUs that use another bank in each cycle do not overtake the HPU that waits.
    #[test]
    fn nobody_starves_while_others_use_another_bank() {
        // The store waits for one swap of another cluster, and for each swapping HPU, for its swap and one more of
        // another cluster.
        for (swaps, loads) in
            [(0b10, 0b100), (0b100, 0b10), (0b1_0000, 0b1110_1110), (0b1000_0000, 0b10), (0b1000_1000, 0b0111_0110)]
        {
            let (longest, remote) = compete(10_000, swaps, loads);
            assert!(longest < 4 * u64::from(swaps.count_ones() + 1), "{longest} cycles with {swaps:b} and {loads:b}");
            assert!(remote > 1_000, "{remote} with {swaps:b} and {loads:b}");
        }
    }
}

//! The banks of an L1 memory: who gets which in a cycle (§III-C, §IV-B2).

use machine::Pspin;

use crate::cycle::Cycle;

/// The banks of one L1. Wide accesses (beats of a DMA, of the NIC, accesses of other clusters) are announced for a cycle; the
/// HPUs of the cluster take what is left when the cycle comes.
pub struct Banks {
    /// The logarithm of a bank's width in bytes.
    shift: u32,
    /// The number of banks, a power of two, and that of words of a set of them.
    count: u32,
    words: usize,
    dma_wins: bool,
    atomic_cycles: u64,
    /// For each of the next cycles (modulo a power of two), the words of the sets of banks.
    slots: Vec<Slot>,
    /// One less than the number of cycles.
    ahead: usize,
    /// The banks at which an HPU has lost against a beat and is next.
    owed: Vec<u64>,
    /// The bank that a word of another cluster has used last, and the last cycle in which it did.
    remote: Option<(u32, Cycle)>,
    /// The latest cycle in which an HPU has waited for that bank since then, and none has got it.
    waits: Cycle,
}

/// A wide port of an L1, for a beat a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// The port for reading.
    Read,
    /// The port for writing.
    Write,
}

/// Up to 64 banks in a cycle.
#[derive(Clone, Copy)]
struct Slot {
    /// The cycle for which it was used last.
    cycle: Cycle,
    /// The banks that are taken, and those of them that an HPU may take instead when it is its turn.
    taken: u64,
    announced: u64,
    /// Whether the wide ports are taken; the slot of the first banks has them.
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
    /// The banks of a unit's L1.
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

    /// The slot of a cycle, which is cleared when it is used for the first time.
    #[inline]
    fn slot(&mut self, cycle: Cycle, word: usize) -> &mut Slot {
        let slot = &mut self.slots[(cycle.0 as usize & self.ahead) * self.words + word];
        if slot.cycle != cycle {
            *slot = Slot::new(cycle);
        }
        slot
    }

    /// The words of the set of banks that a range touches, each with its number.
    #[inline]
    fn banks(&self, offset: u32, bytes: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let count = self.count;
        let first = offset >> self.shift;
        let banks = (((offset + bytes.max(1) - 1) >> self.shift) - first + 1).min(count);
        let first = first & (count - 1);
        // From the first bank to the last of all, and from bank 0 on.
        let behind = banks.min(count - first);
        let pieces = [(first, behind), (0, banks - behind)];
        pieces.into_iter().flat_map(|(start, banks)| words(start, banks))
    }

    /// Whether the banks of a range are free in a cycle.
    pub fn are_free(&mut self, cycle: Cycle, offset: u32, bytes: u32) -> bool {
        self.banks(offset, bytes).all(|(word, bits)| self.slot(cycle, word).taken & bits == 0)
    }

    /// Announces an access from outside to a range in a cycle.
    #[inline]
    pub fn announce(&mut self, cycle: Cycle, offset: u32, bytes: u32) {
        // A set of 64 banks is a word, and a range in it that word's lowest bits, turned by the first bank.
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

    /// Announces a beat of NIC or host in a cycle, if the port and the banks are free that it needs. Returns whether they are.
    #[inline]
    pub fn take_beat(&mut self, cycle: Cycle, offset: u32, bytes: u32, port: Wide) -> bool {
        let is_free = !self.slot(cycle, 0).wide[port as usize] && self.are_free(cycle, offset, bytes);
        if is_free {
            self.announce_beat(cycle, offset, bytes, port);
        }
        is_free
    }

    /// A word of another cluster wants its bank in this cycle, before the HPUs of this cluster. Returns whether it gets the bank: not
    /// when it is that of the word before it, and an HPU has waited for it meanwhile. Otherwise words of other clusters could take all
    /// cycles of a bank.
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

    /// An HPU of the cluster wants a word in this cycle. Returns whether it gets its bank.
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
        // An atomic operation begins when it can end.
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

    /// An HPU wants a bank that is taken. Returns whether it gets it because a beat has it, and it is the HPU's turn.
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

/// The set of `banks` banks from `start` on, word by word.
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

    /// An L1 has a wide port for reading and one for writing; beats of both use different banks.
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

    /// Words of other clusters and HPUs take turns at a bank that both want.
    #[test]
    fn a_word_of_another_cluster_gives_way_to_an_hpu_that_has_waited() {
        let mut banks = Banks::new(&unit());
        // An atomic operation has the bank in 5 and 6; the HPU waits, and gets it in 7, for two cycles.
        assert!(banks.take_remote(Cycle(5), 0, 4, true) && !banks.take(Cycle(5), 256, true));
        assert!(!banks.take_remote(Cycle(6), 0, 4, true) && !banks.take(Cycle(6), 256, true));
        assert!(!banks.take_remote(Cycle(7), 0, 4, true) && banks.take(Cycle(7), 256, true));
        assert!(!banks.take_remote(Cycle(8), 0, 4, true), "the HPU's operation");
        assert!(banks.take_remote(Cycle(9), 0, 4, true), "its turn again");
        // A beat keeps the HPU waiting for longer; a word for another bank goes ahead, and then the debt is forgotten.
        banks.announce_beat(Cycle(11), 0, 64, Wide::Write);
        assert!(!banks.take(Cycle(10), 0, false) && !banks.take(Cycle(11), 0, false));
        assert!(!banks.take_remote(Cycle(12), 0, 4, false) && banks.take_remote(Cycle(12), 64, 4, false));
        assert!(banks.take_remote(Cycle(13), 0, 4, false));
        // An HPU that waits no more, since it was killed, is owed nothing.
        assert!(!banks.take(Cycle(13), 0, false) && banks.take_remote(Cycle(15), 0, 4, false));
    }

    /// Lets eight HPUs and those of other clusters use banks. HPU 0 stores to bank 0 again and again; `swaps` are the others that swap
    /// its word in each cycle in which they can, and `loads` those that load a word of bank 1 whenever bank 0 is held. Returns for how
    /// long a store took at most, and how many words other clusters have swapped.
    fn compete(cycles: u64, swaps: u64, loads: u64) -> (u64, u32) {
        let mut banks = Banks::new(&unit());
        let mut order = Order::default();
        let (mut remote, mut waited, mut longest) = (0, 0_u64, 0_u64);
        // The cycle from which on an HPU asks again: an atomic operation is under way for two cycles.
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

    /// Seven HPUs and 24 of other clusters swap a word again and again; one more HPU stores to its bank.
    #[test]
    fn nobody_starves_at_a_bank() {
        // Each HPU has a turn of two cycles, but for the store, and before it one of another cluster, two cycles as well.
        const TURNS: u64 = 8 * 4 - 1;
        assert_eq!(compete(64 * TURNS, 0b1111_1110, 0), (TURNS, 64 * 8));
    }

    /// While a bank is held, HPUs use another one in each cycle: this is no turn before the HPU that waits.
    #[test]
    fn nobody_starves_while_others_use_another_bank() {
        // Before the store comes one swap of another cluster and one of an HPU, which takes another one of other clusters with it.
        for (swaps, loads) in
            [(0b10, 0b100), (0b100, 0b10), (0b1_0000, 0b1110_1110), (0b1000_0000, 0b10), (0b1000_1000, 0b0111_0110)]
        {
            let (longest, remote) = compete(10_000, swaps, loads);
            assert!(longest < 4 * u64::from(swaps.count_ones() + 1), "{longest} cycles with {swaps:b} and {loads:b}");
            assert!(remote > 1_000, "{remote} with {swaps:b} and {loads:b}");
        }
    }
}

//! The banks of an L1 memory: who gets which in a cycle (§III-C, §IV-B2).

use machine::Pspin;

use crate::pspin::cycle::Cycle;

/// The banks of one L1. Wide accesses (beats of a DMA, of the NIC, accesses of other clusters) are announced for a cycle; the
/// HPUs of the cluster take what is left when the cycle comes.
pub struct Banks {
    bank_bytes: u32,
    count: u32,
    dma_wins: bool,
    atomic_cycles: u64,
    /// For each of the next cycles (modulo the length): the cycle, the banks that are taken, and those of them that an HPU may
    /// take instead when it is its turn.
    cycles: Vec<Cycle>,
    taken: Vec<u64>,
    announced: Vec<u64>,
    words: usize,
    /// The banks at which an HPU has lost against a beat and is next.
    owed: Vec<u64>,
}

impl Banks {
    /// The banks of a unit's L1.
    pub fn new(unit: &Pspin) -> Banks {
        let ahead = unit.dma.latency_cycles.max(unit.pe.remote_l1_cycles) + unit.l1.atomic_bank_cycles + 2;
        let depth = ahead.next_power_of_two() as usize;
        let words = unit.l1.banks.div_ceil(64) as usize;
        Banks {
            bank_bytes: unit.l1.bank_bits / 8,
            count: unit.l1.banks,
            dma_wins: unit.l1.dma_wins,
            atomic_cycles: u64::from(unit.l1.atomic_bank_cycles),
            cycles: vec![Cycle::NEVER; depth],
            taken: vec![0; depth * words],
            announced: vec![0; depth * words],
            words,
            owed: vec![0; words],
        }
    }

    /// The place of a cycle, which is cleared when it is used for the first time.
    #[inline]
    fn at(&mut self, cycle: Cycle) -> usize {
        let index = cycle.0 as usize & (self.cycles.len() - 1);
        if self.cycles[index] != cycle {
            self.cycles[index] = cycle;
            // There are few words, and mostly one: a loop is faster than a call.
            for word in index * self.words..(index + 1) * self.words {
                self.taken[word] = 0;
                self.announced[word] = 0;
            }
        }
        index * self.words
    }

    /// The words of the set of banks that a range touches, each with its number.
    fn banks(&self, offset: u32, bytes: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let count = self.count;
        let first = offset / self.bank_bytes;
        let banks = ((offset + bytes.max(1) - 1) / self.bank_bytes - first + 1).min(count);
        let first = first % count;
        // From the first bank to the last of all, and from bank 0 on.
        let behind = banks.min(count - first);
        let pieces = [(first, behind), (0, banks - behind)];
        pieces.into_iter().flat_map(|(start, banks)| words(start, banks))
    }

    /// Whether the banks of a range are free in a cycle.
    #[inline]
    pub fn are_free(&mut self, cycle: Cycle, offset: u32, bytes: u32) -> bool {
        let at = self.at(cycle);
        self.banks(offset, bytes).all(|(word, bits)| self.taken[at + word] & bits == 0)
    }

    /// Announces an access from outside to a range in a cycle.
    #[inline]
    pub fn announce(&mut self, cycle: Cycle, offset: u32, bytes: u32) {
        let at = self.at(cycle);
        // A set of 64 banks is a word, and a range in it that word's lowest bits, turned by the first bank.
        if self.count == 64 {
            let first = offset / self.bank_bytes;
            let banks = (offset + bytes.max(1) - 1) / self.bank_bytes - first + 1;
            let bits = (u64::MAX >> (64 - banks.min(64))).rotate_left(first % 64);
            self.taken[at] |= bits;
            self.announced[at] |= bits;
            return;
        }
        for (word, bits) in self.banks(offset, bytes) {
            self.taken[at + word] |= bits;
            self.announced[at + word] |= bits;
        }
    }

    /// An HPU of the cluster wants a word in this cycle. Returns whether it gets its bank.
    #[inline]
    pub fn take(&mut self, now: Cycle, offset: u32, is_atomic: bool) -> bool {
        let bank = offset / self.bank_bytes % self.count;
        let (word, bit) = ((bank / 64) as usize, 1_u64 << (bank % 64));
        let at = self.at(now);
        if self.taken[at + word] & bit != 0 {
            let is_next = self.owed[word] & bit != 0;
            if self.dma_wins || self.announced[at + word] & bit == 0 || !is_next {
                self.owed[word] |= bit;
                return false;
            }
            // The beat's word is written in the next cycle.
            self.owed[word] &= !bit;
            self.announced[at + word] &= !bit;
            let next = self.at(now + 1_u64);
            self.taken[next + word] |= bit;
        }
        self.taken[at + word] |= bit;
        if is_atomic {
            for later in 1..self.atomic_cycles {
                let later = self.at(now + later);
                self.taken[later + word] |= bit;
            }
        }
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

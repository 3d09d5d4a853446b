// SPDX-License-Identifier: Apache-2.0
//! Architectural state of a thread.

use crate::memory::View;
use crate::watch::WaitDetector;

/// Number of 32-bit registers in the register file; a power of two, so that a masked index needs no bounds check.
const WORDS: usize = 64;
/// Number of 64-bit registers in the register file; a power of two.
const WIDE: usize = 32;

/// Architectural state of a thread, accessed by the semantic functions of an instruction set.
///
/// The register file has 64 registers of 32 bits and 32 registers of 64 bits. An instruction set may map its registers
/// freely, including flags and a register that discards writes.
#[derive(Clone, Debug)]
pub struct State {
    words: [u32; WORDS],
    wide: [u64; WIDE],
    /// Program counter. While an instruction runs, it is the address after the instruction's block, so that an
    /// instruction at the end of a block sees the address after itself; a jump replaces it.
    pub pc: u32,
    /// Address and value of the latest load-exclusive (RISC-V `lr.w`, ARM `ldrex`).
    pub reservation: Option<(u32, u64)>,
    /// Hardware loops, innermost first.
    pub loops: [HardwareLoop; 2],
    pub(crate) cycles: u64,
    pub(crate) instructions: u64,
    /// Data-dependent cycles of the current block: divisions, and accesses that cross words on the in-order core.
    pub(crate) data_cycles: u32,
    /// Data-dependent cycles of the next division that already passed while the previous access waited for its memory.
    pub(crate) divided: u32,
    /// Detector of waiting loops of plain loads.
    pub(crate) wait_detector: WaitDetector,
}

/// Registers of a hardware loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareLoop {
    /// Address of the first instruction of the body.
    pub start: u32,
    /// Address after the body.
    pub end: u32,
    /// Remaining iterations, including the current one; 0 if the loop is inactive.
    pub count: u32,
}

impl State {
    /// State with all registers zero. A constant is built in place, where the result of a function would be copied.
    pub(crate) const ZERO: State = State {
        words: [0; WORDS],
        wide: [0; WIDE],
        pc: 0,
        reservation: None,
        loops: [HardwareLoop { start: 0, end: 0, count: 0 }; 2],
        cycles: 0,
        instructions: 0,
        data_cycles: 0,
        divided: 0,
        wait_detector: WaitDetector::NEW,
    };

    /// Returns true if the state equals `other` except for pc and counters, as far as instructions can read it; no
    /// instruction reads the 32-bit register `sink`.
    pub(crate) fn has_registers_of(&self, other: &State, sink: Option<u8>) -> bool {
        let mut words = other.words;
        if let Some(sink) = sink {
            words[usize::from(sink) % WORDS] = self.word(sink);
        }
        (self.words, self.reservation, self.loops) == (words, other.reservation, other.loops) && self.wide == other.wide
    }

    /// Returns the value of 32-bit register `index`; the index wraps at 64.
    #[inline(always)]
    pub fn word(&self, index: u8) -> u32 {
        self.words[usize::from(index) % WORDS]
    }

    /// Writes 32-bit register `index`; the index wraps at 64.
    #[inline(always)]
    pub fn set_word(&mut self, index: u8, value: u32) {
        self.words[usize::from(index) % WORDS] = value;
    }

    /// Returns the value of 64-bit register `index`; the index wraps at 32.
    #[inline(always)]
    pub fn wide(&self, index: u8) -> u64 {
        self.wide[usize::from(index) % WIDE]
    }

    /// Writes 64-bit register `index`; the index wraps at 32.
    #[inline(always)]
    pub fn set_wide(&mut self, index: u8, bits: u64) {
        self.wide[usize::from(index) % WIDE] = bits;
    }

    /// Returns the cycles since the handler started. Exact only in an instruction whose class stands alone
    /// ([`Class::stands_alone`](crate::isa::Class::stands_alone)).
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Returns the number of completed instructions. Exact only in an instruction whose class stands alone
    /// ([`Class::stands_alone`](crate::isa::Class::stands_alone)).
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Loads `N` bytes. Returns `None` if the handler may not read them, or not yet because a handler waits for them;
    /// the instruction then ends with [`Flow::Load`](crate::isa::Flow::Load). Each word beyond the first costs the
    /// in-order core (CV32E40P) a cycle.
    #[inline(always)]
    pub fn load<const N: usize>(&mut self, memory: &mut View<'_>, address: u32) -> Option<[u8; N]> {
        match self.load_from::<true, N>(memory, address) {
            Some(bytes) => Some(bytes),
            None => self.load_from::<false, N>(memory, address),
        }
    }

    /// Stores `bytes`. Returns `None` if the handler may not write there, or not yet because a handler waits for them;
    /// the instruction then ends with [`Flow::Store`](crate::isa::Flow::Store). Each word beyond the first costs the
    /// in-order core (CV32E40P) a cycle.
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, memory: &mut View<'_>, address: u32, bytes: [u8; N]) -> Option<()> {
        match self.store_to::<true, N>(memory, address, bytes) {
            Some(()) => Some(()),
            None => self.store_to::<false, N>(memory, address, bytes),
        }
    }

    /// Loads `N` bytes like [`State::load`]. With `AT_HAND`, loads only from cached parts of windows, without side
    /// effects on failure; otherwise searches the windows, after `AT_HAND` failed.
    #[inline(always)]
    pub(crate) fn load_from<const AT_HAND: bool, const N: usize>(
        &mut self,
        memory: &mut View<'_>,
        address: u32,
    ) -> Option<[u8; N]> {
        if AT_HAND {
            let bytes = memory.load_at_hand(address)?;
            self.count_words(address, N);
            return Some(bytes);
        }
        self.count_words(address, N);
        memory.load_by_search(&mut self.wait_detector, address)
    }

    /// Stores `bytes` like [`State::store`]; for `AT_HAND` see [`State::load_from`].
    #[inline(always)]
    pub(crate) fn store_to<const AT_HAND: bool, const N: usize>(
        &mut self,
        memory: &mut View<'_>,
        address: u32,
        bytes: [u8; N],
    ) -> Option<()> {
        if AT_HAND {
            memory.store_at_hand(address, bytes)?;
            self.count_words(address, N);
            return Some(());
        }
        self.count_words(address, N);
        memory.store_by_search(&mut self.wait_detector, address, bytes)
    }

    /// Counts the words of an access beyond the first. Most accesses have none, so a branch is cheaper than an
    /// addition.
    #[inline(always)]
    fn count_words(&mut self, address: u32, len: usize) {
        let further = further_words(address, len);
        if further > 0 {
            self.data_cycles += further;
        }
    }

    /// Counts the accesses of an instruction beyond the first; each costs the in-order core a cycle.
    #[inline(always)]
    pub fn count_accesses(&mut self, further: u32) {
        self.data_cycles += further;
    }

    /// Counts the data-dependent cycles of a division. CV32E40P divides one bit per cycle, from the divisor's first
    /// significant bit: one cycle for each leading zero of an unsigned or positive divisor, or for each leading sign
    /// bit but one of a negative divisor.
    #[inline(always)]
    pub fn count_division(&mut self, divisor: u32, signed: bool) {
        let cycles = match signed && (divisor as i32) < 0 {
            true => divisor.leading_ones() - 1,
            false => divisor.leading_zeros(),
        };
        self.data_cycles += cycles.saturating_sub(std::mem::take(&mut self.divided));
    }
}

/// Returns the number of words of an access beyond the first.
#[inline(always)]
pub(crate) fn further_words(address: u32, len: usize) -> u32 {
    ((address & 3) + len as u32 - 1) >> 2
}

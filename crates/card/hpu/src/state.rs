use crate::memory::View;
use crate::watch::Attention;

/// Number of 32-bit registers in the register file; a power of two, so that a masked index needs no bounds check.
const WORDS: usize = 64;
/// Number of 64-bit registers in the register file; a power of two.
const WIDE: usize = 32;

/// The architectural state of a thread, which the semantic functions of an instruction set read and write.
///
/// The register file has 64 registers of 32 bits and 32 registers of 64 bits. An instruction set may place its
/// registers there freely, including flags and a register that discards what is written to it.
#[derive(Clone, Debug)]
pub struct State {
    words: [u32; WORDS],
    wide: [u64; WIDE],
    /// The program counter. While an instruction runs it is the address after the instruction's block, which for an
    /// instruction that ends a block is the address after the instruction; a jump replaces it.
    pub pc: u32,
    /// Address and value of the latest load-exclusive (RISC-V `lr.w`, ARM `ldrex`).
    pub reservation: Option<(u32, u32)>,
    /// The hardware loops, the innermost first.
    pub loops: [HardwareLoop; 2],
    pub(crate) cycles: u64,
    pub(crate) instructions: u64,
    /// Cycles of the current block that depend on data: divisions and accesses that cross words on the in-order core.
    pub(crate) data_cycles: u32,
    /// Cycles of the next division that depend on data and have passed while the access before it waited for its memory.
    pub(crate) divided: u32,
    /// Whether the handler waits in a loop of plain loads.
    pub(crate) attention: Attention,
}

/// The registers of a hardware loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareLoop {
    /// Address of the first instruction of the body.
    pub start: u32,
    /// The address behind the body.
    pub end: u32,
    /// How often the body still runs, the current time included; 0 when the loop does not run.
    pub count: u32,
}

impl State {
    /// The state in which all registers are zero. A constant is written in place where a function's result is copied.
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
        attention: Attention::NEW,
    };

    /// Whether nothing differs that an instruction can read, but for pc and counters; none reads the 32-bit register `sink`.
    pub(crate) fn has_registers_of(&self, other: &State, sink: Option<u8>) -> bool {
        let mut words = other.words;
        if let Some(sink) = sink {
            words[usize::from(sink) % WORDS] = self.word(sink);
        }
        (self.words, self.reservation, self.loops) == (words, other.reservation, other.loops) && self.wide == other.wide
    }

    /// The value of 32-bit register `index`; the index wraps at 64.
    #[inline(always)]
    pub fn word(&self, index: u8) -> u32 {
        self.words[usize::from(index) % WORDS]
    }

    /// Writes 32-bit register `index`; the index wraps at 64.
    #[inline(always)]
    pub fn set_word(&mut self, index: u8, value: u32) {
        self.words[usize::from(index) % WORDS] = value;
    }

    /// The value of 64-bit register `index`; the index wraps at 32.
    #[inline(always)]
    pub fn wide(&self, index: u8) -> u64 {
        self.wide[usize::from(index) % WIDE]
    }

    /// Writes 64-bit register `index`; the index wraps at 32.
    #[inline(always)]
    pub fn set_wide(&mut self, index: u8, bits: u64) {
        self.wide[usize::from(index) % WIDE] = bits;
    }

    /// Cycles since the handler started. Exact only in an instruction whose class stands alone
    /// ([`Class::stands_alone`](crate::isa::Class::stands_alone)).
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Instructions that have completed. Exact only in an instruction whose class stands alone
    /// ([`Class::stands_alone`](crate::isa::Class::stands_alone)).
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Loads `N` bytes. `None` means that the handler may not read them, or that it may not read them yet because a handler
    /// waits for them; the instruction then ends with [`Flow::Load`](crate::isa::Flow::Load). Each further word that the access
    /// touches costs the in-order core (CV32E40P) a cycle.
    #[inline(always)]
    pub fn load<const N: usize>(&mut self, memory: &mut View<'_>, address: u32) -> Option<[u8; N]> {
        match self.load_from::<true, N>(memory, address) {
            Some(bytes) => Some(bytes),
            None => self.load_from::<false, N>(memory, address),
        }
    }

    /// Stores `bytes`. `None` means that the handler may not write there, or that it may not write there yet because a handler
    /// waits for them; the instruction then ends with [`Flow::Store`](crate::isa::Flow::Store). Each further word that the
    /// access touches costs the in-order core (CV32E40P) a cycle.
    #[inline(always)]
    pub fn store<const N: usize>(&mut self, memory: &mut View<'_>, address: u32, bytes: [u8; N]) -> Option<()> {
        match self.store_to::<true, N>(memory, address, bytes) {
            Some(()) => Some(()),
            None => self.store_to::<false, N>(memory, address, bytes),
        }
    }

    /// Loads `N` bytes like [`State::load`]: with `AT_HAND` if they are at hand, and without a trace if they are not; otherwise by a
    /// search, when it has been tried whether they are at hand.
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
        memory.load_by_search(&mut self.attention, address)
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
        memory.store_by_search(&mut self.attention, address, bytes)
    }

    /// Counts the words that an access touches beyond the first. Most touch none, so a branch is less than an addition.
    #[inline(always)]
    fn count_words(&mut self, address: u32, len: usize) {
        let further = further_words(address, len);
        if further > 0 {
            self.data_cycles += further;
        }
    }

    /// Counts the accesses of an instruction beyond its first; each costs the in-order core a cycle.
    #[inline(always)]
    pub fn count_accesses(&mut self, further: u32) {
        self.data_cycles += further;
    }

    /// Counts the cycles of a division that depend on its divisor. CV32E40P divides one bit a cycle, beginning with the
    /// divisor's first significant bit: one cycle for each leading zero of an unsigned or positive divisor, or for each
    /// leading sign bit but one of a negative divisor.
    #[inline(always)]
    pub fn count_division(&mut self, divisor: u32, signed: bool) {
        let cycles = match signed && (divisor as i32) < 0 {
            true => divisor.leading_ones() - 1,
            false => divisor.leading_zeros(),
        };
        self.data_cycles += cycles.saturating_sub(std::mem::take(&mut self.divided));
    }
}

/// Number of words that an access touches beyond the first.
#[inline(always)]
pub(crate) fn further_words(address: u32, len: usize) -> u32 {
    ((address & 3) + len as u32 - 1) >> 2
}

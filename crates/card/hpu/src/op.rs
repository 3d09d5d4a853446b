use std::ops::BitOr;

use crate::memory::View;
use crate::state::State;

/// What happens after an instruction has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Execution continues after the instruction.
    Next,
    /// Execution continues at [`State::pc`], which the instruction has set.
    Jump,
    /// The handler issues a command ([`Convention`](crate::isa::Convention) names its registers); the pc is after the
    /// instruction.
    Command,
    /// A load was not allowed.
    Load,
    /// A store was not allowed.
    Store,
    /// An atomic operation addressed memory that is not aligned to its size; see [`View::deny`].
    Misaligned,
    /// The instruction is not modelled, or the core does not have it.
    Illegal,
    /// The program stopped itself at a breakpoint instruction.
    Break,
}

/// The effect of an instruction on the registers and the memory: a function, or a closure that captures nothing.
pub trait Semantics: Fn(&mut State, &mut View<'_>, &Op) -> Flow + Copy + 'static {}

impl<F: Fn(&mut State, &mut View<'_>, &Op) -> Flow + Copy + 'static> Semantics for F {}

/// Executes an instruction, and then the operations behind it in its block, until one does not go on to the next.
///
/// Each calls the next as the last thing that it does, which optimised code does by a jump. So between two instructions of a
/// block there is neither a return nor a loop, and the processor that simulates predicts each jump by the instruction
/// from which it comes. A block is short ([`Blocks`](crate::blocks::Blocks)), so the calls may as well be nested.
#[derive(Clone, Copy, Debug)]
pub struct Run(fn(&mut State, &mut View<'_>, &Op, Behind<'_>) -> Flow);

impl Run {
    /// Executes an instruction with this effect.
    pub const fn new<F: Semantics>(_: F) -> Run {
        Run(run::<F>)
    }

    /// Executes a load or store. `at_hand` does it if its memory is at hand, and otherwise nothing; then `anywhere` does it, which may
    /// have to search for the memory. So an access to memory at hand calls no function, and saves no registers for that.
    pub(crate) const fn of_access<F: Semantics, G: Semantics>(_at_hand: F, _anywhere: G) -> Run {
        Run(run_access::<F, G>)
    }
}

/// The operations behind another in its block.
type Behind<'a> = std::slice::Iter<'a, Op>;

/// The only value of a type without bytes.
#[inline(always)]
fn value<F: Semantics>() -> &'static F {
    const { assert!(size_of::<F>() == 0, "a function itself, not a pointer to one, or a closure that captures nothing") };
    // SAFETY: each aligned pointer that is not null points to a value without bytes; and there is one of this type, which the
    // caller of `Run::new` or `Run::of_access` had.
    unsafe { std::ptr::NonNull::<F>::dangling().as_ref() }
}

#[inline(never)]
fn run<F: Semantics>(state: &mut State, view: &mut View<'_>, op: &Op, behind: Behind<'_>) -> Flow {
    match value::<F>()(state, view, op) {
        Flow::Next => go_on(state, view, behind),
        flow @ (Flow::Jump | Flow::Command) => flow,
        flow => {
            view.behind = behind.len();
            flow
        }
    }
}

fn run_access<F: Semantics, G: Semantics>(state: &mut State, view: &mut View<'_>, op: &Op, behind: Behind<'_>) -> Flow {
    match value::<F>()(state, view, op) {
        Flow::Next => go_on(state, view, behind),
        _ => run::<G>(state, view, op, behind),
    }
}

#[inline(always)]
fn go_on(state: &mut State, view: &mut View<'_>, mut behind: Behind<'_>) -> Flow {
    match behind.next() {
        Some(op) => (op.run.0)(state, view, op, behind),
        None => Flow::Next,
    }
}

/// The executable form of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Executes the instruction.
    pub run: Run,
    /// An immediate operand, in the form that the instruction's [`Semantics`] expect.
    pub imm: u32,
    /// Indices into the register file of [`State`], in the order that the [`Semantics`] expect.
    pub registers: [u8; 4],
}

impl Op {
    /// Executes operations one after the other until one does not go on to the next. How many are behind one that fails is in
    /// [`View::behind`].
    #[inline(always)]
    pub(crate) fn run_all(ops: &[Op], state: &mut State, view: &mut View<'_>) -> Flow {
        go_on(state, view, ops.iter())
    }
}

/// The unit of a core that executes an instruction, and whether it can change the flow of control. The timing models
/// know nothing else about an instruction's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integer operation of one cycle.
    Alu,
    /// Product of two words, low half.
    Multiply,
    /// Product of two words, high half or both.
    MultiplyHigh,
    /// Integer division.
    Divide,
    /// Load of one or several registers.
    Load,
    /// Store of one or several registers.
    Store,
    /// Conditional direct jump.
    Branch,
    /// Unconditional direct jump, with or without a link.
    Jump,
    /// Jump to an address in a register.
    JumpIndirect,
    /// Jump to a return address, which the return-address stack predicts.
    Return,
    /// Memory fence.
    Fence,
    /// Access to a control or status register.
    System,
    /// Atomic read-modify-write, load-exclusive or store-exclusive.
    Atomic,
    /// Command to the card (environment call).
    Command,
    /// Breakpoint, or a word that is no instruction.
    Trap,
    /// Floating-point addition, subtraction or comparison.
    FloatAdd,
    /// Floating-point product.
    FloatMultiply,
    /// Fused multiply-add.
    FloatMultiplyAdd,
    /// Single-precision division.
    FloatDivide,
    /// Double-precision division.
    FloatDivideDouble,
    /// Single-precision square root.
    FloatRoot,
    /// Double-precision square root.
    FloatRootDouble,
    /// Sign injection, minimum, maximum, classification, and moves between the register files.
    FloatMove,
    /// Conversion between number formats.
    FloatConvert,
    /// The end of a hardware loop's body, which is no instruction and takes no time.
    LoopEnd,
}

impl Class {
    /// Whether the instruction is the last of its block.
    pub fn ends_block(self) -> bool {
        use Class::*;
        matches!(self, Branch | Jump | JumpIndirect | Return) || self.stands_alone()
    }

    /// Whether the instruction reads or writes memory.
    pub fn accesses_memory(self) -> bool {
        matches!(self, Class::Load | Class::Store | Class::Atomic)
    }

    /// Whether the instruction is a block of its own, so that the thread's counters are exact when it runs.
    pub fn stands_alone(self) -> bool {
        matches!(self, Class::System | Class::Atomic | Class::Command | Class::Trap)
    }
}

/// A set of registers as the timing models see them: 64 names, of which two are different exactly if no instruction can
/// write one through the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegisterSet(u64);

impl RegisterSet {
    /// The empty set.
    pub const NONE: RegisterSet = RegisterSet(0);

    /// The set with one register.
    ///
    /// # Panics
    /// When `register` is above 63.
    pub const fn of(register: u8) -> RegisterSet {
        assert!(register < 64);
        RegisterSet(1 << register)
    }

    /// Whether the set has no register.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the set has the register.
    pub fn contains(self, register: u8) -> bool {
        self.intersects(RegisterSet::of(register))
    }

    /// Whether the two sets have a register in common.
    pub const fn intersects(self, other: RegisterSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The registers that are not in `other`.
    pub const fn without(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & !other.0)
    }

    /// The registers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let register = rest.trailing_zeros() as u8;
            rest &= rest.wrapping_sub(1);
            (register < 64).then_some(register)
        })
    }
}

impl BitOr for RegisterSet {
    type Output = RegisterSet;

    fn bitor(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 | other.0)
    }
}

/// The memory access of a load or store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Size in bytes, over all registers that are transferred.
    pub bytes: u32,
    /// Address registers that the access changes (pre- or post-increment). Their new value comes from the address
    /// unit and does not wait for the memory.
    pub updates: RegisterSet,
    /// Index of the 32-bit register from which the address is computed.
    pub base: u8,
    /// What is added to the base.
    pub offset: Offset,
}

/// What an access adds to its base register for the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// A constant.
    Immediate(u32),
    /// The value of the 32-bit register with this index.
    Register(u8),
}

impl Offset {
    /// The address of an access with this base register.
    #[inline(always)]
    pub(crate) fn address(self, base: u8, state: &State) -> u32 {
        let offset = match self {
            Offset::Immediate(offset) => offset,
            Offset::Register(register) => state.word(register),
        };
        state.word(base).wrapping_add(offset)
    }
}

impl Default for Offset {
    fn default() -> Offset {
        Offset::Immediate(0)
    }
}

/// The accesses that a fence orders. The earlier set contains loads and the later one stores in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Earlier stores are ordered before later accesses; false for an acquire fence.
    pub after_stores: bool,
    /// Later loads are ordered after earlier accesses; false for a release fence.
    pub before_loads: bool,
}

/// A decoded instruction: one micro-operation, with all information for the engine and the timing models.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// The operation.
    pub op: Op,
    /// The unit that executes it.
    pub class: Class,
    /// Size of the encoding in bytes, 2 or 4.
    pub length: u32,
    /// Registers that it reads, including address registers.
    pub sources: RegisterSet,
    /// Registers that hold its result, one or several; without those in [`Access::updates`].
    pub results: RegisterSet,
    /// The access of a load or store.
    pub access: Access,
    /// The target of a direct jump or branch.
    pub target: Option<u32>,
    /// The accesses that a fence orders.
    pub fence: Option<Fence>,
    /// Where the body of a hardware loop ends that the instruction sets up.
    pub loop_end: Option<LoopEnd>,
}

/// The address behind the body of a hardware loop, at which [`Isa::loop_end`](crate::isa::Isa::loop_end) decides what
/// the next instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// This address.
    At(u32),
    /// An address that is not known before the instruction runs.
    Anywhere,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_registers() {
        let set = RegisterSet::of(0) | RegisterSet::of(63) | RegisterSet::of(5);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(set.without(RegisterSet::of(5)).iter().collect::<Vec<_>>(), [0, 63]);
        assert!(set.intersects(RegisterSet::of(63)) && !set.intersects(RegisterSet::of(62)));
        assert!(RegisterSet::NONE.is_empty() && RegisterSet::NONE.iter().next().is_none());
    }
}

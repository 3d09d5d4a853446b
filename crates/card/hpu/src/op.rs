// SPDX-License-Identifier: Apache-2.0
//! Micro-operations, the decoded form of instructions.

use std::ops::BitOr;

use crate::architectural_state::State;
use crate::memory::View;

/// Continuation after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Execution continues after the instruction.
    Next,
    /// Execution continues at [`State::pc`], set by the instruction.
    Jump,
    /// The handler issues a command ([`Convention`](crate::isa::Convention) names its registers); the pc is after the
    /// instruction.
    Command,
    /// A denied load.
    Load,
    /// A denied store.
    Store,
    /// A misaligned atomic operation; see [`View::deny`].
    Misaligned,
    /// The instruction is not modelled, or is missing from the core.
    Illegal,
    /// A breakpoint instruction of the program.
    Break,
}

/// Effect of an instruction on registers and memory: a function, or a closure without captures.
pub trait Semantics: Fn(&mut State, &mut View<'_>, &Op) -> Flow + Copy + 'static {}

impl<F: Fn(&mut State, &mut View<'_>, &Op) -> Flow + Copy + 'static> Semantics for F {}

/// Executes an instruction, and then the following operations of its block until one ends the sequence.
///
/// Each operation tail-calls the next, which optimised code does by a jump. So no return or loop is between two
/// instructions of a block, and the host CPU predicts each jump by the instruction from which it comes. Blocks are
/// short ([`Blocks`](crate::blocks::Blocks)), so nested calls are also safe.
#[derive(Clone, Copy, Debug)]
pub struct Run(fn(&mut State, &mut View<'_>, &Op, Behind<'_>) -> Flow);

impl Run {
    /// Executes an instruction with this effect.
    pub const fn new<F: Semantics>(_: F) -> Run {
        Run(run::<F>)
    }

    /// Executes a load or store. `at_hand` executes it only if its memory is cached in the view; otherwise `anywhere`
    /// executes it, and may search for the memory. So an access to cached memory calls no function and saves no
    /// registers.
    pub(crate) const fn of_access<F: Semantics, G: Semantics>(_at_hand: F, _anywhere: G) -> Run {
        Run(run_access::<F, G>)
    }
}

/// Following operations of the same block.
type Behind<'a> = std::slice::Iter<'a, Op>;

/// Returns the only value of a zero-sized type.
#[inline(always)]
fn value<F: Semantics>() -> &'static F {
    const { assert!(size_of::<F>() == 0, "a function itself, not a pointer to one, or a closure that captures nothing") };
    // SAFETY: every aligned non-null pointer points to a valid zero-sized value, and a value of this type exists,
    // because the caller of `Run::new` or `Run::of_access` had one.
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

/// Executable form of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Executes the instruction.
    pub run: Run,
    /// Immediate operand, as the instruction's [`Semantics`] expect it.
    pub imm: u32,
    /// Indices into the register file of [`State`], in the order of the [`Semantics`].
    pub registers: [u8; 4],
}

impl Op {
    /// Executes operations in order until one ends the sequence. If one fails, [`View::behind`] is the number of
    /// operations after it.
    #[inline(always)]
    pub(crate) fn run_all(ops: &[Op], state: &mut State, view: &mut View<'_>) -> Flow {
        go_on(state, view, ops.iter())
    }
}

/// Functional unit of an instruction, and its effect on control flow. The timing models use nothing else of an
/// instruction's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integer operation of one cycle.
    Alu,
    /// Low half of a product of two words.
    Multiply,
    /// High half, or all, of a product of two words.
    MultiplyHigh,
    /// Integer division.
    Divide,
    /// Load of one or more registers.
    Load,
    /// Store of one or more registers.
    Store,
    /// Conditional direct jump.
    Branch,
    /// Unconditional direct jump, with or without link.
    Jump,
    /// Jump to an address in a register.
    JumpIndirect,
    /// Jump to a return address, predicted by the return-address stack.
    Return,
    /// Memory fence.
    Fence,
    /// Access to a control or status register.
    System,
    /// Atomic read-modify-write, load-exclusive or store-exclusive.
    Atomic,
    /// Command to the card (environment call).
    Command,
    /// Breakpoint, or an invalid instruction word.
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
    /// Integer operation on vectors, without multiplication.
    VectorAlu,
    /// Product of integer vectors, with or without accumulation.
    VectorMultiply,
    /// Load of the program counter, and possibly of other registers: an indirect jump.
    LoadJump,
    /// [`Class::LoadJump`] to a return address on the stack, predicted by the return-address stack.
    LoadReturn,
    /// Conditional [`Class::LoadReturn`].
    LoadBranch,
    /// End of a hardware loop's body: not an instruction, takes no time.
    LoopEnd,
}

impl Class {
    /// Returns true if the instruction is the last of its block.
    pub fn ends_block(self) -> bool {
        use Class::*;
        matches!(self, Branch | Jump | JumpIndirect | Return | LoadJump | LoadReturn | LoadBranch)
            || self.stands_alone()
    }

    /// Returns true if the instruction reads or writes memory.
    pub fn accesses_memory(self) -> bool {
        use Class::*;
        matches!(self, Load | Store | Atomic | LoadJump | LoadReturn | LoadBranch)
    }

    /// Returns true if the instruction is a block by itself, so that the thread's counters are exact when it runs.
    pub fn stands_alone(self) -> bool {
        matches!(self, Class::System | Class::Atomic | Class::Command | Class::Trap)
    }
}

/// A set of registers as the timing models see them: 64 names. Two names differ exactly if no instruction can write one
/// register through the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegisterSet(u64);

impl RegisterSet {
    /// The empty set.
    pub const NONE: RegisterSet = RegisterSet(0);

    /// Returns the set with one register.
    ///
    /// # Panics
    /// Panics if `register` is above 63.
    pub const fn of(register: u8) -> RegisterSet {
        assert!(register < 64);
        RegisterSet(1 << register)
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the set has the register.
    pub fn contains(self, register: u8) -> bool {
        self.intersects(RegisterSet::of(register))
    }

    /// Returns true if the two sets intersect.
    pub const fn intersects(self, other: RegisterSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the registers that are not in `other`.
    pub const fn without(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & !other.0)
    }

    /// Returns the registers in ascending order.
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

/// Memory access of a load or store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Total size of the transferred registers in bytes.
    pub bytes: u32,
    /// Address registers that the access changes (pre- or post-increment). Their new value comes from the address unit
    /// and does not wait for the memory.
    pub updates: RegisterSet,
    /// Index of the 32-bit base register.
    pub base: u8,
    /// Offset from the base register.
    pub offset: Offset,
}

/// Offset of an access from its base register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// A constant.
    Immediate(u32),
    /// The value of the 32-bit register with this index.
    Register(u8),
}

impl Offset {
    /// Returns the address of an access with this base register.
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

/// Accesses that a fence orders. The earlier set always contains loads, and the later set always stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// True if earlier stores are ordered before later accesses; false for an acquire fence.
    pub after_stores: bool,
    /// True if later loads are ordered after earlier accesses; false for a release fence.
    pub before_loads: bool,
}

/// A decoded instruction: one micro-operation, with all data for the engine and the timing models.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Operation.
    pub op: Op,
    /// Class of the instruction.
    pub class: Class,
    /// Size of the encoding in bytes, 2 or 4.
    pub length: u32,
    /// Registers that it reads, including address registers.
    pub sources: RegisterSet,
    /// Result registers, without those in [`Access::updates`].
    pub results: RegisterSet,
    /// Access of a load or store.
    pub access: Access,
    /// Target of a direct jump or branch.
    pub target: Option<u32>,
    /// Order of a fence.
    pub fence: Option<Fence>,
    /// End of the hardware loop that the instruction sets up.
    pub loop_end: Option<LoopEnd>,
}

/// Address after the body of a hardware loop, at which [`Isa::loop_end`](crate::isa::Isa::loop_end) selects the next
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// Known address.
    At(u32),
    /// Address computed at run time.
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

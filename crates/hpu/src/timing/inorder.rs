//! The 4-stage, single-issue core of PsPIN (PsPIN §III; CV32E40P user manual, "Pipeline details"). Costs that depend on
//! data (division, accesses across words) are counted where the instructions run.

use super::{Exit, Pipeline, Timed};
use crate::isa::{Class, Register};

pub(super) struct InOrder {
    /// Cycles of a load; a memory slower than one cycle stops the pipeline.
    pub scratchpad: u32,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Registers whose value may still stop an instruction, by number, and how many cycles from now on.
    pending: Vec<(Register, u32)>,
    /// The next instruction comes from a jump: when it is split over two words its fetch takes another cycle.
    redirected: bool,
}

impl InOrder {
    /// Cycles until the next instruction can enter the execute stage, and until the result is there for it.
    fn cost(&self, class: Class) -> (u32, u32) {
        match class {
            Class::Alu | Class::Multiply | Class::Store | Class::Call | Class::Trap => (1, 1),
            // Load-use: one more.
            Class::Load => (self.scratchpad, self.scratchpad + 1),
            Class::MultiplyHigh | Class::Fence => (5, 5),
            // And what the divisor adds.
            Class::Divide => (3, 3),
            // When taken, see below.
            Class::Branch => (1, 1),
            Class::Jump | Class::JumpIndirect | Class::Return => (2, 2),
            Class::Csr => (4, 4),
            // A load and a store.
            Class::Atomic => (self.scratchpad + 1, self.scratchpad + 2),
            // The core's FPU (fpnew) with one register stage; its divider is not pipelined and makes 3 bits a cycle.
            Class::FloatAdd | Class::FloatMultiply | Class::FloatMultiplyAdd | Class::FloatConvert => (1, 2),
            Class::FloatMove => (1, 1),
            Class::FloatDivide | Class::FloatRoot => (11, 11),
            Class::FloatDivideDouble | Class::FloatRootDouble => (21, 21),
        }
    }
}

/// Of a taken branch, beyond the one cycle of one not taken.
const TAKEN: u32 = 2;

impl Pipeline for InOrder {
    type State = State;

    fn run(&self, state: &mut State, ops: &[Timed], exit: Exit) -> u32 {
        let mut ready = [0; 64];
        for (register, cycles) in state.pending.drain(..) {
            ready[usize::from(register)] = cycles;
        }
        let mut now = 0;
        if state.redirected && ops.first().is_some_and(|op| op.split) {
            now += 1;
        }
        for op in ops {
            // `jalr` needs its register a stage earlier, in decode.
            let early = u32::from(matches!(op.class, Class::JumpIndirect | Class::Return));
            let operands = op.sources.iter().filter(|s| **s != 0).map(|s| ready[usize::from(*s)]);
            now = operands.filter(|at| *at > 0).map(|at| at + early).fold(now, u32::max);
            let (cost, latency) = self.cost(op.class);
            if op.dest != 0 {
                ready[usize::from(op.dest)] = now + latency;
            }
            now += cost;
        }
        state.redirected = exit.taken;
        if exit.taken && ops.last().is_some_and(|op| op.class == Class::Branch) {
            now += TAKEN;
        }
        // A value that is ready only now still stops a `jalr`.
        let registers = (0..64).filter(|r| ready[usize::from(*r)] >= now.max(1));
        state.pending = registers.map(|r| (r, ready[usize::from(r)] - now)).collect();
        now
    }
}

//! The 4-stage, single-issue core of PsPIN (PsPIN §III; CV32E40P user manual, "Pipeline details"). Costs that depend on
//! data (division, accesses across words) are counted when the instructions run ([`State`](crate::state::State)).

use super::pipeline::{Exit, Pipeline, Timed};
use crate::op::Class;

pub(super) struct InOrder {
    /// Cycles of a load; a memory slower than one cycle stops the pipeline.
    pub scratchpad: u32,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Registers for whose value an instruction may still have to wait, with the number of cycles until it is
    /// available.
    pending: Vec<(u8, u32)>,
    /// The next instruction is the target of a jump. If it is split over two words, its fetch takes another cycle.
    redirected: bool,
}

/// Cycles from the cycle in which an access is in the execute stage to the one in which the next instruction can be, in
/// a memory that answers in one cycle.
pub(crate) fn access_cycles(class: Class) -> u32 {
    InOrder { scratchpad: 1 }.cost(class).0
}

impl InOrder {
    /// Cycles until the next instruction can enter the execute stage, and until the result is available for it.
    fn cost(&self, class: Class) -> (u32, u32) {
        match class {
            Class::Alu | Class::Multiply | Class::Store | Class::Command | Class::Trap => (1, 1),
            // An instruction that uses the value directly after the load waits one more cycle.
            Class::Load => (self.scratchpad, self.scratchpad + 1),
            Class::MultiplyHigh | Class::Fence => (5, 5),
            // The divisor adds further cycles when the instruction runs.
            Class::Divide => (3, 3),
            // This is the cost if it is not taken; see TAKEN.
            Class::Branch => (1, 1),
            // The link is there before the target, so a return that is the target does not wait for it.
            Class::Jump | Class::JumpIndirect | Class::Return => (2, 1),
            Class::System => (4, 4),
            Class::LoopEnd => (0, 0),
            // A load and a store.
            Class::Atomic => (self.scratchpad + 1, self.scratchpad + 2),
            // The core's FPU (fpnew) with one register stage; its divider is not pipelined and computes 3 bits per
            // cycle.
            Class::FloatAdd | Class::FloatMultiply | Class::FloatMultiplyAdd | Class::FloatConvert => (1, 2),
            Class::FloatMove => (1, 1),
            Class::FloatDivide | Class::FloatRoot => (11, 11),
            Class::FloatDivideDouble | Class::FloatRootDouble => (21, 21),
        }
    }
}

/// Cycles of a taken branch beyond the one cycle of a branch that is not taken.
const TAKEN: u32 = 2;

/// Cycles until an address register that a load or store has changed can be used.
const UPDATE: u32 = 1;

impl Pipeline for InOrder {
    type State = State;

    fn run(&self, state: &mut State, ops: &[Timed], exit: Exit) -> u32 {
        // The block begins in cycle 1: in cycle 0 a register is ready for which nothing waits.
        const START: u32 = 1;
        let mut ready = [0; 64];
        for (register, cycles) in state.pending.drain(..) {
            ready[usize::from(register)] = START + cycles;
        }
        let mut now = START;
        if state.redirected && ops.first().is_some_and(|op| op.split) {
            now += 1;
        }
        let last = ops.iter().rposition(|op| op.class != Class::LoopEnd).unwrap_or_default();
        for (position, op) in ops.iter().enumerate() {
            // An indirect jump needs its register a stage earlier, in decode.
            let early = u32::from(matches!(op.class, Class::JumpIndirect | Class::Return));
            let operands = op.sources.iter().map(|register| ready[usize::from(register)]);
            now = operands.filter(|at| *at > 0).map(|at| at + early).fold(now, u32::max);
            let (mut cost, mut latency) = self.cost(op.class);
            // Memory that is not ready for the access is memory that takes longer to answer.
            if exit.stalled && position == last {
                (cost, latency) = (cost + 1, latency + 1);
            }
            op.results.iter().for_each(|register| ready[usize::from(register)] = now + latency);
            op.updates.iter().for_each(|register| ready[usize::from(register)] = now + UPDATE);
            now += cost;
        }
        state.redirected = exit.taken;
        if exit.taken && ops.last().is_some_and(|op| op.class == Class::Branch) {
            now += TAKEN;
        }
        // An indirect jump still waits for a value that is ready only now.
        let registers = (0..64_u8).filter(|r| ready[usize::from(*r)] >= now);
        state.pending = registers.map(|r| (r, ready[usize::from(r)] - now)).collect();
        now - START
    }
}

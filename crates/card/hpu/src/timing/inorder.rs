// SPDX-License-Identifier: Apache-2.0
//! The 4-stage, single-issue core of PsPIN (PsPIN §III; CV32E40P user manual, "Pipeline details"). Data-dependent costs
//! (division, accesses across words) are counted when the instructions execute ([`State`](crate::architectural_state::State)).

use super::pipeline::{Exit, Pipeline, Timed, Wait};
use crate::op::Class;

pub(super) struct InOrder {
    /// Cycles of a load; a memory slower than one cycle stalls the pipeline.
    pub scratchpad: u32,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Registers on which an instruction may still wait, with the cycles until they are available, counted from
    /// [`JUMP`] cycles before the next instruction is in the execute stage.
    pending: Vec<(u8, u32)>,
    /// True if the next instruction is the target of a jump. If it is split over two words, its fetch takes another
    /// cycle.
    redirected: bool,
    /// True if the target reached decode while the jump waits in the execute stage for the answer to an access. The
    /// target's second word then reaches decode when the answer arrives.
    second_waits: bool,
    /// Cycles that the next instruction has spent in decode behind an instruction that waited for its memory. A jump
    /// leaves decode for its target immediately.
    decoded_since: u32,
    /// Cycles that the next instruction has spent in the execute stage, waiting for the answer to the previous access.
    executed_since: u32,
}

/// Returns the cycles from an access's execute cycle to the earliest one of the next instruction, in a memory that
/// answers in one cycle.
pub(crate) fn access_cycles(class: Class) -> u32 {
    InOrder { scratchpad: 1 }.cost(class).0
}

impl InOrder {
    /// Returns the maximum relevant number of cycles for which an instruction is in the execute stage before the
    /// previous one ends. With a one-cycle memory, such a wait occurs only on a PsPIN card, whose cores have no
    /// floating-point unit and whose stepper tracks divisions. With a slower memory, the limit is the wait for an
    /// atomic operation.
    fn most_early(&self) -> u32 {
        if self.scratchpad == 1 { 4 } else { self.scratchpad }
    }

    /// Returns the cycles until the next instruction can enter the execute stage, and until the result is available.
    fn cost(&self, class: Class) -> (u32, u32) {
        match class {
            Class::Alu | Class::Multiply | Class::Store | Class::Command | Class::Trap => (1, 1),
            // An instruction that uses the value directly after the load stalls one more cycle.
            Class::Load | Class::LoadJump | Class::LoadReturn | Class::LoadBranch => {
                (self.scratchpad, self.scratchpad + 1)
            }
            Class::MultiplyHigh => (5, 5),
            // The divisor adds further cycles at execution.
            Class::Divide => (3, 3),
            // Cost of a branch that is not taken; a taken one also pays JUMP.
            Class::Branch => (1, 1),
            // The link is available before the target, so a return at the target does not wait for it. See JUMP.
            Class::Jump | Class::JumpIndirect | Class::Return => (1, 1),
            // The pipeline drains before the next instruction is decoded, and a fence also refetches that instruction.
            Class::System | Class::Fence => (SYSTEM, SYSTEM),
            Class::LoopEnd => (0, 0),
            // A load and a store.
            Class::Atomic => (self.scratchpad + 1, self.scratchpad + 2),
            // The core's FPU (fpnew) with one register stage; its divider is not pipelined and computes 3 bits per
            // cycle.
            Class::FloatAdd | Class::FloatMultiply | Class::FloatMultiplyAdd | Class::FloatConvert => (1, 2),
            Class::FloatMove | Class::VectorAlu => (1, 1),
            Class::VectorMultiply => (1, 2),
            Class::FloatDivide | Class::FloatRoot => (11, 11),
            Class::FloatDivideDouble | Class::FloatRootDouble => (21, 21),
        }
    }
}

/// Cycles from the start of execution of a control-register instruction or fence to that of the next instruction.
pub(crate) const SYSTEM: u32 = 4;

/// Cycles from a jump in decode, or a taken branch in the execute stage, to its target in decode.
const JUMP: u32 = 2;

/// Cycles until an address register changed by a load or store is available.
const UPDATE: u32 = 1;

impl Pipeline for InOrder {
    type State = State;

    fn run(&self, state: &mut State, ops: &[Timed], exit: Exit) -> u32 {
        // Cycle in which the block begins. Cycle 0 in `ready` means that nothing waits for the register, so START
        // exceeds the age of any pending operation.
        const START: u32 = 1 << 16;
        const DECODED: u32 = 8;
        let mut ready = [0; 64];
        for (register, cycles) in state.pending.drain(..) {
            ready[usize::from(register)] = START - state.executed_since - JUMP + cycles;
        }
        // `now`: cycle in which the next instruction can begin to execute. `decoded`: its decode cycle. `early`: cycles
        // that it is in the execute stage before `now`.
        let mut now = START;
        let mut decoded = START - 1 - state.decoded_since;
        let mut early = state.executed_since;
        let (mut redirected, mut second_waits) = (state.redirected, state.second_waits);
        let last = ops.iter().rposition(|op| op.class != Class::LoopEnd);
        for (position, op) in ops.iter().enumerate().filter(|(_, op)| op.class != Class::LoopEnd) {
            if redirected && op.split {
                decoded = decoded.max(if second_waits { now - 1 } else { 0 }) + 1;
                now = now.max(decoded + 1);
                early = early.min(now - (decoded + 1));
            }
            second_waits = false;
            let is_taken = exit.taken && Some(position) == last;
            let (cost, latency) = self.cost(op.class);
            let operands = op.sources.iter().map(|register| ready[usize::from(register)]).max().unwrap_or_default();
            // An indirect jump needs its register a stage earlier, in decode.
            let is_indirect = matches!(op.class, Class::JumpIndirect | Class::Return);
            let enters = (now - early).max(if operands > 0 { operands + u32::from(is_indirect) } else { 0 });
            // An access waits for the answer to the previous one; so do an instruction that drains the pipeline, and
            // the end of any other instruction except a branch.
            let empties = matches!(op.class, Class::System | Class::Fence);
            let begins = if empties || op.class.accesses_memory() { enters.max(now) } else { enters };
            let ends = (begins + cost).max(if early > 0 { now + 1 } else { 0 });
            let known = (begins + latency).max(if early > 0 { now + 1 } else { 0 });
            op.results.iter().for_each(|register| ready[usize::from(register)] = known);
            op.updates.iter().for_each(|register| ready[usize::from(register)] = begins + UPDATE);
            // While an instruction in the execute stage waits for an answer, decode accepts no jump target.
            let open = if early > 0 { now + 1 } else { 0 };
            let earliest = match op.class {
                Class::Jump | Class::JumpIndirect | Class::Return => {
                    let target = decoded.max(operands) + JUMP;
                    redirected = is_taken;
                    second_waits = early > 0 && target <= enters;
                    decoded = if target > enters { target.max(open) } else { enters };
                    ends
                }
                Class::Branch => {
                    redirected = is_taken;
                    decoded = if is_taken { (enters + JUMP).max(open) } else { enters };
                    now.max(enters + 1)
                }
                // Nothing is decoded behind these until the pipeline is empty; a fence jumps to the next instruction.
                Class::System | Class::Fence => {
                    redirected = op.class == Class::Fence;
                    decoded = ends - 1;
                    ends
                }
                // Regardless of the latency, the next instruction proceeds to decode, and leaves it if it is a jump.
                _ => {
                    redirected = is_taken;
                    decoded = enters;
                    ends
                }
            };
            early = match op.class {
                Class::Branch => now.saturating_sub(decoded + 1),
                Class::Load | Class::Atomic => cost - 1,
                _ => 0,
            };
            now = earliest.max(decoded + 1);
        }
        (now, ready) = wait(now, ready, u32::from(exit.wait.grant) + u32::from(exit.wait.answer));
        early += u32::from(exit.wait.answer);
        (state.redirected, state.second_waits) = (redirected, second_waits);
        state.executed_since = early.min(self.most_early());
        // Cycles that passed before both have no effect.
        let both = early - state.executed_since;
        let most_decoded = DECODED.max(state.executed_since + JUMP);
        state.decoded_since = (now - 1 - decoded).saturating_sub(both).min(most_decoded);
        // In this cycle the next instruction may be in the execute stage; a jump may need its register in decode even
        // earlier. After a stall on a PsPIN card, all values are ready.
        let enters = now - state.executed_since;
        let is_exact = self.scratchpad > 1 || exit.wait == Wait::NONE;
        let is_past = |ready: u32| is_exact && (ready >= enters || ready > decoded && ready + JUMP > enters);
        let registers = (0..64_u8).filter(|r| ready[usize::from(*r)] >= now || is_past(ready[usize::from(*r)]));
        state.pending = registers.map(|r| (r, ready[usize::from(r)] + JUMP - enters)).collect();
        now - START
    }

    fn early(&self, state: &State, next: &Timed) -> u32 {
        // As in `run`: a target's second word comes late.
        let is_late = state.redirected && next.split;
        state.executed_since.min(if is_late { state.decoded_since.saturating_sub(1) } else { u32::MAX })
    }

    fn divided(&self, state: &State, division: &Timed) -> u32 {
        // As in `run`, the division waits for its operands.
        let early = self.early(state, division);
        let pending = state.pending.iter().filter(|(register, _)| division.sources.contains(*register));
        let ready = pending.map(|(_, cycles)| cycles.saturating_sub(JUMP)).max().unwrap_or_default();
        let begins = ready.max(state.executed_since - early);
        // The last of its data-independent cycles follows the end of the access.
        (state.executed_since + 1).saturating_sub(begins + self.cost(Class::Divide).0)
    }
}

/// Delays the end of the latest access, and all results that are not yet ready, by `cycles`.
fn wait(now: u32, mut ready: [u32; 64], cycles: u32) -> (u32, [u32; 64]) {
    ready.iter_mut().filter(|ready| **ready > now).for_each(|ready| *ready += cycles);
    (now + cycles, ready)
}

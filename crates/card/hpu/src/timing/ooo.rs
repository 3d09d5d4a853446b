// SPDX-License-Identifier: Apache-2.0
//! An out-of-order core (sPIN §4.2: ARM Cortex-A15 at 2.5 GHz on scratchpad memory, simulated by gem5).
//!
//! Instructions are processed in program order. The model computes the cycles of its dispatch, issue, result and commit
//! from those of the earlier instructions:
//!
//! * dispatch: `width` per cycle, in order; a taken branch ends the group, a mispredicted one stops it until the branch
//!   has issued and the pipeline has refilled; it waits for a free entry of the reorder buffer, the issue queue and,
//!   for loads and stores, the load or store queue
//! * issue: the cycle after dispatch or later, when the operands are ready and a port is free, the oldest first
//! * commit: in order, `width` per cycle, when the result is ready; this frees the reorder buffer, load and store
//!   entries
//!
//! Registers are renamed without limit. Loads do not wait for earlier stores (memory dependences are predicted
//! correctly, and the scratchpad is no slower than forwarding). A handler's first instruction dispatches in its cycle
//! 0, since execution starts within a cycle of scheduling (sPIN §2). Commands, atomic operations, fences and accesses
//! to control registers wait until all instructions before them have committed, and all instructions after them wait
//! for them, so the pipeline is empty when the card answers. A load or store of several registers uses its port for one
//! cycle per two registers; an address register that it changes is ready one address calculation after its issue.

use super::pipeline::{Exit, Pipeline, Timed};
use crate::op::{Class, RegisterSet};

/// Parameters of a core, in cycles unless stated otherwise.
pub(super) struct OooParameters {
    /// Instructions fetched, dispatched and committed per cycle.
    pub width: usize,
    /// Entries of the reorder buffer.
    pub reorder_buffer: usize,
    /// Instructions that wait for issue.
    pub issue_queue: usize,
    /// Loads between dispatch and commit.
    pub load_queue: usize,
    /// Stores between dispatch and commit.
    pub store_queue: usize,
    /// Cycles from the issue of a mispredicted branch to the dispatch of the correct successor.
    pub mispredict: u32,
    /// Cycles from the issue of a load or store to its access; the result of a load follows after the scratchpad's
    /// cycles.
    pub address: u32,
    pub alu: u32,
    pub multiply: u32,
    /// Integer division; not pipelined.
    pub divide: u32,
    pub float_add: u32,
    pub float_multiply: u32,
    pub float_multiply_add: u32,
    pub float_convert: u32,
    /// Sign injection, minimum, class, and moves between the register files.
    pub float_move: u32,
    /// Floating-point division; not pipelined, as the three below.
    pub float_divide: u32,
    pub float_divide_double: u32,
    pub float_root: u32,
    pub float_root_double: u32,
    /// Integer operation on vectors.
    pub vector: u32,
    pub vector_multiply: u32,
}

/// Widths and queues from sPIN §4.2. Latencies are those of gem5's Cortex-A15 class core (`O3_ARM_v7a`) where it gives
/// a single figure, otherwise of the Cortex-A15 itself (double-precision divider, chained multiply-add, misprediction
/// penalty of 15 cycles).
pub(super) const CORTEX_A15: OooParameters = OooParameters {
    width: 3,
    reorder_buffer: 40,
    issue_queue: 32,
    load_queue: 16,
    store_queue: 16,
    mispredict: 15,
    address: 1,
    alu: 1,
    multiply: 3,
    divide: 12,
    float_add: 5,
    float_multiply: 4,
    float_multiply_add: 9,
    float_convert: 5,
    float_move: 3,
    float_divide: 18,
    float_divide_double: 32,
    float_root: 17,
    float_root_double: 32,
    vector: 3,
    vector_multiply: 4,
};

/// An issue port. [`ALU`] and [`FLOAT`] have two each, the others one, as in a Cortex-A15.
type Port = u8;
const ALU: [Port; 2] = [0, 1];
const BRANCH: [Port; 1] = [2];
const MULTIPLY: [Port; 1] = [3];
const LOAD: [Port; 1] = [4];
const STORE: [Port; 1] = [5];
const FLOAT: [Port; 2] = [6, 7];
/// Port of an instruction that no longer occupies one.
const NO_PORT: Port = 8;

pub(super) struct OutOfOrder {
    pub parameters: OooParameters,
    pub scratchpad: u32,
}

/// An instruction that has not committed. Cycles are relative to the next dispatch; a past cycle is 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct InFlight {
    class: Class,
    port: Port,
    /// Result registers that no later instruction has overwritten.
    results: RegisterSet,
    /// Changed address registers that no later instruction has overwritten.
    updates: RegisterSet,
    issue: u32,
    /// Cycle in which the port is free again.
    free: u32,
    /// Cycle in which a consumer of the result can issue.
    ready: u32,
    /// Cycle in which a consumer of a changed address register can issue.
    updated: u32,
    commit: u32,
}

#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Instructions in program order.
    in_flight: Vec<InFlight>,
    /// Commit cycle of the latest instruction, relative to the next dispatch.
    commit: i32,
    /// Number of instructions already dispatched in the same cycle as the next one.
    dispatched: usize,
}

/// Ports that an instruction may use, its latency, and whether the port is pipelined.
struct Resources {
    ports: &'static [Port],
    latency: u32,
    pipelined: bool,
}

impl OutOfOrder {
    fn resources(&self, class: Class) -> Resources {
        let p = &self.parameters;
        let (ports, latency, pipelined): (&'static [Port], u32, bool) = match class {
            Class::Alu | Class::LoopEnd | Class::System | Class::Fence | Class::Command | Class::Trap => {
                (&ALU, p.alu, true)
            }
            Class::Branch | Class::Jump | Class::JumpIndirect | Class::Return => (&BRANCH, p.alu, true),
            Class::Multiply | Class::MultiplyHigh => (&MULTIPLY, p.multiply, true),
            Class::Divide => (&MULTIPLY, p.divide, false),
            Class::Load | Class::LoadJump | Class::LoadReturn | Class::LoadBranch => {
                (&LOAD, p.address + self.scratchpad, true)
            }
            Class::Store => (&STORE, p.address, true),
            // A load, the operation and a store.
            Class::Atomic => (&LOAD, p.address + self.scratchpad + p.alu, true),
            Class::FloatAdd => (&FLOAT, p.float_add, true),
            Class::FloatMultiply => (&FLOAT, p.float_multiply, true),
            Class::FloatMultiplyAdd => (&FLOAT, p.float_multiply_add, true),
            Class::FloatConvert => (&FLOAT, p.float_convert, true),
            Class::FloatMove => (&FLOAT, p.float_move, true),
            Class::VectorAlu => (&FLOAT, p.vector, true),
            Class::VectorMultiply => (&FLOAT, p.vector_multiply, true),
            Class::FloatDivide => (&FLOAT, p.float_divide, false),
            Class::FloatDivideDouble => (&FLOAT, p.float_divide_double, false),
            Class::FloatRoot => (&FLOAT, p.float_root, false),
            Class::FloatRootDouble => (&FLOAT, p.float_root_double, false),
        };
        Resources { ports, latency, pipelined }
    }

    /// Returns the first cycle from `dispatch` in which all buffers have an entry for `class`.
    fn room(&self, in_flight: &[InFlight], class: Class, dispatch: u32) -> u32 {
        let p = &self.parameters;
        // Entries leave a buffer in order, so a slot is free when the entry `size` places earlier leaves.
        let leaves = |size: usize, mine: &dyn Fn(&InFlight) -> bool| {
            in_flight.iter().rev().filter(|i| mine(i)).nth(size - 1).map_or(0, |i| i.commit)
        };
        let mut cycle = dispatch.max(leaves(p.reorder_buffer, &|_| true));
        cycle = match class {
            Class::Load => cycle.max(leaves(p.load_queue, &|i| i.class == Class::Load)),
            Class::Store => cycle.max(leaves(p.store_queue, &|i| i.class == Class::Store)),
            _ => cycle,
        };
        // Entries leave the issue queue out of order.
        let mut issues: Vec<u32> = in_flight.iter().map(|i| i.issue).filter(|issue| *issue > cycle).collect();
        issues.sort_unstable_by(|a, b| b.cmp(a));
        issues.get(p.issue_queue - 1).map_or(cycle, |issue| *issue)
    }

    /// Returns the first cycle from `earliest` in which all `sources` are ready.
    fn operands(in_flight: &[InFlight], sources: RegisterSet, earliest: u32) -> u32 {
        let (mut missing, mut cycle) = (sources, earliest);
        for i in in_flight.iter().rev() {
            if missing.intersects(i.results) {
                cycle = cycle.max(i.ready);
            }
            if missing.intersects(i.updates) {
                cycle = cycle.max(i.updated);
            }
            missing = missing.without(i.results | i.updates);
        }
        cycle
    }

    /// Returns the first cycle from `earliest` in which one of `ports` is free for `cycles`, and that port.
    fn issue(in_flight: &[InFlight], ports: &[Port], earliest: u32, cycles: u32) -> (u32, Port) {
        let busy = |port, at| in_flight.iter().any(|i| i.port == port && i.issue < at + cycles && at < i.free);
        let free = |port| (earliest..).find(|at| !busy(port, *at)).map(|at| (at, port));
        ports.iter().filter_map(|port| free(*port)).min().unwrap_or((earliest, NO_PORT))
    }
}

fn serializes(class: Class) -> bool {
    matches!(class, Class::System | Class::Fence | Class::Atomic | Class::Command | Class::Trap)
}

impl Pipeline for OutOfOrder {
    type State = State;

    fn run(&self, state: &mut State, ops: &[Timed], exit: Exit) -> u32 {
        let p = &self.parameters;
        let before = state.commit;
        let in_flight = &mut state.in_flight;
        let (mut dispatch, mut dispatched) = (0, state.dispatched);
        let mut last_commit = before.max(0) as u32;
        let mut committed = in_flight.iter().filter(|i| i.commit == last_commit).count();

        for op in ops.iter().filter(|op| op.class != Class::LoopEnd) {
            let group = if dispatched == p.width { dispatch + 1 } else { dispatch };
            let mut cycle = self.room(in_flight, op.class, group);
            if serializes(op.class) {
                cycle = cycle.max(last_commit);
            }
            dispatched = if cycle > dispatch { 1 } else { dispatched + 1 };
            dispatch = cycle;

            let Resources { ports, latency, pipelined } = self.resources(op.class);
            let operands = Self::operands(in_flight, op.sources, dispatch + 1);
            let latency = latency + (op.beats - 1);
            let busy = if pipelined { op.beats } else { latency };
            let (issue, port) = Self::issue(in_flight, ports, operands, busy);
            let ready = issue + latency;
            let mut commit = ready.max(last_commit);
            if commit == last_commit && committed == p.width {
                commit += 1;
            }
            committed = if commit > last_commit { 1 } else { committed + 1 };
            last_commit = commit;
            in_flight.push(InFlight {
                class: op.class,
                port,
                results: op.results,
                updates: op.updates,
                issue,
                free: issue + busy,
                ready,
                updated: if op.updates.is_empty() { 0 } else { issue + p.address },
                commit,
            });
            if serializes(op.class) {
                (dispatch, dispatched) = (commit, 0);
            }
        }

        if exit.mispredicted {
            // A branch is known when it issues, a loaded target when it arrives.
            let known = in_flight.last().map_or(dispatch, |branch| branch.ready - p.alu);
            (dispatch, dispatched) = (known + p.mispredict, 0);
        } else if exit.taken || dispatched == p.width {
            (dispatch, dispatched) = (dispatch + 1, 0);
        }
        state.dispatched = dispatched;
        state.commit = if ops.is_empty() { before } else { last_commit as i32 } - dispatch as i32;
        rebase(in_flight, dispatch);
        (state.commit + dispatch as i32 - before) as u32
    }
}

/// Makes cycles relative to the next dispatch and removes entries without further influence, so that states with the
/// same future are equal.
fn rebase(in_flight: &mut Vec<InFlight>, dispatch: u32) {
    in_flight.retain(|i| i.commit > dispatch);
    let mut written = RegisterSet::NONE;
    for i in in_flight.iter_mut().rev() {
        i.issue = i.issue.saturating_sub(dispatch);
        i.free = i.free.saturating_sub(dispatch);
        i.ready = i.ready.saturating_sub(dispatch);
        i.updated = i.updated.saturating_sub(dispatch);
        i.commit -= dispatch;
        // The next instruction issues in cycle 1 at the earliest.
        if i.free <= 1 {
            i.port = NO_PORT;
            i.free = 0;
        }
        // An instruction with a ready result still hides the registers from earlier instructions.
        let own = i.results | i.updates;
        (i.results, i.ready) = pending(i.results.without(written), i.ready);
        (i.updates, i.updated) = pending(i.updates.without(written), i.updated);
        written = written | own;
        if !matches!(i.class, Class::Load | Class::Store) {
            i.class = Class::Alu;
        }
    }
}

/// Returns the registers and their `cycle`; empty if no instruction has to wait for them.
fn pending(registers: RegisterSet, cycle: u32) -> (RegisterSet, u32) {
    if cycle <= 1 || registers.is_empty() { (RegisterSet::NONE, 0) } else { (registers, cycle) }
}

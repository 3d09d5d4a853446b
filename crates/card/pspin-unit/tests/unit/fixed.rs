// SPDX-License-Identifier: Apache-2.0
//! Cores with a fixed number of cycles per handler, so that tests of the unit do not depend on code.

use pspin_unit::Cycle;
use pspin_unit::command::{Command, CommandId};
use pspin_unit::cores::{ClusterSide, Cores};
use pspin_unit::fabric::TransferId;
use pspin_unit::her::{HpuId, Range, Role, Task, TaskOutcome};
use pspin_unit::observe::Observer;

/// Action of a handler at its end, one per cycle.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Issues a command.
    Issue(Command),
    /// Waits until the latest command is done.
    Wait,
    /// Copies between memories, and waits for the end of the copy.
    Copy(Range, u32),
    /// Fails.
    Fail(TaskOutcome),
}

/// Cycles of the runtime's loop around an empty handler: from the return of the function pointer's load to the
/// doorbell, and from the doorbell to the next load.
const CALL: u64 = 8;
const LOOP: u64 = 3;

/// Next action of an HPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Loads the function pointer, or waits for it.
    Load,
    /// Rings the doorbell.
    Doorbell,
    /// Performs the handler's action with this index.
    Act(usize),
    /// Waits for a copy.
    Copied(usize, TransferId),
    /// Recovers after the handler failed or the watchdog killed it.
    Recover(TaskOutcome),
}

#[derive(Clone, Copy, Debug)]
struct Hpu {
    next: Next,
    at: Cycle,
    /// Cycle in which the HPU is back at the load of the function pointer; never while a handler runs.
    ready: Cycle,
    /// Cycle in which the driver has the function pointer of the next task.
    pointer: Cycle,
}

/// HPUs whose handlers execute one-cycle instructions; their number depends on role and message.
pub struct Fixed<F> {
    hpus: Vec<Vec<Hpu>>,
    /// Next active cycle of each cluster.
    due: Vec<Cycle>,
    instructions: F,
    pub trap: u64,
    /// Actions at the end of the handler for a task and its packet in L1.
    pub acts: fn(&Task, Range) -> Vec<Act>,
    running: Vec<Vec<(Vec<Act>, Option<CommandId>)>>,
    /// Data of the latest host-direct read.
    pub read: [u8; 64],
}

impl<F: Fn(Role, u32) -> u64> Fixed<F> {
    pub fn new(clusters: u32, hpus: u32, instructions: F) -> Fixed<F> {
        let hpu = Hpu { next: Next::Load, at: Cycle::NEVER, ready: Cycle::ZERO, pointer: Cycle::NEVER };
        let running = vec![vec![(Vec::new(), None); hpus as usize]; clusters as usize];
        Fixed {
            due: vec![Cycle::NEVER; clusters as usize],
            hpus: vec![vec![hpu; hpus as usize]; clusters as usize],
            instructions,
            trap: 20,
            acts: |_, _| Vec::new(),
            running,
            read: [0; 64],
        }
    }

    fn act<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let mut launching = 0;
        for index in 0..self.hpus[usize::from(cluster)].len() {
            let hpu = &mut self.hpus[usize::from(cluster)][index];
            if hpu.at > now {
                continue;
            }
            let (acts, latest) = &mut self.running[usize::from(cluster)][index];
            match hpu.next {
                Next::Load => {
                    let entry = side.start(index as u16, now);
                    let (task, packet) = side.task(index as u16).expect("a task was assigned");
                    (*acts, *latest) = ((self.acts)(task, packet), None);
                    assert_eq!(entry, task.her.context.entry(task.role));
                    // An empty handler takes as long as one with a single instruction.
                    let cycles = (self.instructions)(task.role, task.her.message).max(1) - 1;
                    let at = now + CALL + cycles;
                    let next = if acts.is_empty() { Next::Doorbell } else { Next::Act(0) };
                    *hpu = Hpu { next, at, ready: Cycle::NEVER, pointer: Cycle::NEVER };
                }
                Next::Act(number) => {
                    let done = match acts[number] {
                        Act::Issue(command) => {
                            let id = side.issue(index as u16, command);
                            *latest = id.or(*latest);
                            id.is_some()
                        }
                        Act::Wait => {
                            let driver = &mut side.cluster.drivers[index];
                            let is_done = latest.is_none_or(|id| driver.wait(id));
                            if let (true, Some(id)) = (is_done, *latest) {
                                self.read = driver.data(id);
                            }
                            is_done
                        }
                        Act::Copy(..) => {
                            hpu.at = now + 1_u64;
                            launching |= 1 << index;
                            continue;
                        }
                        Act::Fail(outcome) => {
                            (hpu.next, hpu.at) = (Next::Recover(outcome), now + self.trap);
                            continue;
                        }
                    };
                    let next = if number + 1 < acts.len() { Next::Act(number + 1) } else { Next::Doorbell };
                    (hpu.next, hpu.at) = if done { (next, now + 1_u64) } else { (hpu.next, Cycle::NEVER) };
                }
                Next::Copied(number, id) => {
                    hpu.at = now + 1_u64;
                    if side.is_copied(now, id) {
                        hpu.next = if number + 1 < acts.len() { Next::Act(number + 1) } else { Next::Doorbell };
                    }
                }
                Next::Doorbell | Next::Recover(_) => {
                    let outcome = if let Next::Recover(outcome) = hpu.next { outcome } else { TaskOutcome::Done };
                    hpu.at = Cycle::NEVER;
                    if side.end(index as u16, now, outcome) {
                        (hpu.next, hpu.ready) = (Next::Load, now + LOOP);
                    }
                }
            }
        }
        let chosen = if launching > 0 { side.choose_launch(now, launching) } else { None };
        if let Some(index) = chosen.map(|index| index as usize) {
            let (acts, _) = &self.running[usize::from(cluster)][index];
            let hpu = &mut self.hpus[usize::from(cluster)][index];
            if let Next::Act(number) = hpu.next
                && let Act::Copy(from, to) = acts[number]
            {
                hpu.next = Next::Copied(number, side.copy(now, from, to));
            }
        }
    }

    /// Updates the next active cycle of an HPU's cluster.
    fn wake(&mut self, id: HpuId) {
        let at = self.hpu(id).at;
        let due = &mut self.due[usize::from(id.cluster)];
        *due = at.min(*due);
    }

    fn hpu(&mut self, id: HpuId) -> &mut Hpu {
        &mut self.hpus[usize::from(id.cluster)][usize::from(id.hpu)]
    }
}

impl<F: Fn(Role, u32) -> u64> Cores for Fixed<F> {
    fn next(&self, cluster: u16) -> Cycle {
        self.due[usize::from(cluster)]
    }

    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        self.act(cluster, now, side);
        let next = self.hpus[usize::from(cluster)].iter().map(|hpu| hpu.at).min();
        self.due[usize::from(cluster)] = next.unwrap_or(Cycle::NEVER);
    }
    fn task(&mut self, id: HpuId, at: Cycle) {
        let hpu = self.hpu(id);
        assert_eq!((hpu.next, hpu.at, hpu.pointer), (Next::Load, Cycle::NEVER, Cycle::NEVER));
        hpu.pointer = at;
        hpu.at = at.max(hpu.ready);
        self.wake(id);
    }

    fn resume(&mut self, id: HpuId, at: Cycle) {
        let hpu = self.hpu(id);
        assert!(hpu.next != Next::Load && hpu.at == Cycle::NEVER, "it waits");
        hpu.at = at;
        self.wake(id);
    }

    fn kill(&mut self, id: HpuId, at: Cycle) {
        let trap = self.trap;
        let hpu = self.hpu(id);
        (hpu.next, hpu.at) = (Next::Recover(TaskOutcome::TimedOut), at + trap);
        self.wake(id);
    }
}

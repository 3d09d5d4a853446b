//! Cores that take a fixed number of cycles for a handler, so that the tests of the unit do not depend on code.

use accel::pspin::Cycle;
use accel::pspin::cores::{ClusterSide, Cores};
use accel::pspin::her::{HpuId, Role, TaskOutcome};
use accel::pspin::observe::Observer;

/// The cycles of the runtime's loop around an empty handler: from the return of the load of the function pointer to the
/// doorbell, and from the doorbell to the next load.
const CALL: u64 = 8;
const LOOP: u64 = 3;

/// What an HPU does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It loads the function pointer, or waits for it.
    Load,
    /// It rings the doorbell.
    Doorbell,
    /// The watchdog has killed the handler, and the runtime recovers.
    Recover,
}

#[derive(Clone, Copy, Debug)]
struct Hpu {
    next: Next,
    at: Cycle,
    /// When the HPU is back at the load of the function pointer; never while a handler runs.
    ready: Cycle,
    /// When the driver has the function pointer of the next task.
    pointer: Cycle,
}

/// HPUs whose handlers execute a number of one-cycle instructions, which depends on role and message.
pub struct Fixed<F> {
    hpus: Vec<Vec<Hpu>>,
    instructions: F,
    pub trap: u64,
}

impl<F: Fn(Role, u32) -> u64> Fixed<F> {
    pub fn new(clusters: u32, hpus: u32, instructions: F) -> Fixed<F> {
        let hpu = Hpu { next: Next::Load, at: Cycle::NEVER, ready: Cycle::ZERO, pointer: Cycle::NEVER };
        Fixed { hpus: vec![vec![hpu; hpus as usize]; clusters as usize], instructions, trap: 20 }
    }

    fn hpu(&mut self, id: HpuId) -> &mut Hpu {
        &mut self.hpus[usize::from(id.cluster)][usize::from(id.hpu)]
    }
}

impl<F: Fn(Role, u32) -> u64> Cores for Fixed<F> {
    fn next(&self, cluster: u16) -> Cycle {
        self.hpus[usize::from(cluster)].iter().map(|hpu| hpu.at).min().unwrap_or(Cycle::NEVER)
    }

    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        for index in 0..self.hpus[usize::from(cluster)].len() {
            let hpu = &mut self.hpus[usize::from(cluster)][index];
            if hpu.at > now {
                continue;
            }
            match hpu.next {
                Next::Load => {
                    let entry = side.start(index as u16, now);
                    let (task, _) = side.task(index as u16).expect("a task was assigned");
                    assert_eq!(entry, task.her.context.entry(task.role));
                    // An empty handler takes as long as one with a single instruction.
                    let cycles = (self.instructions)(task.role, task.her.message).max(1) - 1;
                    let at = now + CALL + cycles;
                    *hpu = Hpu { next: Next::Doorbell, at, ready: Cycle::NEVER, pointer: Cycle::NEVER };
                }
                Next::Doorbell | Next::Recover => {
                    let outcome = if hpu.next == Next::Doorbell { TaskOutcome::Done } else { TaskOutcome::TimedOut };
                    hpu.at = Cycle::NEVER;
                    if side.end(index as u16, now, outcome) {
                        (hpu.next, hpu.ready) = (Next::Load, now + LOOP);
                    }
                }
            }
        }
    }

    fn task(&mut self, id: HpuId, at: Cycle) {
        let hpu = self.hpu(id);
        assert_eq!((hpu.next, hpu.at, hpu.pointer), (Next::Load, Cycle::NEVER, Cycle::NEVER));
        hpu.pointer = at;
        hpu.at = at.max(hpu.ready);
    }

    fn resume(&mut self, id: HpuId, at: Cycle, _value: u32) {
        let hpu = self.hpu(id);
        assert!(hpu.next != Next::Load && hpu.at == Cycle::NEVER, "its doorbell waits");
        hpu.at = at;
    }

    fn kill(&mut self, id: HpuId, at: Cycle) {
        let trap = self.trap;
        let hpu = self.hpu(id);
        (hpu.next, hpu.at) = (Next::Recover, at + trap);
    }
}

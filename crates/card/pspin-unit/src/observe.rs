//! What happens in the unit, cycle by cycle: for timelines, tests, and comparison with hardware.

use crate::command::Command;
use crate::cycle::Cycle;
use crate::her::{Feedback, Her, HpuId, Task, TaskOutcome};

/// Something that happens in the unit.
#[derive(Clone, Copy, Debug)]
pub enum Noted<'a> {
    /// A request was accepted.
    HerAccepted(&'a Her),
    /// A task has come to the scheduler of a cluster, which puts it into this place.
    TaskSent {
        /// The cluster.
        cluster: u16,
        /// The place among the cluster's tasks.
        place: u8,
        /// The task.
        task: &'a Task,
    },
    /// The first beat of a task's packet is read from L2.
    DmaStart {
        /// The cluster.
        cluster: u16,
        /// The place of the task.
        place: u8,
    },
    /// The packet of a task is in L1.
    DmaDone {
        /// The cluster.
        cluster: u16,
        /// The place of the task.
        place: u8,
    },
    /// A task was assigned to an HPU.
    Assigned {
        /// The HPU.
        hpu: HpuId,
        /// The place of the task.
        place: u8,
    },
    /// The HPU has the function pointer of its task.
    Start {
        /// The HPU.
        hpu: HpuId,
        /// The task.
        task: &'a Task,
    },
    /// The HPU has rung the doorbell, or given its handler up.
    End {
        /// The HPU.
        hpu: HpuId,
        /// The task.
        task: &'a Task,
        /// How it ended.
        outcome: TaskOutcome,
    },
    /// The doorbell of an HPU has to wait until a feedback of it has been sent.
    Held {
        /// The HPU.
        hpu: HpuId,
    },
    /// An HPU has printed a character.
    Printed {
        /// The HPU.
        hpu: HpuId,
        /// The character.
        byte: u8,
    },
    /// No packet has come for a message for too long, and it is given up.
    Idle {
        /// The message.
        message: u32,
    },
    /// A command has left its HPU.
    Command {
        /// The HPU.
        hpu: HpuId,
        /// Its place in the HPU driver.
        slot: u8,
        /// The command.
        command: &'a Command,
    },
    /// The response to a command has reached its HPU.
    Response {
        /// The HPU.
        hpu: HpuId,
        /// The command, by its place in the HPU driver.
        slot: u8,
    },
    /// The NIC is told that a packet is done.
    Feedback(&'a Feedback),
    /// An access of an HPU to L1 waits a cycle because its bank is taken.
    Conflict {
        /// The HPU.
        hpu: HpuId,
        /// The address.
        address: u32,
    },
    /// An instruction is not in the cache of the cluster.
    Miss {
        /// The HPU.
        hpu: HpuId,
        /// The address of the line.
        address: u32,
    },
}

/// Watches the unit; `()` does nothing and costs nothing.
///
/// Everything is noted when it happens, in the order of cycles, but for two things that are noted when they are decided, a few
/// cycles before their cycle: the assignment of a task and the end of a DMA.
pub trait Observer {
    /// Whether it wants to know anything at all.
    const WATCHES: bool = true;

    /// Notes what happens in a cycle.
    fn note(&mut self, at: Cycle, what: Noted<'_>);
}

impl Observer for () {
    const WATCHES: bool = false;

    #[inline(always)]
    fn note(&mut self, _at: Cycle, _what: Noted<'_>) {}
}

impl<O: Observer> Observer for &mut O {
    const WATCHES: bool = O::WATCHES;

    fn note(&mut self, at: Cycle, what: Noted<'_>) {
        (**self).note(at, what);
    }
}

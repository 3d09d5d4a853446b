// SPDX-License-Identifier: Apache-2.0
//! Events of the unit, cycle by cycle: for timelines, tests, and comparison with the hardware.

use crate::command::Command;
use crate::cycle::Cycle;
use crate::her::{Feedback, Her, HpuId, Task, TaskOutcome};

/// An event of the unit.
#[derive(Clone, Copy, Debug)]
pub enum Noted<'a> {
    /// A request was accepted.
    HerAccepted(&'a Her),
    /// A task arrived at the scheduler of a cluster.
    TaskSent {
        /// Cluster index.
        cluster: u16,
        /// Place of the task in the cluster.
        place: u8,
        /// Task that arrived.
        task: &'a Task,
    },
    /// The DMA of a task's packet reads its first beat from L2.
    DmaStart {
        /// Cluster index.
        cluster: u16,
        /// Place of the task in the cluster.
        place: u8,
    },
    /// The packet of a task is in L1.
    DmaDone {
        /// Cluster index.
        cluster: u16,
        /// Place of the task in the cluster.
        place: u8,
    },
    /// A task was assigned to an HPU.
    Assigned {
        /// HPU that received it.
        hpu: HpuId,
        /// Place of the task in the cluster.
        place: u8,
    },
    /// The HPU received the function pointer of its task.
    Start {
        /// HPU that runs the task.
        hpu: HpuId,
        /// Task that starts.
        task: &'a Task,
    },
    /// The HPU rang the doorbell, or its handler failed.
    End {
        /// HPU that ran the task.
        hpu: HpuId,
        /// Task that ended.
        task: &'a Task,
        /// Outcome of the task.
        outcome: TaskOutcome,
    },
    /// The doorbell of an HPU stalls until an earlier feedback of this HPU is sent.
    Held {
        /// HPU that stalls.
        hpu: HpuId,
    },
    /// An HPU printed a character.
    Printed {
        /// HPU that printed it.
        hpu: HpuId,
        /// Printed character.
        byte: u8,
    },
    /// A message received no packet for too long and is abandoned.
    Idle {
        /// Message number.
        message: u32,
    },
    /// A command left its HPU.
    Command {
        /// HPU that issued it.
        hpu: HpuId,
        /// Slot of the command in the HPU driver.
        slot: u8,
        /// Command issued.
        command: &'a Command,
        /// Tenant of its handler; unknown in the hardware.
        tenant: Option<u32>,
    },
    /// The response to a command reached its HPU.
    Response {
        /// HPU that issued the command.
        hpu: HpuId,
        /// Slot of the command in the HPU driver.
        slot: u8,
    },
    /// The NIC accepted the feedback of a packet.
    Feedback(&'a Feedback),
    /// An L1 access of an HPU stalls for a cycle because of a bank conflict.
    Conflict {
        /// HPU that stalls.
        hpu: HpuId,
        /// Address of the access.
        address: u32,
    },
    /// An instruction missed the cluster's instruction cache.
    Miss {
        /// HPU that requested it.
        hpu: HpuId,
        /// Address of the line.
        address: u32,
    },
}

/// Observer of the unit; `()` ignores all events at no cost.
///
/// Events are noted in the order of their cycles. Two exceptions are noted when decided, a few cycles earlier: the
/// assignment of a task and the end of a DMA.
pub trait Observer {
    /// False if the observer ignores all events.
    const WATCHES: bool = true;

    /// Notes event `what` of cycle `at`.
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

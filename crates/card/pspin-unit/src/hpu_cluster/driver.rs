// SPDX-License-Identifier: Apache-2.0
//! HPU driver (§III-B2): the device from which an HPU loads its task, and to which it gives commands and reports the
//! end.

use std::collections::VecDeque;

use machine::Pspin;

use crate::command::{Command, CommandId};
use crate::cycle::Cycle;
use crate::her::{Failure, TaskOutcome};

/// A task that has ended on its HPU.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Place of the task in its cluster.
    pub place: u8,
    /// Outcome of the task.
    pub outcome: TaskOutcome,
    /// Number of its commands still in flight.
    pub in_flight: u32,
}

/// Slot of a command.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Number of completed uses.
    uses: u32,
    /// Place of the task whose command is in flight.
    owner: Option<u8>,
    /// Set when the task has failed: data read by the command is discarded.
    is_orphan: bool,
    /// Data of the latest host-direct read.
    data: [u8; 64],
}

/// Condition that an HPU waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A command can be issued.
    Issue,
    /// A command is done.
    Command(CommandId),
}

/// Driver of one HPU.
#[derive(Debug)]
pub struct Driver {
    /// Place of the assigned task, from assignment to doorbell.
    pub task: Option<u8>,
    /// Cycle in which the watchdog kills the handler.
    pub watchdog: Cycle,
    /// Tasks that have ended and whose feedback is not sent, in the order of their ends.
    pub finished: VecDeque<Finished>,
    /// Set when the doorbell found `finished` full: the HPU stalls and rings again later.
    pub is_stalled: bool,
    slots: Vec<Slot>,
    /// Number of commands in flight.
    used: u32,
    /// Slot and command waiting for the command unit.
    issuing: Option<(u8, Command)>,
    waits: Option<Wait>,
    /// Failure of the task while its handler continues: the host refused one of its addresses, or the handler reported
    /// an error.
    failure: Option<Failure>,
}

impl Driver {
    /// Creates a driver without a task.
    pub fn new(unit: &Pspin) -> Driver {
        let slot = Slot { uses: 0, owner: None, is_orphan: false, data: [0; 64] };
        Driver {
            task: None,
            watchdog: Cycle::NEVER,
            finished: VecDeque::new(),
            is_stalled: false,
            slots: vec![slot; unit.cluster.commands_in_flight as usize],
            used: 0,
            issuing: None,
            waits: None,
            failure: None,
        }
    }

    /// Returns true if the feedback of a task can be sent.
    #[inline]
    pub fn could_feed_back(&self) -> bool {
        self.finished.front().is_some_and(|finished| finished.in_flight == 0)
    }

    /// Returns the number of a task's commands in flight.
    #[inline]
    pub fn in_flight(&self, place: u8) -> u32 {
        let own = |slot: &&Slot| slot.owner == Some(place);
        if self.used == 0 { 0 } else { self.slots.iter().filter(own).count() as u32 }
    }

    /// Cancels the HPU's wait after the watchdog expires.
    pub fn interrupt(&mut self) {
        self.watchdog = Cycle::NEVER;
        self.waits = None;
    }

    /// Records a failure of the HPU's task, if any. The first failure counts.
    pub fn fail(&mut self, failure: Failure) {
        if self.task.is_some() {
            self.failure.get_or_insert(failure);
        }
    }

    /// Returns the driver's outcome of a task: a refused host access or a reported error turns success into failure.
    #[inline]
    pub fn outcome(&mut self, place: u8, outcome: TaskOutcome) -> TaskOutcome {
        let outcome = match (outcome, self.failure.take()) {
            (TaskOutcome::Done, Some(failure)) => TaskOutcome::Faulted(failure),
            (outcome, _) => outcome,
        };
        if outcome != TaskOutcome::Done {
            let own = self.slots.iter_mut().filter(|slot| slot.owner == Some(place));
            own.for_each(|slot| slot.is_orphan = true);
        }
        self.waits = None;
        outcome
    }

    /// Accepts a command of the current task. Returns its number; `None` if the HPU must wait until it is resumed.
    pub fn issue(&mut self, command: Command) -> Option<CommandId> {
        let free = self.slots.iter().position(|slot| slot.owner.is_none());
        let (Some(index), None, Some(place)) = (free, &self.issuing, self.task) else {
            self.waits = Some(Wait::Issue);
            return None;
        };
        let slot = &mut self.slots[index];
        (slot.owner, slot.is_orphan) = (Some(place), false);
        self.used += 1;
        self.issuing = Some((index as u8, command));
        Some(CommandId::new(index as u8, slot.uses))
    }

    /// Returns true if a command is done, or if its number was never issued.
    pub fn is_done(&self, id: CommandId) -> bool {
        let slot = self.slots.get(usize::from(id.slot()));
        slot.is_none_or(|slot| slot.owner.is_none() || slot.uses & 0xff_ffff != id.uses())
    }

    /// Returns true if a command is done; otherwise the HPU waits until it is resumed.
    pub fn wait(&mut self, id: CommandId) -> bool {
        let is_done = self.is_done(id);
        if !is_done {
            self.waits = Some(Wait::Command(id));
        }
        is_done
    }

    /// Returns the data of the latest host-direct read in the slot of this command.
    pub fn data(&self, id: CommandId) -> [u8; 64] {
        self.slots.get(usize::from(id.slot())).map_or([0; 64], |slot| slot.data)
    }

    /// Returns the slot and command waiting for the command unit.
    pub fn issuing(&self) -> Option<&(u8, Command)> {
        self.issuing.as_ref()
    }

    /// Frees the issue register after the command unit took its command. Returns true if this resumes the HPU.
    pub fn command_has_left(&mut self) -> bool {
        self.issuing = None;
        self.may_issue_now()
    }

    fn may_issue_now(&mut self) -> bool {
        let may = self.issuing.is_none() && self.slots.iter().any(|slot| slot.owner.is_none());
        let goes_on = may && self.waits == Some(Wait::Issue);
        if goes_on {
            self.waits = None;
        }
        goes_on
    }

    /// Returns the place of the task whose command is in flight in a slot.
    pub fn owner(&self, slot: u8) -> Option<u8> {
        self.slots[usize::from(slot)].owner
    }

    /// Returns true if data read by a command is discarded because its task has failed.
    pub fn is_orphan(&self, slot: u8) -> bool {
        self.slots[usize::from(slot)].is_orphan
    }

    /// Processes the response to a command. Returns true if this resumes the HPU.
    pub fn respond(&mut self, index: u8, data: [u8; 64], refused: Option<Failure>) -> bool {
        let slot = &mut self.slots[usize::from(index)];
        let id = CommandId::new(index, slot.uses);
        let owner = slot.owner.take();
        self.used -= u32::from(owner.is_some());
        slot.uses = slot.uses.wrapping_add(1);
        slot.data = data;
        let finished = self.finished.iter_mut().find(|finished| Some(finished.place) == owner);
        match (finished, refused) {
            (Some(finished), refused) => {
                finished.in_flight -= 1;
                if let (TaskOutcome::Done, Some(failure)) = (finished.outcome, refused) {
                    finished.outcome = TaskOutcome::Faulted(failure);
                }
            }
            (None, Some(failure)) => self.fail(failure),
            (None, None) => (),
        }
        if self.waits == Some(Wait::Command(id)) {
            self.waits = None;
            return true;
        }
        self.may_issue_now()
    }
}

//! The HPU driver (§III-B2): the device from which an HPU learns its task, to which it gives commands, and to which it reports
//! the end.

use std::collections::VecDeque;

use machine::Pspin;

use crate::command::{Command, CommandId};
use crate::cycle::Cycle;
use crate::her::{Failure, TaskOutcome};

/// A task that has ended on its HPU.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// The place of the task in its cluster.
    pub place: u8,
    /// How it ended.
    pub outcome: TaskOutcome,
    /// Number of its commands that are still in flight.
    pub in_flight: u32,
}

/// The place of a command.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// How often it was used.
    uses: u32,
    /// The place of the task whose command is in flight.
    owner: Option<u8>,
    /// The task has failed: data that the command brings is discarded.
    is_orphan: bool,
    /// What the latest host-direct read has brought.
    data: [u8; 64],
}

/// What an HPU waits for in its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A command can be issued.
    Issue,
    /// A command is done.
    Command(CommandId),
}

/// The driver of one HPU.
#[derive(Debug)]
pub struct Driver {
    /// The place of the task that was assigned, from the assignment to the doorbell.
    pub task: Option<u8>,
    /// When the watchdog kills the handler.
    pub watchdog: Cycle,
    /// Tasks that have ended and whose feedback has not been sent, in the order in which they ended.
    pub finished: VecDeque<Finished>,
    /// There was no room in `finished` when the doorbell rang: the HPU waits and rings again.
    pub is_stalled: bool,
    slots: Vec<Slot>,
    /// Number of commands in flight.
    used: u32,
    /// The command that waits for the command unit, with its slot.
    issuing: Option<(u8, Command)>,
    waits: Option<Wait>,
    /// The task ends with this failure, although its handler goes on: the host refused an address of it, or the handler has
    /// reported an error.
    failure: Option<Failure>,
}

impl Driver {
    /// A driver without a task.
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

    /// Whether the feedback of a task could be sent now.
    #[inline]
    pub fn could_feed_back(&self) -> bool {
        self.finished.front().is_some_and(|finished| finished.in_flight == 0)
    }

    /// The number of commands of a task that are in flight.
    #[inline]
    pub fn in_flight(&self, place: u8) -> u32 {
        let own = |slot: &&Slot| slot.owner == Some(place);
        if self.used == 0 { 0 } else { self.slots.iter().filter(own).count() as u32 }
    }

    /// The watchdog has bitten: whatever the HPU waited for does not resume it.
    pub fn interrupt(&mut self) {
        self.watchdog = Cycle::NEVER;
        self.waits = None;
    }

    /// The task of the HPU, if there is one, ends with this failure, unless it fails before.
    pub fn fail(&mut self, failure: Failure) {
        if self.task.is_some() {
            self.failure.get_or_insert(failure);
        }
    }

    /// How a task ends for the driver: an access that the host refused makes it fail, and an error that was reported.
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

    /// Takes a command of the current task. Returns its number; `None` when the HPU has to wait, until it is resumed.
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

    /// Whether a command is done. A number that was never given out is.
    pub fn is_done(&self, id: CommandId) -> bool {
        let slot = self.slots.get(usize::from(id.slot()));
        slot.is_none_or(|slot| slot.owner.is_none() || slot.uses & 0xff_ffff != id.uses())
    }

    /// Whether a command is done; otherwise the HPU waits, until it is resumed.
    pub fn wait(&mut self, id: CommandId) -> bool {
        let is_done = self.is_done(id);
        if !is_done {
            self.waits = Some(Wait::Command(id));
        }
        is_done
    }

    /// What the latest host-direct read with the place of this command has brought.
    pub fn data(&self, id: CommandId) -> [u8; 64] {
        self.slots.get(usize::from(id.slot())).map_or([0; 64], |slot| slot.data)
    }

    /// The command that waits for the command unit, with its slot.
    pub fn issuing(&self) -> Option<&(u8, Command)> {
        self.issuing.as_ref()
    }

    /// The command unit has taken the command. Returns whether the HPU goes on because of that.
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

    /// The place of the task whose command is in flight in a slot.
    pub fn owner(&self, slot: u8) -> Option<u8> {
        self.slots[usize::from(slot)].owner
    }

    /// Whether what a command brings is discarded, because its task has failed.
    pub fn is_orphan(&self, slot: u8) -> bool {
        self.slots[usize::from(slot)].is_orphan
    }

    /// The response to a command has come. Returns whether the HPU goes on because of that.
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

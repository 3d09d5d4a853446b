//! The HPU driver (§III-B2): the device from which an HPU learns its task, and to which it reports the end.

use std::collections::VecDeque;

use crate::pspin::cycle::Cycle;
use crate::pspin::her::TaskOutcome;

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

/// The driver of one HPU.
#[derive(Debug)]
pub struct Driver {
    /// The place of the task that was assigned, from the assignment to the doorbell.
    pub task: Option<u8>,
    /// The cycle of the assignment.
    pub assigned: Cycle,
    /// When the watchdog kills the handler.
    pub watchdog: Cycle,
    /// Tasks that have ended and whose feedback has not been sent, in the order in which they ended.
    pub finished: VecDeque<Finished>,
    /// There was no room in `finished` when the doorbell rang: the HPU waits and rings again.
    pub is_stalled: bool,
}

impl Driver {
    /// A driver without a task.
    pub fn new() -> Driver {
        Driver {
            task: None,
            assigned: Cycle::ZERO,
            watchdog: Cycle::NEVER,
            finished: VecDeque::new(),
            is_stalled: false,
        }
    }

    /// Whether the feedback of a task could be sent now.
    pub fn could_feed_back(&self) -> bool {
        self.finished.front().is_some_and(|finished| finished.in_flight == 0)
    }
}

impl Default for Driver {
    fn default() -> Driver {
        Driver::new()
    }
}

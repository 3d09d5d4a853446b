// SPDX-License-Identifier: Apache-2.0
//! Handles of DMA transfers and other commands that outlast the handler's call.

use sim::Time;
use sim::memory::push_frugally;

/// Handle of a command that outlasts its call, such as a DMA transfer: an index of [`Handles`].
pub type DmaHandle = u32;

/// Progress of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Awaiting the card's first reply.
    Issued,
    /// A write to host memory, whose data leaves the card at this time.
    Posted(Time),
    /// In progress.
    Pending {
        /// True if its handler is blocked until completion.
        awaited: bool,
    },
    /// Complete with this result: 0, or a negative number.
    Done(i32),
    /// In progress after its handler ended.
    Orphan,
}

/// A command whose completion its handler has not yet observed.
#[derive(Clone, Copy, Debug)]
struct Started {
    /// Context of the handler.
    owner: u16,
    progress: Progress,
}

/// Result of testing a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The command completed with this result; its handle is now free.
    Done(i32),
    /// The command completes at this time.
    At(Time),
    /// The command is in progress.
    UnderWay,
}

/// Outstanding commands of a unit's handlers.
#[derive(Clone, Debug, Default)]
pub struct Handles {
    slots: Vec<Option<Started>>,
    /// Lower bound of the first free slot.
    search_from: usize,
}

impl Handles {
    /// Allocates the first free handle for a command of the handler in context `owner`.
    pub fn take(&mut self, owner: u16) -> DmaHandle {
        let started = Some(Started { owner, progress: Progress::Issued });
        let taken = self.slots[self.search_from..].iter().take_while(|slot| slot.is_some()).count();
        let free = self.search_from + taken;
        self.search_from = free + 1;
        match self.slots.get_mut(free) {
            Some(slot) => *slot = started,
            None => push_frugally(&mut self.slots, started),
        }
        free as DmaHandle
    }

    fn slot(&mut self, handle: DmaHandle) -> Option<&mut Option<Started>> {
        self.slots.get_mut(handle as usize)
    }

    /// Frees the handle of a command that was rejected.
    pub fn free(&mut self, handle: DmaHandle) {
        if let Some(slot) = self.slot(handle) {
            *slot = None;
            self.search_from = self.search_from.min(handle as usize);
        }
    }

    /// Records that a command has started.
    pub fn start(&mut self, handle: DmaHandle, progress: Progress) {
        if let Some(Some(started)) = self.slot(handle) {
            started.progress = progress;
        }
    }

    /// Tests a command of the handler in context `owner` at time `now`; `None` if `owner` holds no such handle.
    pub fn look(&mut self, handle: DmaHandle, owner: u16, now: Time) -> Option<Look> {
        let slot = self.slot(handle)?;
        let look = match slot.filter(|started| started.owner == owner)?.progress {
            Progress::Issued | Progress::Orphan => return None,
            Progress::Posted(gone) if gone > now => return Some(Look::At(gone)),
            Progress::Pending { .. } => return Some(Look::UnderWay),
            Progress::Posted(_) => Look::Done(0),
            Progress::Done(result) => Look::Done(result),
        };
        self.free(handle);
        Some(look)
    }

    /// Blocks the handler until its command, which is in progress, completes.
    pub fn await_end(&mut self, handle: DmaHandle) {
        self.start(handle, Progress::Pending { awaited: true });
    }

    /// Records the completion of a command with `result`. Returns `None` if the handle was not in use, else the context
    /// of the handler blocked on it, if any.
    pub fn complete(&mut self, handle: DmaHandle, result: i32) -> Option<Option<u16>> {
        let slot = self.slot(handle)?;
        let Started { owner, progress } = (*slot)?;
        match progress {
            Progress::Pending { awaited: true } | Progress::Orphan => self.free(handle),
            _ => *slot = Some(Started { owner, progress: Progress::Done(result) }),
        }
        Some((progress == Progress::Pending { awaited: true }).then_some(owner))
    }

    /// Returns true if the handler that issued the command has ended.
    pub fn is_orphan(&self, handle: DmaHandle) -> bool {
        let slot = self.slots.get(handle as usize).copied().flatten();
        slot.is_none_or(|started| started.progress == Progress::Orphan)
    }

    /// Discards the commands of a handler that ended. Those in progress continue, but no longer write to its memory,
    /// which another handler may own by then.
    pub fn abandon(&mut self, owner: u16) {
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let Some(started) = slot.as_mut().filter(|started| started.owner == owner) else { continue };
            match started.progress {
                Progress::Pending { .. } => started.progress = Progress::Orphan,
                Progress::Orphan => {}
                Progress::Issued | Progress::Posted(_) | Progress::Done(_) => {
                    *slot = None;
                    self.search_from = self.search_from.min(number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ns(100);

    #[test]
    fn a_write_is_done_when_its_data_has_left() {
        let mut handles = Handles::default();
        let handle = handles.take(3);
        assert_eq!(handles.look(handle, 3, NOW), None, "the card has not replied");
        handles.start(handle, Progress::Posted(NOW));
        assert_eq!(handles.look(handle, 2, NOW), None, "another handler's");
        let before = NOW - Time::from_ps(1);
        assert_eq!(handles.look(handle, 3, before), Some(Look::At(NOW)));
        assert_eq!(handles.look(handle, 3, NOW), Some(Look::Done(0)));
        assert_eq!(handles.look(handle, 3, NOW), None, "the handle is free");
    }

    #[test]
    fn a_read_is_done_when_the_card_says_so() {
        let mut handles = Handles::default();
        let [first, second] = [handles.take(3), handles.take(3)];
        for handle in [first, second] {
            handles.start(handle, Progress::Pending { awaited: false });
            assert_eq!(handles.look(handle, 3, NOW), Some(Look::UnderWay));
        }
        assert_eq!(handles.complete(first, -2), Some(None));
        assert_eq!(handles.look(first, 3, NOW), Some(Look::Done(-2)));
        handles.await_end(second);
        assert_eq!(handles.complete(second, 0), Some(Some(3)));
        assert_eq!(handles.complete(second, 0), None, "the handle is free");
        assert_eq!((handles.take(1), handles.take(1), handles.take(1)), (0, 1, 2));
    }

    #[test]
    fn commands_of_a_handler_that_has_ended_keep_their_handles_until_they_are_done() {
        let mut handles = Handles::default();
        let [posted, pending, other] = [handles.take(3), handles.take(3), handles.take(4)];
        handles.start(posted, Progress::Posted(NOW));
        for handle in [pending, other] {
            handles.start(handle, Progress::Pending { awaited: true });
        }
        handles.abandon(3);
        assert_eq!((handles.is_orphan(pending), handles.is_orphan(other)), (true, false));
        assert_eq!((handles.take(3), handles.take(3)), (posted, 3));
        assert_eq!(handles.look(pending, 3, NOW), None);
        assert_eq!(handles.complete(pending, 0), Some(None));
        assert_eq!(handles.take(3), pending);
        assert_eq!(handles.complete(other, 0), Some(Some(4)));
    }
}

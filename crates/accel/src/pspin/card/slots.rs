//! The commands of an HPU that are in flight (PsPIN §III-B2).

use crate::pspin::cycle::Cycle;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// It is free from this cycle on.
    From(Cycle),
    /// The command with this number has it.
    Taken(u32),
}

/// The slots of an HPU.
#[derive(Clone, Debug)]
pub struct Slots(Vec<Slot>);

impl Slots {
    /// Free slots.
    pub fn new(count: u32) -> Slots {
        Slots(vec![Slot::From(Cycle::ZERO); count as usize])
    }

    /// The first cycle in which a slot is free; [`Cycle::NEVER`] when that is not known yet.
    pub fn free_from(&self) -> Cycle {
        let from = self.0.iter().map(|slot| match slot {
            Slot::From(at) => *at,
            Slot::Taken(_) => Cycle::NEVER,
        });
        from.min().unwrap_or(Cycle::NEVER)
    }

    /// A command takes a slot that is free in cycle `now`.
    pub fn take(&mut self, now: Cycle, number: u32) {
        let free = |slot: &&mut Slot| matches!(slot, Slot::From(at) if *at <= now);
        if let Some(slot) = self.0.iter_mut().find(free) {
            *slot = Slot::Taken(number);
        }
    }

    /// The slot of a command is free from a cycle on.
    pub fn free(&mut self, number: u32, from: Cycle) {
        if let Some(slot) = self.0.iter_mut().find(|slot| **slot == Slot::Taken(number)) {
            *slot = Slot::From(from);
        }
    }
}

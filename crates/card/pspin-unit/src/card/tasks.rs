//! The tasks that a card has given to its unit.

use crate::cycle::Cycle;
use crate::her::HpuId;
use accel::{Outcome, Usage};
use accel::{Packet, Task};

/// When and where a handler ran.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Its HPU.
    pub hpu: HpuId,
    /// When the HPU began with it.
    pub start: Cycle,
    /// When it was over.
    pub end: Cycle,
}

/// The end of a handler.
#[derive(Debug)]
pub struct Ended {
    /// What it means for the message.
    pub outcome: Outcome,
    /// What it has used, apart from its occupancy.
    pub usage: Usage,
    /// When and where it ran.
    pub ran: Ran,
}

/// A task in the unit.
#[derive(Debug)]
pub struct Entry {
    /// The task as it was offered.
    pub task: Task,
    /// Its message queue.
    pub queue: u32,
    /// Nobody waits for it any more.
    pub is_withdrawn: bool,
    /// The card has freed its packet, whose buffer is free when the unit has done with it.
    pub frees_packet: bool,
    /// How it has ended.
    pub ended: Option<Ended>,
}

/// The tasks in the unit, by the numbers that requests and feedback have.
#[derive(Debug, Default)]
pub struct Tasks {
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
}

impl Tasks {
    /// Adds a task. Returns its number.
    pub fn add(&mut self, task: Task, queue: u32) -> u64 {
        let entry = Some(Entry { task, queue, is_withdrawn: false, frees_packet: false, ended: None });
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                u64::from(number)
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u64 - 1
            }
        }
    }

    /// A task.
    pub fn get(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// The task with this number.
    pub fn peek(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// Notes that the buffer of a packet is to be freed when the unit has done with it. Returns whether the unit has it.
    pub fn free_later(&mut self, packet: Packet) -> bool {
        let has_it = |entry: &&mut Entry| entry.task.packet.is_some_and(|other| other.buffer == packet.buffer);
        let holder = self.entries.iter_mut().flatten().find(has_it);
        holder.map(|entry| entry.frees_packet = true).is_some()
    }

    /// All tasks, with their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Entry)> {
        (0..).zip(&mut self.entries).filter_map(|(number, entry)| Some((number, entry.as_mut()?)))
    }

    /// Removes a task that the unit has done with.
    pub fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.get_mut(usize::try_from(number).ok()?)?.take()?;
        self.free.push(number as u32);
        Some(entry)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Tasks that a card has submitted to its unit.

use crate::cycle::Cycle;
use crate::her::HpuId;
use accel::{Outcome, Usage};
use accel::{Packet, Task};

/// HPU and duration of a handler's run.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// HPU that ran it.
    pub hpu: HpuId,
    /// Cycle of its start.
    pub start: Cycle,
    /// Cycle of its end.
    pub end: Cycle,
}

/// The end of a handler.
#[derive(Debug)]
pub struct Ended {
    /// Outcome for the message.
    pub outcome: Outcome,
    /// Resources used, except for the occupancy.
    pub usage: Usage,
    /// HPU and duration.
    pub ran: Ran,
}

/// A task in the unit.
#[derive(Debug)]
pub struct Entry {
    /// Task as offered.
    pub task: Task,
    /// Its message queue.
    pub queue: u32,
    /// Set when the card discards its result.
    pub is_withdrawn: bool,
    /// Set when the card has freed its packet; the buffer becomes free when the task ends.
    pub frees_packet: bool,
    /// Set at the end of the handler.
    pub ended: Option<Ended>,
}

/// Tasks in the unit, by the numbers that requests and feedback carry.
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

    /// Returns the task with this number, for changes.
    pub fn get(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    /// Returns the task with this number.
    pub fn peek(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// Marks the buffer of a packet for release at the end of its task. Returns false if the unit does not hold the
    /// packet.
    pub fn free_later(&mut self, packet: Packet) -> bool {
        let has_it = |entry: &&mut Entry| entry.task.packet.is_some_and(|other| other.buffer == packet.buffer);
        let holder = self.entries.iter_mut().flatten().find(has_it);
        holder.map(|entry| entry.frees_packet = true).is_some()
    }

    /// Iterates over all tasks with their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Entry)> {
        (0..).zip(&mut self.entries).filter_map(|(number, entry)| Some((number, entry.as_mut()?)))
    }

    /// Removes a task that the unit has finished.
    pub fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.get_mut(usize::try_from(number).ok()?)?.take()?;
        self.free.push(number as u32);
        Some(entry)
    }
}

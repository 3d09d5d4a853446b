// SPDX-License-Identifier: Apache-2.0
//! Table of all requests and tasks. A request waits in the list of its queue and stays in the table as a task until its
//! end; parts of the unit pass its number on.

use std::ops::{Index, IndexMut};

use crate::cycle::Cycle;
use crate::her::Task;

/// End of a list.
const NONE: u32 = u32::MAX;

/// Number of a task in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(u32);

/// A FIFO of requests.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    length: u32,
}

impl List {
    /// A FIFO without requests.
    pub const EMPTY: List = List { head: NONE, tail: NONE, length: 0 };

    /// Returns true if no request waits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// All requests and tasks, and the cells for waiting requests. Each queue has private cells; the others are shared.
pub struct Tasks {
    entries: Vec<Entry>,
    /// Head of the list of free entries, which keep their last task until reused.
    free: u32,
    shared: u32,
    own: u32,
}

struct Entry {
    task: Task,
    /// First cycle in which the request may be selected.
    from: Cycle,
    next: u32,
}

impl Tasks {
    /// Creates a table for `queues` queues with `own` private cells each, and `shared` cells for all.
    pub fn new(queues: u32, own: u32, shared: u32) -> Tasks {
        Tasks { entries: Vec::new(), free: NONE, shared, own: own.min(u32::MAX / queues.max(1)) }
    }

    /// Returns true if a queue may use one more cell.
    #[inline]
    pub fn has_room(&self, list: &List) -> bool {
        list.length < self.own || self.shared > 0
    }

    /// Adds a task.
    #[inline]
    pub fn add(&mut self, from: Cycle, task: Task) -> TaskId {
        let entry = Entry { task, from, next: NONE };
        let number = self.free;
        if let Some(place) = self.entries.get_mut(number as usize) {
            self.free = place.next;
            *place = entry;
            return TaskId(number);
        }
        self.entries.push(entry);
        TaskId(self.entries.len() as u32 - 1)
    }

    /// Removes a task.
    #[inline]
    pub fn remove(&mut self, TaskId(number): TaskId) {
        self.entries[number as usize].next = self.free;
        self.free = number;
    }

    /// Appends a request to a queue that has room.
    #[inline]
    pub fn push(&mut self, list: &mut List, from: Cycle, task: Task) {
        if list.length >= self.own {
            self.shared -= 1;
        }
        let TaskId(number) = self.add(from, task);
        match list.tail {
            NONE => list.head = number,
            tail => self.entries[tail as usize].next = number,
        }
        list.tail = number;
        list.length += 1;
    }

    /// Returns the first request of a queue.
    pub fn front(&self, list: &List) -> Option<TaskId> {
        (!list.is_empty()).then_some(TaskId(list.head))
    }

    /// Returns true if a queue has a request that may be selected in cycle `now`.
    #[inline]
    pub fn is_ready(&self, list: &List, now: Cycle) -> bool {
        self.entries.get(list.head as usize).is_some_and(|entry| entry.from <= now)
    }

    /// Returns the first cycle in which the first request of a queue may be selected: requests are accepted in the order
    /// of these cycles.
    pub fn first_from(&self, list: &List) -> Option<Cycle> {
        self.entries.get(list.head as usize).map(|entry| entry.from)
    }

    /// Removes the first request from a queue. It stays in the table.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<TaskId> {
        let number = list.head;
        list.head = self.entries.get(number as usize)?.next;
        if list.head == NONE {
            list.tail = NONE;
        }
        if list.length > self.own {
            self.shared += 1;
        }
        list.length -= 1;
        Some(TaskId(number))
    }
}

impl Index<TaskId> for Tasks {
    type Output = Task;

    #[inline]
    fn index(&self, TaskId(number): TaskId) -> &Task {
        &self.entries[number as usize].task
    }
}

impl IndexMut<TaskId> for Tasks {
    #[inline]
    fn index_mut(&mut self, TaskId(number): TaskId) -> &mut Task {
        &mut self.entries[number as usize].task
    }
}

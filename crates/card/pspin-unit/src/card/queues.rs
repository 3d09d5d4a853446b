// SPDX-License-Identifier: Apache-2.0
//! Assignment of message queues to messages. The queue number determines the home cluster (PsPIN §III-B1).

use std::collections::HashMap;

use machine::Pspin;

use accel::MessageId;

/// State of a message queue.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    is_taken: bool,
    /// Tasks in the unit.
    tasks: u32,
    /// Set when the message has ended.
    has_ended: bool,
}

/// All message queues, by number.
pub struct Queues {
    queues: Vec<Queue>,
    of: HashMap<MessageId, u32>,
    clusters: u32,
    /// Home cluster for the next message without a preference.
    next: u32,
}

impl Queues {
    /// Creates free queues.
    pub fn new(unit: &Pspin) -> Queues {
        let queues = vec![Queue::default(); unit.mpq.queues as usize];
        Queues { queues, of: HashMap::new(), clusters: unit.units.clusters, next: 0 }
    }

    /// Returns the queue of a message for one more task. A new message takes a free queue of cluster `home`. If all of
    /// those are taken or `home` is `None`, any cluster may be the home. Returns `None` if all queues are taken.
    pub fn enter(&mut self, message: MessageId, home: Option<u16>) -> Option<u32> {
        let queue = match self.of.get(&message) {
            Some(queue) => *queue,
            None => {
                let wanted = home.map_or(self.next, u32::from);
                let homes = (0..self.clusters).map(|step| (wanted + step) % self.clusters);
                let queue = homes.filter_map(|home| self.free(home)).next()?;
                if home.is_none() {
                    self.next = (wanted + 1) % self.clusters;
                }
                self.queues[queue as usize] = Queue { is_taken: true, ..Queue::default() };
                self.of.insert(message, queue);
                queue
            }
        };
        self.queues[queue as usize].tasks += 1;
        Some(queue)
    }

    /// Returns the free queue with the lowest number whose home cluster is `home`.
    fn free(&self, home: u32) -> Option<u32> {
        let queues = (home as usize..self.queues.len()).step_by(self.clusters as usize);
        queues.map(|queue| queue as u32).find(|queue| !self.queues[*queue as usize].is_taken)
    }

    /// Removes a task that has ended. Returns true if its queue is now free.
    pub fn leave(&mut self, queue: u32) -> bool {
        self.queues[queue as usize].tasks -= 1;
        self.release(queue)
    }

    /// Ends a message. Returns its queue if it is now free.
    pub fn end(&mut self, message: MessageId) -> Option<u32> {
        let queue = self.of.remove(&message)?;
        self.queues[queue as usize].has_ended = true;
        self.release(queue).then_some(queue)
    }

    fn release(&mut self, queue: u32) -> bool {
        let entry = &mut self.queues[queue as usize];
        let is_free = entry.has_ended && entry.tasks == 0;
        if is_free {
            *entry = Queue::default();
        }
        is_free
    }
}

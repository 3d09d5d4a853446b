//! The message queues that messages of the card have. The number of a queue decides the home cluster (PsPIN §III-B1).

use std::collections::HashMap;

use machine::Pspin;

use accel::MessageId;

/// A queue that belongs to a message, or did until its tasks end.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    is_taken: bool,
    /// Tasks in the unit.
    tasks: u32,
    /// The message has ended.
    has_ended: bool,
}

/// All message queues, by number.
pub struct Queues {
    queues: Vec<Queue>,
    of: HashMap<MessageId, u32>,
    clusters: u32,
    /// The home cluster of the next message that may have any.
    next: u32,
}

impl Queues {
    /// Free queues.
    pub fn new(unit: &Pspin) -> Queues {
        let queues = vec![Queue::default(); unit.mpq.queues as usize];
        Queues { queues, of: HashMap::new(), clusters: unit.units.clusters, next: 0 }
    }

    /// The queue of a message for one more task, at first a free one with this home cluster. When all of those are taken, or
    /// no cluster is given, any cluster may be the home. Returns `None` when all queues are taken.
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

    /// The free queue with the lowest number that has this home cluster.
    fn free(&self, home: u32) -> Option<u32> {
        let queues = (home as usize..self.queues.len()).step_by(self.clusters as usize);
        queues.map(|queue| queue as u32).find(|queue| !self.queues[*queue as usize].is_taken)
    }

    /// A task of a queue has ended. Returns whether the queue is free now.
    pub fn leave(&mut self, queue: u32) -> bool {
        self.queues[queue as usize].tasks -= 1;
        self.release(queue)
    }

    /// A message has ended. Returns its queue if that is free now.
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

//! The cells in which requests wait: linked lists that share one memory.

use crate::pspin::cycle::Cycle;
use crate::pspin::her::Her;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// A queue of requests.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    length: u32,
}

impl List {
    /// A queue without requests.
    pub const EMPTY: List = List { head: NONE, tail: NONE, length: 0 };

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The cells of all queues. Each queue has some of its own; the others are shared.
pub struct Cells {
    cells: Vec<Cell>,
    /// The head of the list of cells that are free.
    free: u32,
    shared: u32,
    own: u32,
}

struct Cell {
    her: Option<Her>,
    /// From when on the request may be selected.
    from: Cycle,
    next: u32,
}

impl Cells {
    /// Cells for `queues` queues.
    pub fn new(queues: u32, own: u32, shared: u32) -> Cells {
        Cells { cells: Vec::new(), free: NONE, shared, own: own.min(u32::MAX / queues.max(1)) }
    }

    /// Whether a queue may have one more cell.
    pub fn has_room(&self, list: &List) -> bool {
        list.length < self.own || self.shared > 0
    }

    /// Appends a request to a queue that has room.
    pub fn push(&mut self, list: &mut List, from: Cycle, her: Her) {
        if list.length >= self.own {
            self.shared -= 1;
        }
        let cell = Cell { her: Some(her), from, next: NONE };
        let index = match self.free {
            NONE => {
                self.cells.push(cell);
                self.cells.len() as u32 - 1
            }
            index => {
                self.free = self.cells[index as usize].next;
                self.cells[index as usize] = cell;
                index
            }
        };
        match list.tail {
            NONE => list.head = index,
            tail => self.cells[tail as usize].next = index,
        }
        list.tail = index;
        list.length += 1;
    }

    /// The first request of a queue, and from when on it may be selected.
    pub fn front(&self, list: &List) -> Option<(&Her, Cycle)> {
        let cell = self.cells.get(list.head as usize)?;
        Some((cell.her.as_ref()?, cell.from))
    }

    /// Removes the first request of a queue.
    pub fn pop(&mut self, list: &mut List) -> Option<Her> {
        let cell = self.cells.get_mut(list.head as usize)?;
        let her = cell.her.take();
        let next = std::mem::replace(&mut cell.next, self.free);
        self.free = list.head;
        list.head = next;
        if next == NONE {
            list.tail = NONE;
        }
        if list.length > self.own {
            self.shared += 1;
        }
        list.length -= 1;
        her
    }
}

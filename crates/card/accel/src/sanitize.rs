//! Finds data races of handlers on memory that they share, and reads of HPU memory that nobody has written (`spinrun --sanitize`).
//!
//! Two accesses to the same byte race when one of them writes and nothing orders them. What orders is (sPIN §3.2): the header handler
//! of a message ends before its payload handlers begin, and these end before its completion handler begins; and who changes or
//! reads a word by an atomic operation, or next to a fence, comes after all who have done so before. Vector clocks record this
//! order (Lamport), one component a handler; components are used again when [`SLOTS`] later handlers have begun, so that a race with
//! a handler that ended that long ago is not found. Plain loads and stores cannot be told from relaxed atomic ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hpu::Watcher;

use crate::task::{MessageId, Role};

/// Number of handlers whose order is known at once.
const SLOTS: usize = 128;
/// Number of reads of a byte that are remembered after its latest write.
const READS: usize = 4;

/// What each handler has done before: as much of it as its number of steps.
type Clock = [u32; SLOTS];

/// An access that has happened.
#[derive(Clone, Copy, Debug)]
struct Past {
    slot: usize,
    /// The step of its handler.
    step: u32,
    pc: u32,
    role: Role,
}

/// The accesses to a byte that a later one may race with.
#[derive(Default)]
struct Byte {
    write: Option<Past>,
    reads: Vec<Past>,
}

/// A handler that runs.
struct Running {
    slot: usize,
    message: MessageId,
    role: Role,
    clock: Box<Clock>,
}

/// The order of a message's handlers.
struct Message {
    /// What its header handler has done before its end.
    header: Box<Clock>,
    /// What all its handlers have done before their ends.
    all: Box<Clock>,
}

/// A mistake that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Two accesses race.
    Race {
        /// Card address of the first byte of the later access.
        address: u32,
        /// Its bytes.
        bytes: u32,
        /// Whether it writes; `pc` is its instruction.
        write: bool,
        /// Its instruction.
        pc: u32,
        /// Whether the earlier access writes.
        earlier_writes: bool,
        /// The instruction of the earlier access.
        earlier_pc: u32,
        /// The role of its handler.
        earlier_role: Role,
    },
    /// Memory is read that nobody has written.
    Unwritten {
        /// Card address.
        address: u32,
        /// Bytes.
        bytes: u32,
        /// The instruction.
        pc: u32,
    },
}

/// The memory of one unit and the order of its handlers.
#[derive(Default)]
pub struct Sanitizer {
    bytes: HashMap<u32, Byte>,
    /// What was done before the latest ordered access to a word.
    words: HashMap<u32, Box<Clock>>,
    running: BTreeMap<u32, Running>,
    messages: HashMap<MessageId, Message>,
    /// Steps that each slot has made.
    steps: Vec<u32>,
    next_slot: usize,
    /// HPU memory that is allocated and that nobody has written: start and end of each piece.
    unwritten: BTreeMap<u32, u32>,
    /// Pairs of instructions that are known to race, and instructions that are known to read what nobody has written.
    known: BTreeSet<(u32, u32)>,
    found: Vec<(u32, Finding)>,
    /// The context that runs, and its instruction.
    now: (u32, u32),
}

impl Sanitizer {
    /// A handler begins in a context.
    pub fn begins(&mut self, context: u32, message: MessageId, role: Role) {
        self.steps.resize(SLOTS, 0);
        let slot = self.next_slot;
        self.next_slot = (slot + 1) % SLOTS;
        let mut clock = Box::new([0; SLOTS]);
        if let Some(before) = self.messages.get(&message) {
            join(&mut clock, if role == Role::Completion { &before.all } else { &before.header });
        }
        self.steps[slot] += 1;
        clock[slot] = self.steps[slot];
        self.running.insert(context, Running { slot, message, role, clock });
    }

    /// The handler in a context has ended.
    pub fn ends(&mut self, context: u32) {
        let Some(ended) = self.running.remove(&context) else { return };
        let none = || Message { header: Box::new([0; SLOTS]), all: Box::new([0; SLOTS]) };
        let message = self.messages.entry(ended.message).or_insert_with(none);
        if ended.role == Role::Header {
            join(&mut message.header, &ended.clock);
        }
        join(&mut message.all, &ended.clock);
    }

    /// No handler of a message follows.
    pub fn forget(&mut self, message: MessageId) {
        self.messages.remove(&message);
    }

    /// A program gets HPU memory.
    pub fn allocated(&mut self, start: u32, length: u32) {
        (start..start + length).for_each(|address| drop(self.bytes.remove(&address)));
        self.unwritten.insert(start, start + length);
    }

    /// The card or the host writes memory.
    pub fn written(&mut self, start: u32, length: u32) {
        let end = start.saturating_add(length);
        let pieces: Vec<(u32, u32)> = self.unwritten.range(..end).map(|(start, end)| (*start, *end)).collect();
        for (from, to) in pieces.into_iter().filter(|(_, to)| *to > start) {
            self.unwritten.remove(&from);
            if from < start {
                self.unwritten.insert(from, start);
            }
            if end < to {
                self.unwritten.insert(end, to);
            }
        }
    }

    /// The context whose handler runs next.
    pub fn switch(&mut self, context: u32) {
        self.now.0 = context;
    }

    /// The instruction of the running handler.
    pub fn at(&mut self, pc: u32) {
        self.now.1 = pc;
    }

    /// What has been found since the last call, with the context of each handler.
    pub fn take(&mut self) -> Vec<(u32, Finding)> {
        std::mem::take(&mut self.found)
    }

    /// The running handler accesses shared memory.
    pub fn access(&mut self, address: u32, bytes: u32, write: bool, orders: bool) {
        let (context, pc) = self.now;
        // A counter that only atomic operations change may well begin at 0.
        if !write && !orders && self.is_unwritten(address, bytes) && self.known.insert((pc, pc)) {
            self.found.push((context, Finding::Unwritten { address, bytes, pc }));
        }
        if write {
            self.written(address, bytes);
        }
        let Some(running) = self.running.get_mut(&context) else { return };
        if orders {
            // Who comes next to this word, by such an access, comes after all that this handler has done.
            let word = self.words.entry(address & !3).or_insert_with(|| Box::new([0; SLOTS]));
            join(&mut running.clock, word);
            join(word, &running.clock);
            self.steps[running.slot] += 1;
            running.clock[running.slot] = self.steps[running.slot];
            return;
        }
        let now = Past { slot: running.slot, step: running.clock[running.slot], pc, role: running.role };
        let mut race = None;
        for address in address..address + bytes {
            let byte = self.bytes.entry(address).or_default();
            let is_before = |past: &Past| past.slot == now.slot || running.clock[past.slot] >= past.step;
            let earlier = byte.write.filter(|past| !is_before(past)).map(|past| (past, true));
            let read = || byte.reads.iter().find(|past| write && !is_before(past)).map(|past| (*past, false));
            race = race.or(earlier.or_else(read));
            if write {
                (byte.write, byte.reads) = (Some(now), Vec::new());
            } else {
                byte.reads.retain(|past| past.slot != now.slot);
                if byte.reads.len() == READS {
                    byte.reads.remove(0);
                }
                byte.reads.push(now);
            }
        }
        if let Some((earlier, earlier_writes)) = race
            && self.known.insert((pc.min(earlier.pc), pc.max(earlier.pc)))
        {
            let (earlier_pc, earlier_role) = (earlier.pc, earlier.role);
            let race = Finding::Race { address, bytes, write, pc, earlier_writes, earlier_pc, earlier_role };
            self.found.push((context, race));
        }
    }

    /// Whether nobody has written any of these bytes. Of a structure that is copied, padding may not have been.
    fn is_unwritten(&self, address: u32, bytes: u32) -> bool {
        let piece = self.unwritten.range(..=address).next_back();
        piece.is_some_and(|(_, end)| address + bytes <= *end)
    }
}

impl Watcher for Sanitizer {
    fn stops(&mut self, pc: u32) -> bool {
        self.at(pc);
        false
    }

    fn wants_accesses(&self) -> bool {
        true
    }

    fn accesses(&mut self, address: u32, bytes: u32, write: bool, orders: bool) {
        self.access(address, bytes, write, orders);
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(step, other)| *step = (*step).max(*other));
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: u32 = 0x1000_0000;

    /// Number of races of two handlers of these messages and roles; with `ordered`, the second begins when the first has ended.
    fn races(first: (u64, Role), second: (u64, Role), ordered: bool, accesses: [(bool, bool); 2]) -> usize {
        let mut sanitizer = Sanitizer::default();
        sanitizer.begins(0, first.0, first.1);
        if !ordered {
            sanitizer.begins(1, second.0, second.1);
        }
        for (context, (write, orders)) in (0..).zip(accesses) {
            if context == 1 && ordered {
                sanitizer.ends(0);
                sanitizer.begins(1, second.0, second.1);
            }
            sanitizer.switch(context);
            sanitizer.at(0x1d00_0000 + 4 * context);
            sanitizer.access(STATE, 4, write, orders);
        }
        sanitizer.take().len()
    }

    #[test]
    fn what_nothing_orders_races() {
        let (header, payload, completion) = ((7, Role::Header), (7, Role::Payload), (7, Role::Completion));
        let plain = |write| (write, false);
        let both = [plain(true), plain(true)];
        assert_eq!(races(payload, payload, false, both), 1);
        assert_eq!(races(payload, payload, false, [plain(false), plain(true)]), 1);
        assert_eq!(races(payload, payload, false, [plain(true), plain(false)]), 1);
        assert_eq!(races(payload, payload, false, [plain(false), plain(false)]), 0);
        // One after the other, but by chance.
        assert_eq!(races(payload, payload, true, both), 1);
        assert_eq!(races(header, payload, true, both), 0);
        assert_eq!(races(payload, completion, true, both), 0);
        assert_eq!(races(payload, (8, Role::Payload), true, both), 1);
        assert_eq!(races(payload, payload, false, [(true, true), (true, true)]), 0);
    }

    #[test]
    fn a_word_that_is_passed_on_orders_what_was_done_before() {
        for (orders, found) in [(true, 0), (false, 2)] {
            let mut sanitizer = Sanitizer::default();
            sanitizer.begins(0, 1, Role::Payload);
            sanitizer.begins(1, 1, Role::Payload);
            let accesses = [
                (0, STATE + 4, true, false),
                (0, STATE, true, orders),
                (1, STATE, false, orders),
                (1, STATE + 4, false, false),
            ];
            for (pc, (context, address, write, orders)) in (0..).zip(accesses) {
                sanitizer.switch(context);
                sanitizer.at(pc);
                sanitizer.access(address, 4, write, orders);
            }
            assert_eq!(sanitizer.take().len(), found);
        }
    }

    #[test]
    fn memory_that_nobody_has_written_is_found_once() {
        let mut sanitizer = Sanitizer::default();
        sanitizer.allocated(STATE, 64);
        sanitizer.written(STATE + 8, 8);
        sanitizer.begins(0, 1, Role::Header);
        let mut read = |at: u32, bytes| {
            sanitizer.at(at);
            sanitizer.access(STATE + at, bytes, false, false);
            sanitizer.take()
        };
        assert_eq!(read(0, 4), [(0, Finding::Unwritten { address: STATE, bytes: 4, pc: 0 })]);
        assert_eq!(read(0, 4), []);
        assert_eq!(read(8, 8), []);
        assert_eq!(read(4, 8), []); // a part is written
        assert_eq!(read(16, 4).len(), 1);
        sanitizer.access(STATE + 32, 4, false, true);
        assert_eq!(sanitizer.take(), []);
    }
}

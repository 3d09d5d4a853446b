// SPDX-License-Identifier: Apache-2.0
//! Detects data races of handlers on shared memory, and reads of uninitialised HPU memory (`spinrun --sanitize`).
//!
//! Two accesses to the same byte race if at least one writes and no happens-before relation orders them. The relation
//! (sPIN §3.2): a header handler precedes its message's payload handlers, which precede its completion handler; and an
//! atomic access to a word, or a plain access next to a fence, follows all earlier such accesses to that word. Vector
//! clocks (Lamport) record the relation with one component for each handler. Components are reused after [`SLOTS`]
//! later handlers start, so a race with a handler that ended that long ago is missed. Plain loads and stores cannot be
//! distinguished from relaxed atomic ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hpu::Watcher;

use crate::task::{MessageId, Role};

/// Number of handlers tracked at once.
const SLOTS: usize = 128;
/// Number of remembered reads of a byte since its latest write.
const READS: usize = 4;

/// Vector clock: the latest step of each slot that happened before.
type Clock = [u32; SLOTS];

/// A past access.
#[derive(Clone, Copy, Debug)]
struct Past {
    slot: usize,
    /// Step of its handler.
    step: u32,
    pc: u32,
    role: Role,
}

/// Past accesses to a byte that a later access may race with.
#[derive(Default)]
struct Byte {
    write: Option<Past>,
    reads: Vec<Past>,
}

/// A running handler.
struct Running {
    slot: usize,
    message: MessageId,
    role: Role,
    clock: Box<Clock>,
}

/// Happens-before state of a message's handlers.
struct Message {
    /// Clock of the header handler at its end.
    header: Box<Clock>,
    /// Merged clock of all its handlers at their ends.
    all: Box<Clock>,
}

/// A detected mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Two accesses race.
    Race {
        /// Card address of the first byte of the later access.
        address: u32,
        /// Size of the later access in bytes.
        bytes: u32,
        /// True if the later access writes.
        write: bool,
        /// Instruction of the later access.
        pc: u32,
        /// True if the earlier access writes.
        earlier_writes: bool,
        /// Instruction of the earlier access.
        earlier_pc: u32,
        /// Role of the handler of the earlier access.
        earlier_role: Role,
    },
    /// A read of uninitialised memory.
    Unwritten {
        /// Card address.
        address: u32,
        /// Size in bytes.
        bytes: u32,
        /// Address of the instruction.
        pc: u32,
    },
}

/// Access history of one unit's memory, and the order of its handlers.
#[derive(Default)]
pub struct Sanitizer {
    bytes: HashMap<u32, Byte>,
    /// Clock of the latest ordered access to each word.
    words: HashMap<u32, Box<Clock>>,
    running: BTreeMap<u32, Running>,
    messages: HashMap<MessageId, Message>,
    /// Number of steps of each slot.
    steps: Vec<u32>,
    next_slot: usize,
    /// Allocated but uninitialised HPU memory: start and end of each piece.
    unwritten: BTreeMap<u32, u32>,
    /// Reported pairs of racing instructions, and reported instructions that read uninitialised memory (as pairs of
    /// equal addresses).
    known: BTreeSet<(u32, u32)>,
    found: Vec<(u32, Finding)>,
    /// Running context, and its current instruction.
    now: (u32, u32),
}

impl Sanitizer {
    /// Records the start of a handler in `context`.
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

    /// Records the end of the handler in `context`.
    pub fn ends(&mut self, context: u32) {
        let Some(ended) = self.running.remove(&context) else { return };
        let none = || Message { header: Box::new([0; SLOTS]), all: Box::new([0; SLOTS]) };
        let message = self.messages.entry(ended.message).or_insert_with(none);
        if ended.role == Role::Header {
            join(&mut message.header, &ended.clock);
        }
        join(&mut message.all, &ended.clock);
    }

    /// Forgets a message that has no further handlers.
    pub fn forget(&mut self, message: MessageId) {
        self.messages.remove(&message);
    }

    /// Records the allocation of HPU memory.
    pub fn allocated(&mut self, start: u32, length: u32) {
        (start..start + length).for_each(|address| drop(self.bytes.remove(&address)));
        self.unwritten.insert(start, start + length);
    }

    /// Records a write by the card or the host.
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

    /// Switches to the handler in `context`.
    pub fn switch(&mut self, context: u32) {
        self.now.0 = context;
    }

    /// Sets the current instruction of the running handler.
    pub fn at(&mut self, pc: u32) {
        self.now.1 = pc;
    }

    /// Returns the findings since the last call, with the context of each handler.
    pub fn take(&mut self) -> Vec<(u32, Finding)> {
        std::mem::take(&mut self.found)
    }

    /// Records an access of the running handler to shared memory.
    pub fn access(&mut self, address: u32, bytes: u32, write: bool, orders: bool) {
        let (context, pc) = self.now;
        // A counter that only atomic operations change may start at 0 without a write.
        if !write && !orders && self.is_unwritten(address, bytes) && self.known.insert((pc, pc)) {
            self.found.push((context, Finding::Unwritten { address, bytes, pc }));
        }
        if write {
            self.written(address, bytes);
        }
        let Some(running) = self.running.get_mut(&context) else { return };
        if orders {
            // The next ordered access to this word follows everything that this handler has done so far.
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

    /// Returns true if all of these bytes are uninitialised. Padding of a copied structure may be uninitialised.
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

    /// Returns the number of races between two handlers of these messages and roles. With `ordered`, the second starts
    /// after the first ends.
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
        // They run one after the other only by chance.
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
        assert_eq!(read(4, 8), []); // partly written
        assert_eq!(read(16, 4).len(), 1);
        sanitizer.access(STATE + 32, 4, false, true);
        assert_eq!(sanitizer.take(), []);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! One word of state per operation.

use std::ops::Range;

use sim::memory::{HugePageSlice, prefetch};

/// Set in the word of a blocked operation; the other bits count its unsatisfied dependencies.
const BLOCKED: u32 = 1 << 31;

/// One 32-bit word for each operation. Its meaning depends on the stage of the operation:
///
/// 1. while the operation is blocked, the number of its unsatisfied dependencies;
/// 2. while the operation or its message waits in a list (posted receives, unexpected messages, and in LogGOPS those
///    that wait for a CPU and a NIC), the next member of that list;
/// 3. after a send is matched, its receive.
///
/// The stages never overlap, so one word is enough for all three.
#[derive(Debug)]
pub(crate) struct OperationTable(HugePageSlice<u32>);

impl OperationTable {
    /// Creates words for `count` unblocked operations. Only the words of `used` will be accessed soon.
    pub fn new(count: usize, used: Range<usize>) -> OperationTable {
        let words = HugePageSlice::zeroed(count);
        words.populate(used);
        OperationTable(words)
    }

    /// Returns the number of operations.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Stage 1: adds a dependency to an operation, which is blocked from now on.
    #[inline(always)]
    pub fn add_dependency(&mut self, op: u32) {
        let word = &mut self.0[op as usize];
        *word = (*word | BLOCKED) + 1;
    }

    /// Returns true if an operation is in stage 1.
    #[inline(always)]
    pub fn is_blocked(&self, op: u32) -> bool {
        self.0[op as usize] & BLOCKED != 0
    }

    /// Stage 1: satisfies one dependency of an operation. Returns true if it was the last, which ends stage 1.
    #[inline(always)]
    pub fn satisfy_dependency(&mut self, op: u32) -> bool {
        let word = &mut self.0[op as usize];
        *word -= 1;
        let is_ready = *word == BLOCKED;
        if is_ready {
            *word = 0;
        }
        is_ready
    }

    /// Stage 2: returns the list member after `op`.
    #[inline(always)]
    pub fn next(&self, op: u32) -> u32 {
        self.0[op as usize]
    }

    /// Stage 2: sets the list member after `op`.
    #[inline(always)]
    pub fn set_next(&mut self, op: u32, next: u32) {
        self.0[op as usize] = next;
    }

    /// Stage 3: returns the receive matched with a send.
    #[inline(always)]
    pub fn receive_of(&self, send: u32) -> u32 {
        self.0[send as usize]
    }

    /// Stage 3: stores the receive matched with a send.
    #[inline(always)]
    pub fn set_receive_of(&mut self, send: u32, receive: u32) {
        self.0[send as usize] = receive;
    }

    /// Prefetches the word of an operation. Any number is allowed.
    #[inline(always)]
    pub fn prefetch(&self, op: usize) {
        prefetch(self.0.as_ptr().wrapping_add(op));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_blocked_until_its_last_dependency_is_satisfied() {
        let mut words = OperationTable::new(3, 0..3);
        words.add_dependency(1);
        words.add_dependency(1);
        assert_eq!([0, 1, 2].map(|op| words.is_blocked(op)), [false, true, false]);
        assert!(!words.satisfy_dependency(1));
        assert!(words.is_blocked(1));
        assert!(words.satisfy_dependency(1));
        assert!(!words.is_blocked(1));
        words.set_next(1, 2);
        assert_eq!((words.next(1), words.is_blocked(1)), (2, false));
        words.set_receive_of(1, 0);
        assert_eq!((words.receive_of(1), words.len()), (0, 3));
    }
}

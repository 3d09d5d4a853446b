// SPDX-License-Identifier: Apache-2.0
//! Memory protection (§III-B2, S7): the memory that a task's handler may use, with byte granularity.

use hpu::Program;

use crate::her::{Range, Task};
use crate::memory::{Arena, Place};

/// A range of addresses that a handler may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Address range.
    pub range: Range,
    /// True if the handler may write there.
    pub write: bool,
}

/// All ranges that a handler may use, in the common address space ([`Arena::common`](crate::memory::Arena)).
#[derive(Clone, Debug, Default)]
pub struct Spans {
    spans: Vec<Span>,
    /// Index of the latest hit.
    last: usize,
}

impl Spans {
    /// Iterates over the ranges.
    pub fn iter(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter()
    }

    /// Returns the ranges of the booting runtime: those that an HPU may always use, and the initial content of handler
    /// memory.
    pub fn of_boot(stack: Range, program: &Program) -> Spans {
        let [static_data, handler_data] = program_data(program);
        let code = Range { address: Arena::start(Place::Program), size: program.program_segment().len() as u32 };
        let ranges = [(stack, true), (static_data, true), (code, false), (handler_data, true)];
        Spans { spans: ranges.map(|(range, write)| Span { range, write }).to_vec(), last: 0 }
    }

    /// Creates spans from these ranges.
    pub fn of(spans: Vec<Span>) -> Spans {
        Spans { spans, last: 0 }
    }

    /// Adds the ranges of a task's handler to those that the HPU may always use: the packet in L1 and in L2, and the
    /// handler memory and scratchpads of its context.
    pub fn allow(&mut self, task: &Task, packet: Range) {
        self.keep_own();
        let context = &task.her.context;
        for ranges in [&[packet, task.her.packet, context.handler_memory], &context.scratchpads[..]] {
            for range in ranges.iter().copied().filter(|range| range.size > 0) {
                self.spans.push(Span { range, write: true });
            }
        }
    }

    /// Revokes all ranges except those that an HPU may always use: its own stack, the program's static data, and its
    /// code (read only).
    pub fn keep_own(&mut self) {
        self.spans.truncate(OF_HPU);
        self.last = 0;
    }

    /// Returns true if `size` bytes at an address may be read or written on the handler's behalf. Always true for no
    /// bytes.
    pub fn has(&self, address: u32, size: u32, write: bool) -> bool {
        size == 0 || self.spans.iter().any(|span| span.range.holds(address, size) && (span.write || !write))
    }

    /// Returns true if the handler may access `size` bytes at an address.
    #[inline]
    pub fn allows(&mut self, address: u32, size: u32, write: bool) -> bool {
        let allowed = |span: &Span| span.range.holds(address, size) && (span.write || !write);
        if self.spans.get(self.last).is_some_and(allowed) {
            return true;
        }
        match self.spans.iter().position(allowed) {
            Some(place) => {
                self.last = place;
                true
            }
            None => false,
        }
    }
}

/// Number of ranges that an HPU may always use.
const OF_HPU: usize = 3;

/// First address of L2 handler memory that drivers of the published interface assign to contexts.
const FIRST_CONTEXT: u32 = 0x1C30_0000;

/// Returns the static data of a program, which all of its handlers may use, and the initial handler memory of its first
/// context (`.l2_handler_data`), which only that context's handlers may use.
pub fn program_data(program: &Program) -> [Range; 2] {
    let parts = program.data_parts();
    let (of_all, of_context) = parts.split_at(parts.partition_point(|part| part.start < FIRST_CONTEXT));
    [of_all, of_context].map(|parts| match parts {
        [] => Range::default(),
        [first, ..] => Range { address: first.start, size: parts[parts.len() - 1].end - first.start },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range() -> impl Strategy<Value = Range> {
        (0_u32..100, 0_u32..40).prop_map(|(address, size)| Range { address, size })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares with a map of bytes for disjoint ranges; the third is read only.
        #[test]
        fn spans_hold_to_the_byte(
            ranges in prop::collection::vec(range(), 3),
            wanted in range(),
            write in prop::bool::ANY,
        ) {
            let bases = [0, 1000, 2000];
            let apart: Vec<Range> =
                ranges.iter().zip(bases).map(|(range, base)| Range { address: range.address + base, ..*range }).collect();
            let span = |(base, range): (u32, &Range)| Span { range: *range, write: base != 2000 };
            let mut spans = Spans { spans: bases.into_iter().zip(&apart).map(span).collect(), last: 0 };
            for (base, range) in bases.into_iter().zip(&apart) {
                let wanted = Range { address: wanted.address + base, size: wanted.size.max(1) };
                let inside = |address: u32| (range.address..range.address + range.size).contains(&address);
                let expected = (wanted.address..wanted.address + wanted.size).all(inside) && !(write && base == 2000);
                prop_assert_eq!(spans.allows(wanted.address, wanted.size, write), expected);
            }
        }
    }
}

//! Protection (§III-B2, S7): the memory that the handler of a task may use, to the byte.

use hpu::Program;

use crate::her::{Range, Task};
use crate::memory::{Arena, Place};

/// A range of addresses that a handler may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The addresses.
    pub range: Range,
    /// Whether it may write there.
    pub write: bool,
}

/// All that a handler may use. Addresses are those that everybody has ([`Arena::common`](crate::memory::Arena)).
#[derive(Clone, Debug, Default)]
pub struct Spans {
    spans: Vec<Span>,
    /// The one that was used last.
    last: usize,
}

impl Spans {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter()
    }

    /// What the runtime may use when it boots: what an HPU may use at any time, and the content of handler memory.
    pub fn of_boot(stack: Range, program: &Program) -> Spans {
        let [static_data, handler_data] = program_data(program);
        let code = Range { address: Arena::start(Place::Program), size: program.program_segment().len() as u32 };
        let ranges = [(stack, true), (static_data, true), (code, false), (handler_data, true)];
        Spans { spans: ranges.map(|(range, write)| Span { range, write }).to_vec(), last: 0 }
    }

    /// These ranges.
    pub fn of(spans: Vec<Span>) -> Spans {
        Spans { spans, last: 0 }
    }

    /// Adds to what an HPU may use at any time what the handler of a task may use: its packet in L1 and in L2, the handler
    /// memory and the scratchpads of its context.
    pub fn allow(&mut self, task: &Task, packet: Range) {
        self.keep_own();
        let context = &task.her.context;
        for ranges in [&[packet, task.her.packet, context.handler_memory], &context.scratchpads[..]] {
            for range in ranges.iter().copied().filter(|range| range.size > 0) {
                self.spans.push(Span { range, write: true });
            }
        }
    }

    /// Takes away all but what an HPU may use at any time: its own stack, the program's static data, and to read its code.
    pub fn keep_own(&mut self) {
        self.spans.truncate(OF_HPU);
        self.last = 0;
    }

    /// Whether the handler may have `size` bytes at an address read or written for it. It may always have no bytes.
    pub fn has(&self, address: u32, size: u32, write: bool) -> bool {
        size == 0 || self.spans.iter().any(|span| span.range.holds(address, size) && (span.write || !write))
    }

    /// Whether the handler may access `size` bytes at an address.
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

/// Number of spans that an HPU always has.
const OF_HPU: usize = 3;

/// Where drivers of the published interface begin to give L2 handler memory to contexts.
const FIRST_CONTEXT: u32 = 0x1C30_0000;

/// The static data of a program, which all of its handlers may use, and the first content of the handler memory of its first
/// context, which only that context's may (`.l2_handler_data`).
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

        /// Against a map of bytes, for ranges that lie apart; the third is to be read only.
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

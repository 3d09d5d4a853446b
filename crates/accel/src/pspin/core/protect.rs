//! Protection (§III-B2, S7): the memory that the handler of a task may use, to the byte.

use crate::pspin::her::{Range, Task};

/// A range of addresses that a handler may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The addresses.
    pub range: Range,
    /// Whether it may write there.
    pub write: bool,
}

/// All that a handler may use. Addresses are those that everybody has ([`Arena::common`](crate::pspin::memory::Arena)).
#[derive(Clone, Debug, Default)]
pub struct Spans {
    spans: Vec<Span>,
    /// The one that was used last.
    last: usize,
}

impl Spans {
    /// What an HPU may use at any time: its own stack and the program's code and data.
    pub fn of_hpu(stack: Range, code: Range, data: Range) -> Spans {
        let writable = |range| Span { range, write: true };
        Spans { spans: vec![writable(stack), writable(data), Span { range: code, write: false }], last: 0 }
    }

    /// Adds what the handler of a task may use besides: its packet in L1 and in L2, the handler memory and the scratchpads of
    /// its context.
    pub fn allow(&mut self, task: &Task, packet: Range) {
        let context = &task.her.context;
        let ranges = [packet, task.her.packet, context.handler_memory].into_iter();
        let ranges = ranges.chain(context.scratchpads.iter().copied()).filter(|range| range.size > 0);
        self.spans.extend(ranges.map(|range| Span { range, write: true }));
    }

    /// Takes away all but the first `kept`.
    pub fn keep(&mut self, kept: usize) {
        self.spans.truncate(kept);
        self.last = 0;
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

/// Number of spans of [`Spans::of_hpu`].
pub const OF_HPU: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range() -> impl Strategy<Value = Range> {
        (0_u32..100, 0_u32..40).prop_map(|(address, size)| Range { address, size })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Against a map of bytes, for ranges that lie apart; the third is the code.
        #[test]
        fn spans_hold_to_the_byte(
            ranges in prop::collection::vec(range(), 3),
            wanted in range(),
            write in prop::bool::ANY,
        ) {
            let bases = [0, 1000, 2000];
            let apart: Vec<Range> =
                ranges.iter().zip(bases).map(|(range, base)| Range { address: range.address + base, ..*range }).collect();
            let mut spans = Spans::of_hpu(apart[0], apart[2], apart[1]);
            for (base, range) in bases.into_iter().zip(&apart) {
                let wanted = Range { address: wanted.address + base, size: wanted.size.max(1) };
                let inside = |address: u32| (range.address..range.address + range.size).contains(&address);
                let expected = (wanted.address..wanted.address + wanted.size).all(inside) && !(write && base == 2000);
                prop_assert_eq!(spans.allows(wanted.address, wanted.size, write), expected);
            }
        }
    }
}

//! Protection to the byte (PsPIN §III-B2): which memory commands and transfers of a task may use.

use std::rc::Rc;

use accel::pspin::her::{ExecutionContext, Her, Range, Role, Task};
use proptest::prelude::*;

use crate::rig::context;

fn task(packet: Range, handler_memory: Range, scratchpads: Vec<Range>) -> Task {
    let context = Rc::new(ExecutionContext { handler_memory, scratchpads, ..context(&[Role::Payload]) });
    let her = Her { message: 0, flow: 0, eom: true, packet, transfer: packet.size, context, user: 0 };
    Task { role: Role::Payload, queue: 0, feeds_back: true, her }
}

fn range() -> impl Strategy<Value = Range> {
    (0_u32..100, 0_u32..40).prop_map(|(address, size)| Range { address, size })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a map of bytes, for ranges that lie apart.
    #[test]
    fn windows_hold_to_the_byte(
        ranges in prop::collection::vec(range(), 5),
        wanted in range(),
    ) {
        let apart: Vec<Range> =
            ranges.iter().zip([0, 1000, 2000, 3000, 4000]).map(|(range, at)| Range { address: range.address + at, ..*range }).collect();
        let task = task(apart[0], apart[1], apart[2..4].to_vec());
        for base in [0, 1000, 2000, 3000, 4000] {
            let wanted = Range { address: wanted.address + base, size: wanted.size.max(1) };
            let inside = |address: u32| apart.iter().any(|range| (range.address..range.address + range.size).contains(&address));
            let expected = (wanted.address..wanted.address + wanted.size).all(inside);
            prop_assert_eq!(task.may_use(apart[4], wanted), expected);
        }
    }
}

#[test]
fn ranges_at_the_end_of_memory_do_not_wrap() {
    let all = Range { address: 0, size: u32::MAX };
    assert!(all.holds(0, u32::MAX) && !all.holds(1, u32::MAX) && !all.holds(u32::MAX, 1));
    let last = Range { address: u32::MAX - 3, size: 4 };
    assert!(last.holds(u32::MAX, 1) && !last.holds(u32::MAX, 2) && !last.holds(0, 1));
}

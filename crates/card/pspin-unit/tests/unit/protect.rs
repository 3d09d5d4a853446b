// SPDX-License-Identifier: Apache-2.0
//! Ranges hold with byte granularity (PsPIN §III-B2).

use pspin_unit::her::Range;

#[test]
fn ranges_at_the_end_of_memory_do_not_wrap() {
    let all = Range { address: 0, size: u32::MAX };
    assert!(all.holds(0, u32::MAX) && !all.holds(1, u32::MAX) && !all.holds(u32::MAX, 1));
    let last = Range { address: u32::MAX - 3, size: 4 };
    assert!(last.holds(u32::MAX, 1) && !last.holds(u32::MAX, 2) && !last.holds(0, 1));
    let beyond = Range { address: u32::MAX - 3, size: 64 };
    assert!(beyond.holds(u32::MAX, 1) && !beyond.holds(0, 4) && !beyond.holds(8, 0));
}

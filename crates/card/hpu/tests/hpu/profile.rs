// SPDX-License-Identifier: Apache-2.0
//! Execution counts of instructions, against hand-computed sums.

use std::collections::BTreeMap;

use abi::device::map;
use hpu::{Fault, Stop, Thread};

use crate::card::{Card, STACK_TOP};
use hpu::testing::*;

/// Returns the counts of the handler that starts at word `entry`, by word.
fn words(card: &Card, entry: u32) -> BTreeMap<u32, u64> {
    let counts = &card.engine.profile()[&(map::PROGRAM + 4 * entry)];
    counts.iter().map(|(pc, runs)| ((pc - map::PROGRAM) / 4, *runs)).collect()
}

#[test]
fn counts_add_up_over_calls_and_stops() {
    // Sum of 1..=a0: executed once, a0 times, once
    let sum = [addi(A1, 0, 0), add(A1, A1, A0), addi(A0, A0, -1), branch(1, A0, 0, -8), addi(A0, A1, 0), RET];
    let mut card = Card::new(&sum);
    card.run([3, 0, 0]);
    assert!(card.engine.profile().is_empty());

    card.engine.set_profiling();
    let (_, thread) = card.run([100, 0, 0]);
    let expected =
        |calls, rounds| BTreeMap::from([(0, calls), (1, rounds), (2, rounds), (3, rounds), (4, calls), (5, calls)]);
    assert_eq!(words(&card, 0), expected(1, 100));
    assert_eq!(words(&card, 0).values().sum::<u64>(), thread.instructions());

    // A second call, with stops at cycle limits.
    let mut thread = card.thread([50, 0, 0]);
    let stops = (1..).map(|step| card.resume(&mut thread, 20 * step)).take_while(|stop| *stop == Stop::Limit).count();
    assert_eq!(stops, 12);
    assert_eq!(words(&card, 0), expected(2, 150));
}

#[test]
fn shared_code_is_counted_for_each_handler() {
    // Two handlers, at words 0 and 2, continue at word 3.
    let mut card = Card::new(&[addi(A0, A0, 1), jal(0, 8), addi(A0, A0, 2), addi(A0, A0, 4), RET]);
    card.engine.set_profiling();
    card.run([0; 3]);
    for _ in 0..2 {
        let mut thread = Thread::new(&card.program, map::PROGRAM + 8, STACK_TOP, [0; 3]);
        assert_eq!(card.resume(&mut thread, 100), Stop::Return(6));
    }
    assert_eq!(words(&card, 0), BTreeMap::from([(0, 1), (1, 1), (3, 1), (4, 1)]));
    assert_eq!(words(&card, 2), BTreeMap::from([(2, 2), (3, 2), (4, 2)]));
}

#[test]
fn instructions_before_a_fault_count() {
    // lw a0, 0(a0) from an address without memory, after two instructions
    let mut card = Card::new(&[NOP, NOP, lw(A0, A0, 0), RET]);
    card.engine.set_profiling();
    let (stop, thread) = card.run([0; 3]);
    assert!(matches!(stop, Stop::Fault(Fault::Load { .. })), "{stop:?}");
    assert_eq!((words(&card, 0), thread.instructions()), (BTreeMap::from([(0, 1), (1, 1)]), 2));
}

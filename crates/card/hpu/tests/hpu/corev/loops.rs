// SPDX-License-Identifier: Apache-2.0
//! Hardware loops, which the assembler does not support: words written from the user manual.

use abi::device::map;
use hpu::{Fault, Stop};
use machine::TimingKind;

use super::{KIND, card};
use crate::card::Card;
use hpu::testing::*;

/// Encodes a hardware-loop instruction; `function`: 0 starti, 1 start, 2 endi, 3 end, 4 counti, 5 count, 6 setupi, 7
/// setup.
fn hwloop(function: u32, number: u32, rs1: u32, immediate: u32) -> u32 {
    immediate << 20 | rs1 << 15 | 4 << 12 | function << 8 | number << 7 | 0x2b
}

/// `cv.setupi number, count, words`
fn setupi(number: u32, count: u32, words: u32) -> u32 {
    hwloop(6, number, words, count)
}

/// `cv.setup number, rs1, words`
fn setup(number: u32, rs1: u32, words: u32) -> u32 {
    hwloop(7, number, rs1, words)
}

/// Returns result, cycles and instructions of a handler, without the return.
fn run(words: &[u32], args: [u32; 3]) -> (u32, u64, u64) {
    let (stop, thread) = card(&[words, &[RET]].concat()).run(args);
    match stop {
        Stop::Return(value) => (value, thread.cycles() - 2, thread.instructions() - 1),
        stop => panic!("{stop:?}"),
    }
}

#[test]
fn a_body_runs_as_often_as_the_count_says_and_jumps_for_nothing() {
    // a0 += 1 three times in each iteration
    let body = [addi(A0, A0, 1); 3];
    for count in [1, 2, 3, 100, 4095] {
        let (value, cycles, instructions) = run(&[&[setupi(0, count, 4)][..], &body].concat(), [0; 3]);
        assert_eq!((value, cycles, instructions), (3 * count, 1 + 3 * u64::from(count), 1 + 3 * u64::from(count)));
        let (value, cycles, _) = run(&[&[setup(1, A1, 4)][..], &body].concat(), [0, count, 0]);
        assert_eq!((value, cycles), (3 * count, 1 + 3 * u64::from(count)));
    }
    // A count of 0: the loop is inactive, and its body is ordinary code.
    assert_eq!(run(&[&[setup(0, A1, 4)][..], &body].concat(), [0; 3]), (3, 4, 4));
}

#[test]
fn a_body_may_end_with_an_access() {
    // Sum of ten words: cv.lw a2, (a5), 4; nop; add a0; and the same with the load at the end
    let load = 0x0047_a60b;
    for body in [[load, NOP, add(A0, A0, A2)], [NOP, add(A0, A0, A2), load]] {
        let mut card =
            card(&[&[DATA_A5, addi(A2, 0, 0), addi(A0, 0, 0), setupi(0, 10, 4)][..], &body, &[RET]].concat());
        (0..10).for_each(|index| card.set(4 * index, &(index as u32 + 1).to_le_bytes()));
        let (stop, thread) = card.run([0; 3]);
        let sum: u32 = if body[0] == load { (1..=10).sum() } else { (1..=9).sum() };
        assert_eq!(stop, Stop::Return(sum));
        // The instruction after the load does not use its result.
        assert_eq!(thread.cycles(), 4 + 30 + 2);
    }
}

/// A division of 3 + 31 cycles by 1 goes on while the load at the end of the body waits for a slow memory: a round later and behind the
/// loop, in an engine and in a stepper ([`Card::run`]).
#[test]
fn a_division_goes_on_over_the_end_of_a_loop() {
    let (divide, load) = (divu(A2, A3, A1), lw(A4, A5, 0));
    for scratchpad in [1, 2, 3, 4, 9, 33, 34, 35, 36, 40, 1000] {
        let slow = u64::from(scratchpad);
        let cycles = |words: &[u32]| {
            let words = [&[DATA_A5, setupi(0, 5, 4)], words, &[NOP, NOP, RET]].concat();
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let (stop, thread) = Card::of_kind(&code, KIND, TimingKind::InOrder, scratchpad).run([0, 1, 0]);
            assert!(matches!(stop, Stop::Return(_)), "{stop:?}");
            thread.cycles()
        };
        // lui, cv.setupi, divu 2 to 35, nop, lw in 37; the next divu begins a cycle after the load, and the nop behind it when both have
        // ended.
        let round = (1 + 34).max(slow + 1) + 1;
        assert_eq!(cycles(&[divide, NOP, load]), 37 + 4 * round + slow + 1 + 1 + 2, "{scratchpad}");
        // nop in 2, nop, lw in 4; a nop in the next round waits for the end of the load.
        let last = 4 + 4 * (slow + 1 + 1);
        let behind = (1 + 34).max(slow + 1);
        assert_eq!(cycles(&[NOP, NOP, load, divide]), last + behind + 1 + 1 + 2, "{scratchpad}");
        // The divisor is the word, 0, which is there a cycle after the end of the load.
        let uses = divu(A2, A3, A4);
        assert_eq!(cycles(&[NOP, NOP, load, uses]), last + slow + 1 + 35 + 1 + 1 + 2, "{scratchpad}");
    }
}

#[test]
fn loops_nest() {
    // Outer: 5 times { inner: 4 times { a0 += 1 three times }, a1 += 1, a1 += 1 }
    let inner = [setupi(0, 4, 4), addi(A0, A0, 1), addi(A0, A0, 1), addi(A0, A0, 1)];
    let words = [&[setupi(1, 5, 7)][..], &inner, &[addi(A1, A1, 1), addi(A1, A1, 1), add(A0, A0, A1)]].concat();
    // Each inner loop adds 12; a0 = 60 + 10 at the end, where the last addition is after the loop.
    assert_eq!(run(&words, [0; 3]), (70, 1 + 5 * (1 + 12 + 2) + 1, 1 + 5 * 15 + 1));
}

#[test]
fn the_long_forms_set_each_register() {
    // starti 0, +16; endi 0, +24 (from their own addresses); count 0, a1
    let words = [hwloop(0, 0, 0, 4), hwloop(2, 0, 0, 6), hwloop(5, 0, A1, 0), NOP];
    let body = [addi(A0, A0, 1); 3];
    assert_eq!(run(&[&words[..], &body].concat(), [0, 7, 0]).0, 21);
    // counti
    let words = [hwloop(0, 1, 0, 4), hwloop(2, 1, 0, 6), hwloop(4, 1, 0, 9), NOP];
    assert_eq!(run(&[&words[..], &body].concat(), [0; 3]).0, 27);
    // Start and end from registers: the addresses are computed by auipc and addi.
    let words = [
        0x0000_0597,
        addi(A2, A1, 40),
        addi(A1, A1, 28),
        hwloop(1, 0, A1, 0),
        hwloop(3, 0, A2, 0),
        hwloop(4, 0, 0, 11),
        NOP,
    ];
    assert_eq!(run(&[&words[..], &body].concat(), [0; 3]).0, 33);
}

#[test]
fn control_registers_show_the_loops() {
    let words = |csr| [setupi(1, 1, 4), NOP, NOP, NOP, hwloop(0, 0, 0, 100), csrr(A0, csr)];
    let value = |csr| run(&words(csr), [0; 3]).0;
    assert_eq!(value(0xcc0), map::PROGRAM + 16 + 400);
    assert_eq!([value(0xcc1), value(0xcc2)], [0, 0]);
    // The count of the finished loop is 0.
    assert_eq!([value(0xcc4), value(0xcc5), value(0xcc6)], [map::PROGRAM + 4, map::PROGRAM + 16, 0]);
}

#[test]
fn what_may_not_be_a_loop_is_illegal() {
    let illegal = |words: &[u32], at: usize| {
        let (stop, _) = card(&[words, &[RET]].concat()).run([0; 3]);
        let pc = map::PROGRAM + 4 * at as u32;
        assert_eq!(stop, Stop::Fault(Fault::Illegal { pc, word: words[at] }));
    };
    // Fewer than three instructions; a branch, a jump, a return, a fence and compressed instructions in the body
    illegal(&[setupi(0, 2, 3), NOP, NOP], 0);
    illegal(&[setupi(0, 2, 1), NOP, NOP], 0);
    for word in [branch(0, 0, 0, 4), jal(0, 4), RET, 0x0000_000f, 0x0001_0001, 0x0005_640b] {
        illegal(&[NOP, setupi(0, 2, 4), NOP, word, NOP], 1);
        illegal(&[NOP, setup(0, A1, 4), NOP, word, NOP], 1);
    }
    // The body ends after the program.
    illegal(&[setupi(0, 2, 31), NOP, NOP, NOP], 0);
    // Addresses of an active loop
    illegal(&[hwloop(4, 0, 0, 3), hwloop(0, 0, 0, 4), NOP], 1);
    illegal(&[hwloop(4, 0, 0, 3), setupi(0, 2, 4), NOP, NOP, NOP], 1);
    // Control registers are read-only: csrrw x0, 0xcc0, a0
    illegal(&[0xcc05_1073], 0);
}

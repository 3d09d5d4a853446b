// SPDX-License-Identifier: Apache-2.0
//! A, and the stops before atomics.

use abi::device::map;
use hpu::{Fault, Stop};

use crate::card::Card;
use hpu::testing::*;

fn amo(f5: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0x2f, 2, f5 << 2, rd, rs1, rs2)
}

#[test]
fn operations_return_the_old_value_and_store_the_new() {
    const LESS: u32 = 0xffff_fff0;
    let cases = [
        (0x01, 7, LESS, LESS),
        (0x00, 7, LESS, 0xffff_fff7),
        (0x04, 0b1100, 0b1010, 0b0110),
        (0x0c, 0b1100, 0b1010, 0b1000),
        (0x08, 0b1100, 0b1010, 0b1110),
        (0x10, 7, LESS, LESS),
        (0x14, 7, LESS, 7),
        (0x18, 7, LESS, 7),
        (0x1c, 7, LESS, LESS),
    ];
    for (f5, old, operand, new) in cases {
        let mut card = Card::new(&[DATA_A5, amo(f5, A0, A5, A0), RET]);
        card.set(0, &u32::to_le_bytes(old));
        assert_eq!(card.run([operand, 0, 0]).0, Stop::Return(old), "{f5:#x}");
        assert_eq!(card.word(0), new, "{f5:#x}");
    }
}

#[test]
fn the_engine_stops_before_an_atomic_and_runs_it_next() {
    let mut card = Card::new(&[DATA_A5, amo(0, A0, A5, A0), RET]);
    let mut thread = card.thread([5, 0, 0]);
    assert_eq!(card.resume(&mut thread, 100), Stop::Sync);
    assert_eq!((thread.pc(), thread.instructions(), thread.cycles()), (map::PROGRAM + 4, 1, 1));
    // Another HPU executes first.
    card.set(0, &u32::to_le_bytes(100));
    assert_eq!(card.resume(&mut thread, 100), Stop::Return(100));
    assert_eq!(card.word(0), 105);
}

#[test]
fn store_conditional_needs_the_value_that_was_read() {
    let program = [DATA_A5, amo(2, A1, A5, 0), addi(A1, A1, 1), amo(3, A0, A5, A1), RET];
    let mut card = Card::new(&program);
    card.set(0, &u32::to_le_bytes(41));
    assert_eq!(card.run([0; 3]).0, Stop::Return(0));
    assert_eq!(card.word(0), 42);

    // Another HPU writes between LR and SC.
    let mut thread = card.thread([0; 3]);
    assert_eq!(card.resume(&mut thread, 100), Stop::Sync);
    assert_eq!(card.resume(&mut thread, 100), Stop::Sync);
    card.set(0, &u32::to_le_bytes(7));
    assert_eq!(card.resume(&mut thread, 100), Stop::Return(1));
    assert_eq!(card.word(0), 7);

    // SC without LR, and a second SC after one LR.
    let mut card = Card::new(&[DATA_A5, amo(3, A0, A5, A1), RET]);
    assert_eq!(card.run([0; 3]).0, Stop::Return(1));
    let mut card = Card::new(&[DATA_A5, amo(2, A1, A5, 0), amo(3, A2, A5, A1), amo(3, A0, A5, A1), RET]);
    assert_eq!(card.run([0; 3]).0, Stop::Return(1));
}

#[test]
fn faults() {
    let mut card = Card::new(&[DATA_A5, addi(A5, A5, 2), amo(0, A0, A5, A0), RET]);
    assert_eq!(card.run([0; 3]).0, Stop::Fault(Fault::Misaligned { pc: map::PROGRAM + 8, addr: map::DATA + 2 }));
    let mut card = Card::new(&[amo(0, A0, A0, A1)]);
    assert_eq!(card.run([64, 0, 0]).0, Stop::Fault(Fault::Load { pc: map::PROGRAM, addr: 64, len: 4 }));
    // Program memory is readable.
    let stop = Card::new(&[amo(0, A0, A0, A1)]).run([map::PROGRAM, 0, 0]).0;
    assert_eq!(stop, Stop::Fault(Fault::Store { pc: map::PROGRAM, addr: map::PROGRAM, len: 4 }));
}

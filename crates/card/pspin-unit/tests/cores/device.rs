// SPDX-License-Identifier: Apache-2.0
//! Registers of the HPU driver, and the output register.

use accel::testing::code::*;
use pspin_unit::her::{HpuId, TaskOutcome};

use crate::rig::{HANDLER, L1, PACKET, Rig, SCRATCHPAD, SPAN, machine};

const A2: u32 = 12;
const A3: u32 = 13;

/// Returns a handler that copies the words of its task to handler memory, by words, half-words or bytes.
fn copies(bytes: u32) -> Vec<u32> {
    let function = bytes.trailing_zeros();
    let mut code = vec![lw(A1, A0, 0), lui(A2, HANDLER + 0x1000)];
    for offset in (0..72).step_by(bytes as usize) {
        let unsigned = if function == 2 { 2 } else { 4 | function };
        code.push(immediate(0x03, unsigned, A3, A1, offset));
        code.push((offset as u32 >> 5) << 25 | A3 << 20 | A2 << 15 | function << 12 | (offset as u32 & 31) << 7 | 0x23);
    }
    code.push(RET);
    code
}

#[test]
fn a_task_has_the_words_of_the_published_interface() {
    let packet_buffer = L1 + machine("pspin-400g", &[]).cluster.runtime;
    for bytes in [4, 2, 1] {
        let mut rig = Rig::new(&copies(bytes));
        assert_eq!(rig.run(&[9; 100]).1, TaskOutcome::Done);
        let scratchpad = |cluster: u32| L1 + cluster * SPAN + SCRATCHPAD;
        let expected = [
            HANDLER + 0x1000,
            0x1000,
            packet_buffer,
            100,
            scratchpad(0),
            scratchpad(1),
            scratchpad(2),
            scratchpad(3),
            0x1000,
            0x1000,
            0x1000,
            0x1000,
            0x1122_3344,
            0x5566_7788,
            0x100,
            PACKET,
            0,
            77,
        ];
        let words: Vec<u32> = (0..18).map(|word| rig.word(HANDLER + 0x1000 + 4 * word)).collect();
        assert_eq!(words, expected, "{bytes}");
    }
}

#[test]
fn handlers_know_their_hpu() {
    // Each run stores its global number, cluster and HPU in the scratchpad of its cluster.
    let handler = [
        lw(A1, A0, 4),
        lw(A2, A0, 8),
        lw(A3, A0, 12),
        lui(T0, L1 + SCRATCHPAD),
        immediate(0x13, 1, T1, A2, 22),
        add(T0, T0, T1),
        immediate(0x13, 1, T1, A3, 4),
        add(T0, T0, T1),
        sw(A1, T0, 0),
        sw(A2, T0, 4),
        sw(A3, T0, 8),
        RET,
    ];
    let mut rig = Rig::new(&handler);
    (0..400).for_each(|_| rig.submit(&[0; 64]));
    rig.wait(5_000);
    assert_eq!(rig.nic.feedback.len(), 400);
    let mut seen = 0;
    for cluster in 0..4 {
        for hpu in 0..8 {
            let at = L1 + cluster * SPAN + SCRATCHPAD + 16 * hpu;
            let words = [0, 4, 8].map(|offset| rig.word(at + offset));
            if words != [0; 3] || (cluster, hpu) == (0, 0) {
                assert_eq!(words, [8 * cluster + hpu, cluster, hpu]);
                seen += 1;
            }
        }
    }
    assert!(seen > 4, "{seen}");
}

#[test]
fn stores_to_the_task_are_ignored() {
    let handler = [lw(A1, A0, 0), sw(ZERO, A1, 8), lw(A2, A1, 8), lui(A3, HANDLER + 0x1000), sw(A2, A3, 0), RET];
    let mut rig = Rig::new(&handler);
    assert_eq!(rig.run(&[1; 64]).1, TaskOutcome::Done);
    assert_eq!(rig.word(HANDLER + 0x1000), L1 + machine("pspin-400g", &[]).cluster.runtime);
}

/// A load of one byte returns the byte at its address. The store tests a command that was never issued.
#[test]
fn registers_have_bytes() {
    const TEST: i32 = 0x88;
    let asks = [lui(A1, 0x1B20_5000), sw(ZERO, A1, TEST), lui(A3, HANDLER + 0x1000)];
    let loads = [(0, 1), (1, 0), (3, 0)].map(|(byte, expected)| {
        let load = [immediate(0x03, 4, A2, A1, TEST + byte), sw(A2, A3, 0), RET];
        let mut rig = Rig::new(&[&asks[..], &load].concat());
        assert_eq!(rig.run(&[1; 64]).1, TaskOutcome::Done);
        (rig.word(HANDLER + 0x1000), expected)
    });
    assert!(loads.iter().all(|(found, expected)| found == expected), "{loads:?}");
}

#[test]
fn characters_become_lines() {
    let print = |character: u32| [addi(A2, ZERO, character as i32), sw(A2, A1, 0)];
    let handler =
        [&[lui(A1, 0x1A10_4000)][..], &"hi\n".bytes().flat_map(|c| print(c.into())).collect::<Vec<_>>(), &[RET]];
    let mut rig = Rig::new(&handler.concat());
    assert_eq!(rig.run(&[0; 64]).1, TaskOutcome::Done);
    assert_eq!(rig.unit.cores_mut().take_output(), [(HpuId { cluster: 0, hpu: 0 }, b"hi".to_vec())]);
    assert_eq!(rig.unit.cores_mut().take_output(), []);
}

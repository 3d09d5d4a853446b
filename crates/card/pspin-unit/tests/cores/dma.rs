// SPDX-License-Identifier: Apache-2.0
//! Transfers by the cluster's DMA engine, through the registers that `spin_dma.h` uses (PsPIN §III-B2).

use accel::testing::code::*;
use pspin_unit::her::{Failure, TaskOutcome};

use crate::rig::{HANDLER, L1, PACKET, PROGRAM, Rig, SCRATCHPAD, SPAN, machine};

const A2: u32 = 12;
const A3: u32 = 13;
const A4: u32 = 14;
/// Offsets of engine registers from `a2`.
const LAUNCH: i32 = 0x18;
const LANDED: i32 = 0x20;
/// Handler memory of the rig.
const MEMORY: u32 = HANDLER + 0x1000;

/// `rd = value`, in two instructions
fn li(rd: u32, value: u32) -> [u32; 2] {
    let low = (value << 20) as i32 >> 20;
    [lui(rd, value.wrapping_sub(low as u32)), addi(rd, rd, low)]
}

/// Returns eleven instructions that set up a transfer.
fn says(from: u32, to: u32, bytes: u32) -> Vec<u32> {
    let mut code = li(A2, 0x1B20_5100).to_vec();
    for (value, register) in [(from, 0), (to, 8), (bytes, 0x10)] {
        code.extend(li(A3, value));
        code.push(sw(A3, A2, register));
    }
    code
}

fn packet() -> Vec<u8> {
    (0..1024_u32).map(|at| (at * 7) as u8).collect()
}

/// Runs a handler twice, with the bytes of a packet also in handler memory. The first run fills the instruction cache.
/// Returns the cycles of the second run from the load of the function pointer to the doorbell.
fn warm(set: &[&str], handler: &[u32]) -> (u64, Rig) {
    let mut rig = Rig::on(machine("pspin-400g", set), handler);
    rig.unit.memory().write(MEMORY, 1024).unwrap().copy_from_slice(&packet());
    for _ in 0..2 {
        assert_eq!(rig.run(&packet()).1, TaskOutcome::Done);
    }
    let log = rig.unit.observer();
    (log.ended[1].0 - log.started[1], rig)
}

/// The doorbell waits for a transfer. Its load is the twelfth instruction of a handler that begins 4 cycles after the
/// load of the function pointer, and reaches the engine a cycle later: 4 + 11 + 1. The transfer takes 10 cycles and one
/// per beat, with at least two beats counted.
#[test]
fn a_transfer_takes_ten_cycles_and_its_beats() {
    for (bytes, beats) in [(1, 2), (64, 2), (128, 2), (192, 3), (512, 8), (1024, 16)] {
        let handler = [says(MEMORY, L1 + SCRATCHPAD, bytes), vec![lw(A4, A2, LAUNCH), RET]].concat();
        let (cycles, mut rig) = warm(&[], &handler);
        assert_eq!(cycles, 4 + 11 + 1 + 10 + beats, "{bytes} B");
        let copied = rig.unit.memory().read(L1 + SCRATCHPAD, 1024).unwrap();
        assert_eq!(&copied[..bytes as usize], &packet()[..bytes as usize]);
        assert!(copied[bytes as usize..].iter().all(|byte| *byte == 0));
    }
}

/// The numbers of an HPU's transfers count up from 1 across handlers; the other register follows as transfers complete.
#[test]
fn numbers_say_what_is_done() {
    let waits = [lw(A1, A2, LANDED), 0x4000_0000 | add(A1, A1, A4), bnez(A1, -2)];
    let handler = [
        says(MEMORY + 64, L1 + SCRATCHPAD, 960),
        li(A3, MEMORY).to_vec(),
        vec![lw(A4, A2, LAUNCH), sw(A4, A3, 0), lw(A4, A2, LAUNCH), sw(A4, A3, 4), lw(A1, A2, LANDED), sw(A1, A3, 8)],
        waits.to_vec(),
        vec![lw(A1, A2, LANDED), sw(A1, A3, 12), RET],
    ]
    .concat();
    let (_, mut rig) = warm(&[], &handler);
    // A transfer takes 25 cycles, and each store to L2 18, so the first read of the register lies between the ends of
    // the two.
    assert_eq!([0, 4, 8, 12].map(|at| rig.word(MEMORY + at)), [3, 4, 3, 4]);
}

/// With room for two transfers, the third launch waits until the first is read; transfers take 16 beats each, one after
/// the other.
#[test]
fn a_full_queue_holds_the_launch() {
    let launches = |count: usize| {
        let handler = [says(MEMORY, L1 + SCRATCHPAD, 1024), vec![lw(A4, A2, LAUNCH); count], vec![RET]].concat();
        warm(&["accelerator.dma.queue=2"], &handler).0
    };
    assert_eq!([2, 3, 5].map(launches), [2, 3, 5].map(|count| 4 + 11 + 1 + 10 + 16 * count));
}

/// Eight HPUs of each of two clusters launch a transfer in the same cycle. Each cluster accepts one per cycle, round
/// robin, independently of the other.
#[test]
fn a_cluster_launches_one_transfer_in_a_cycle() {
    const T2: u32 = 7;
    const T3: u32 = 28;
    // rd = cycle; rd = rs << bits; rd = rs >> bits
    let cycle = |rd| immediate(0x73, 2, rd, ZERO, 0xC00 - 0x1000);
    let left = |rd, rs, bits| immediate(0x13, 1, rd, rs, bits);
    let right = |rd, rs, bits| immediate(0x13, 5, rd, rs, bits);
    let handler = [
        // t3 = handler memory + 32 * cluster + 4 * HPU
        li(T3, MEMORY).to_vec(),
        vec![lw(T0, A0, 8), left(T0, T0, 5), add(T3, T3, T0), lw(T0, A0, 12), left(T0, T0, 2), add(T3, T3, T0)],
        says(MEMORY, L1 + SCRATCHPAD, 64),
        // do t0 = ~cycle & 2047; while (t0 >= 16), with t0 the cycles left to a multiple of 2,048
        vec![
            cycle(T0),
            immediate(0x13, 4, T0, T0, -1),
            immediate(0x13, 7, T0, T0, 2047),
            right(T1, T0, 4),
            bnez(T1, -4),
        ],
        // t2 = pc; goto t2 + 4 * (4 + 16 - t0): t0 cycles pass after the jump
        vec![
            0x17 | T2 << 7,
            left(T0, T0, 2),
            0x4000_0000 | add(T2, T2, T0),
            immediate(0x67, 0, ZERO, T2, 4 * (4 + 16)),
        ],
        vec![NOP; 16],
        vec![lw(A4, A2, LAUNCH), addi(A4, A4, 0), cycle(T0), sw(T0, T3, 0), RET],
    ]
    .concat();
    let mut rig = Rig::on(machine("pspin-400g", &["accelerator.clusters=2"]), &handler);
    // Each cluster first fills its instruction cache; then all HPUs start long before the next multiple of 2,048.
    (0..2).for_each(|message| _ = rig.submit_as(message, &[0; 64]));
    rig.wait(4_096);
    rig.wait(2_048 + 64 - rig.unit.now().0 % 2_048);
    let known = rig.nic.feedback.len();
    (16..32).for_each(|message| _ = rig.submit_as(message, &[0; 64]));
    rig.wait(4_096);
    assert_eq!((known, rig.nic.feedback.len()), (2, 18));
    let launched: Vec<u32> = (0..16).map(|hpu| rig.word(MEMORY + 4 * hpu)).collect();
    // HPU 0 of each cluster has launched one before, so HPU 1 is next.
    let expected: Vec<u32> = (0..16).map(|hpu| launched[1] + (hpu + 7) % 8).collect();
    assert_eq!(launched, expected);
}

/// Transfers may use the packet, handler memory, the scratchpads of all clusters, and the stack, with byte granularity.
#[test]
fn a_transfer_stays_in_the_memory_of_its_handler() {
    let outcome = |from: u32, to: u32, bytes: u32| {
        Rig::new(&[says(from, to, bytes), vec![lw(A4, A2, LAUNCH), RET]].concat()).run(&packet()).1
    };
    let refused = |address: u32, size: u32| TaskOutcome::Faulted(Failure::Command { address, size });
    let scratchpad = L1 + SCRATCHPAD;
    assert_eq!(outcome(scratchpad, scratchpad + SPAN, 0x1000), TaskOutcome::Done);
    assert_eq!(outcome(scratchpad, 0x1B00_0000 + SCRATCHPAD + 64, 0x800), TaskOutcome::Done);
    assert_eq!(outcome(scratchpad, scratchpad + SPAN, 0x1001), refused(scratchpad, 0x1001));
    assert_eq!(outcome(scratchpad, HANDLER + 0x1001, 0x1000), refused(HANDLER + 0x1001, 0x1000));
    assert_eq!(outcome(HANDLER + 0x1000, PACKET, 1024), TaskOutcome::Done);
    assert_eq!(outcome(PACKET, HANDLER + 0x1fff, 1), TaskOutcome::Done);
    // The stack of HPU 0, and that of its neighbour.
    assert_eq!(outcome(L1, scratchpad, 1024), TaskOutcome::Done);
    assert_eq!(outcome(L1, scratchpad, 1025), refused(L1, 1025));
    assert_eq!(outcome(L1 + 1024, scratchpad, 4), refused(L1 + 1024, 4));
    assert_eq!(outcome(0, scratchpad, 4), refused(0, 4));
    assert_eq!(outcome(PROGRAM, scratchpad, 4), refused(PROGRAM, 4), "code");
}

/// The watchdog kills a handler with a transfer in flight: the transfer ends before the memory is free.
#[test]
fn a_killed_handler_leaves_no_transfer_behind() {
    let handler = [says(PACKET, L1 + SCRATCHPAD, 1024), vec![lw(A4, A2, LAUNCH); 8], vec![SPIN]].concat();
    let mut rig = Rig::new(&handler);
    rig.context.watchdog_cycles = 80;
    let (cycles, outcome) = rig.run(&packet());
    assert_eq!(outcome, TaskOutcome::TimedOut);
    // 1,024 B are in L1 after 29 cycles and assigned after 30; the watchdog expires 80 later, and the trap ends 20
    // after that. The eight transfers take 128 beats.
    assert!(cycles > 30 + 80 + 20 + 1, "{cycles}");
    assert_eq!(rig.unit.memory().read(L1 + SCRATCHPAD, 1024).unwrap(), packet());
}

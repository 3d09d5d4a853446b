// SPDX-License-Identifier: Apache-2.0
//! The out-of-order core compared with hand-computed schedules. D is dispatch, I issue, R result, C commit; the first
//! instruction has D 0 and so I 1; three dispatch and commit per cycle; a return dispatches like any branch.

use abi::device::map;
use hpu::Stop;
use machine::TimingKind;

use crate::card::Card;
use hpu::testing::*;

fn card(words: &[u32], scratchpad: u32) -> Card {
    Card::timed(&[words, &[RET]].concat(), TimingKind::OooA15, scratchpad)
}

fn cycles(words: &[u32], scratchpad: u32) -> u64 {
    let (stop, thread) = card(words, scratchpad).run([map::DATA, 0, 0]);
    assert!(matches!(stop, Stop::Return(_)), "{stop:?}");
    thread.cycles()
}

/// A load from a scratchpad of 100 cycles, whose result no other instruction needs: R = I + 101
const FAR: u32 = 100;

#[test]
fn an_empty_handler() {
    // D 0, I 1, R 2, C 2
    assert_eq!(cycles(&[], 1), 2);
}

#[test]
fn a_chain_takes_one_cycle_for_each_link() {
    // Link n (from 1): I n, R n + 1
    assert_eq!(cycles(&[addi(A1, A1, 1); 9], 1), 10);
    // mul: R = I + 3, so link n has I 3n - 2, R 3n + 1
    assert_eq!(cycles(&[mul(A1, A1, A1); 9], 1), 28);
    // div is 12
    assert_eq!(cycles(&[op(5, 1, A1, A1, A1); 3], 1), 37);
}

#[test]
fn two_ports_of_simple_operations() {
    // 12 independent ones, two per cycle: the last has I 6, R 7
    assert_eq!(cycles(&[addi(A1, 0, 1); 12], 1), 7);
    // The divider is not pipelined: I 1, 13, 25; the multiplier is: I 1, 2, 3
    assert_eq!(cycles(&[op(5, 1, A2, A1, A1); 3], 1), 37);
    assert_eq!(cycles(&[mul(A2, A1, A1); 3], 1), 6);
}

#[test]
fn three_wide_over_different_ports() {
    // Group g: D g, I g + 1; addi R g + 2, mul R g + 4, lw R g + 3; in order the commits of group 3 end in 7.
    let group = [addi(A1, 0, 1), mul(A2, A3, A3), lw(A4, A0, 0)];
    assert_eq!(cycles(&[group; 4].concat(), 1), 7);
}

#[test]
fn a_load_takes_address_generation_and_the_scratchpad() {
    // lw I 1, R 2 + k; addi I 2 + k, R 3 + k
    for k in [1, 2, 4, FAR] {
        assert_eq!(cycles(&[lw(A1, A0, 0), addi(A2, A1, 1)], k), u64::from(3 + k));
    }
    // A store does not wait: addi I 1, R 2; sw I 2, R 3
    assert_eq!(cycles(&[addi(A1, 0, 1), sw(A1, A0, 0)], FAR), 3);
}

#[test]
fn renaming_leaves_true_dependences_only() {
    // lw a1 (R 102); addi a1, x0 (I 1); addi a2, a1 (I 2): only commit waits, and the return is the fourth
    assert_eq!(cycles(&[lw(A1, A0, 0), addi(A1, 0, 1), addi(A2, A1, 1)], FAR), 103);
}

/// At the end of a block, the register of a load stays distinct from that of a later, faster write.
#[test]
fn a_renamed_register_is_no_dependence_of_the_next_block() {
    // lw a1: R, C 102. addi a1, x0: I 1, R 2. bne x0, x0 ends the block, and is not taken. D 1: addi a2, a1: I 2, R 3;
    // mul a2: I 3, R 6; return. The second group commits in 103. With a dependence on the load, the times would be addi
    // I 102, mul I 103, R 106.
    let block = [lw(A1, A0, 0), addi(A1, 0, 1), branch(1, 0, 0, 8)];
    let next = [addi(A2, A1, 1), mul(A2, A2, A2)];
    assert_eq!(cycles(&[&block[..], &next].concat(), FAR), 103);
    // Equal in the middle of a block, where a debugger or the sanitizer stops between any two instructions.
    assert_eq!(cycles(&[&block[..2], &[NOP], &next[..]].concat(), FAR), 103);
    // Nor after a third writer; seven instructions commit in three cycles.
    assert_eq!(cycles(&[&block[..2], &[addi(A1, 0, 2), branch(1, 0, 0, 8)], &next[..]].concat(), FAR), 104);
}

#[test]
fn forty_in_the_reorder_buffer() {
    // load R 102; n simple instructions; another load. With n = 38 its D is 39 / 3, R 13 + 1 + 101 = 115; with n = 39
    // it waits for the first to commit: D 102, R 204.
    let with = |n| [&[lw(A1, A0, 0)], vec![addi(A2, 0, 1); n].as_slice(), &[lw(A3, A0, 0)]].concat();
    assert_eq!(cycles(&with(38), FAR), 115);
    assert_eq!(cycles(&with(39), FAR), 204);
}

#[test]
fn thirty_two_in_the_issue_queue() {
    // load R 102; n dependent instructions, two per cycle from then on; an independent load. With n = 31 the last
    // dependent one has I 117, R 118, and the load ends before; with n = 32 the load dispatches when the first
    // dependent one issues: D 102, I 103, R 204.
    let with = |n| [&[lw(A1, A0, 0)], vec![addi(A2, A1, 1); n].as_slice(), &[lw(A3, A0, 0)]].concat();
    assert_eq!(cycles(&with(31), FAR), 118);
    assert_eq!(cycles(&with(32), FAR), 204);
}

#[test]
fn sixteen_in_the_load_and_store_queues() {
    // Load n (from 0): I n + 1, R n + 102. The 17th waits for the first to commit: D 102, R 204.
    assert_eq!(cycles(&[lw(A1, A0, 0); 16], FAR), 117);
    assert_eq!(cycles(&[lw(A1, A0, 0); 17], FAR), 204);
    // After a load, 16 stores (I up to 16) commit from 102 on: 2, 3, 3, 3, 3, 2. The 17th has D 102, R 104, C 107.
    let stores =
        |n| [&[lw(A1, A0, 0)], vec![sw(A2, A0, 4); n].as_slice(), &[mul(A3, A4, A4), mul(A3, A3, A3)]].concat();
    // Multiplications after 16 stores: D 17 / 3, R long before 102; 19 instructions and the return commit in 102 + 19 /
    // 3.
    assert_eq!(cycles(&stores(16), FAR), 108);
    // After 17: mul D 102, I 103, R 106; mul I 106, R 109.
    assert_eq!(cycles(&stores(17), FAR), 109);
}

#[test]
fn a_loop_runs_one_iteration_per_cycle_until_it_is_mispredicted() {
    // Iteration n (from 0): D n, addi I n + 1, bne I n + 2. Predicted taken (backwards) except for the last iteration,
    // 99: its successor dispatches 15 cycles after I 101, and has C 118.
    let words = [addi(A0, A0, -1), branch(1, A0, 0, -4)];
    let mut card = card(&words, 1);
    for _ in 0..3 {
        assert_eq!(card.run([100, 0, 0]).1.cycles(), 118);
    }
}

#[test]
fn branches_are_learnt() {
    // A forward branch that is always taken: mispredicted once (bne I 1, D 16, C 18), then predicted (D 1, C 3).
    let mut card = card(&[branch(0, 0, 0, 8), NOP], 1);
    assert_eq!([0; 3].map(|_| card.run([0; 3]).1.cycles()), [18, 3, 3]);
    // An indirect call is predicted to go to its previous target.
    let mut card = self::card(&[jalr(A1, A0, 0), NOP], 1);
    let to = |offset| map::PROGRAM + offset;
    assert_eq!([8, 8, 4, 8].map(|o| card.run([to(o), 0, 0]).1.cycles()), [18, 3, 18, 18]);
}

#[test]
fn calls_and_atomics_run_alone() {
    // addi C 2; ecall D 2, I 3, C 4; after it addi D 4, I 5, C 6
    let mut card = card(&[addi(A1, 0, 1), ECALL, addi(A1, 0, 1)], 1);
    let mut thread = card.thread([0; 3]);
    assert!(matches!(card.resume(&mut thread, 100), Stop::Call { .. }));
    assert_eq!(thread.cycles(), 4);
    assert_eq!(card.resume(&mut thread, 100), Stop::Return(0));
    assert_eq!(thread.cycles(), 6);

    // mul C 4; amoadd D 4, I 5, R 5 + 1 + k + 1; its user D 7 + k, I 8 + k, C 9 + k
    for k in [1, 5] {
        let amoadd = r(0x2f, 2, 0, A1, A0, A2);
        let mut card = self::card(&[mul(A3, A3, A3), amoadd, addi(A1, A1, 1)], k);
        let mut thread = card.thread([map::DATA, 0, 0]);
        assert_eq!(card.resume(&mut thread, 100), Stop::Sync);
        assert_eq!(thread.cycles(), 4);
        assert_eq!(card.resume(&mut thread, 100), Stop::Return(map::DATA));
        assert_eq!(thread.cycles(), u64::from(9 + k));
    }
}

#[test]
fn stops_at_the_limit_do_not_change_the_time() {
    // Loads, multiplies and a data-dependent branch, in a loop of 50.
    let words = [
        lw(A1, A0, 0),
        mul(A2, A2, A1),
        addi(A3, A3, 1),
        i(0x13, 7, A4, A3, 3),
        branch(1, A4, 0, 8),
        sw(A3, A0, 0),
        addi(A5, A3, -50),
        branch(1, A5, 0, -28),
    ];
    let whole = card(&words, 2).run([map::DATA, 0, 0]).1;
    let mut sliced = card(&words, 2);
    let mut thread = sliced.thread([map::DATA, 0, 0]);
    let mut slices = 0;
    while sliced.resume(&mut thread, slices * 7) == Stop::Limit {
        slices += 1;
    }
    assert!(slices > 20);
    assert_eq!((thread.cycles(), thread.instructions()), (whole.cycles(), whole.instructions()));
    // 37 iterations go around the store, 13 do not
    assert_eq!(whole.instructions(), 50 * 7 + 12 + 1);
}

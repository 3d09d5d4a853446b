// SPDX-License-Identifier: Apache-2.0
//! In-order core, cycle by cycle, against hand-computed sums of CV32E40P's costs (a return costs 2).

use abi::device::map;
use hpu::Stop;
use machine::TimingKind;

use crate::card::Card;
use hpu::testing::*;

const RETURN: u64 = 2;
const FENCE: u32 = 0x0000_000f;

/// Returns the cycles of a handler whose `a5` is the data segment (1 cycle, not counted).
fn cycles(words: &[u32], scratchpad: u32, args: [u32; 3]) -> u64 {
    let mut card = Card::timed(&[&[DATA_A5], words, &[RET]].concat(), TimingKind::InOrder, scratchpad);
    let (stop, thread) = card.run(args);
    assert!(matches!(stop, Stop::Return(_)), "{stop:?}");
    thread.cycles() - 1 - RETURN
}

#[test]
fn one_cycle_each() {
    assert_eq!(cycles(&[], 1, [0; 3]), 0);
    let words = [addi(A1, A0, 1), add(A1, A1, A1), mul(A1, A1, A1), sw(A1, A5, 0), lw(A2, A5, 0)];
    assert_eq!(cycles(&words, 1, [0; 3]), 5);
}

#[test]
fn a_load_delays_its_user_by_one() {
    assert_eq!(cycles(&[lw(A1, A5, 0), addi(A2, A1, 1)], 1, [0; 3]), 1 + 1 + 1);
    assert_eq!(cycles(&[lw(A1, A5, 0), NOP, addi(A2, A1, 1)], 1, [0; 3]), 3);
    assert_eq!(cycles(&[lw(A1, A5, 0), sw(A1, A5, 4)], 1, [0; 3]), 3);
    // Loads of x0 cause no delay.
    assert_eq!(cycles(&[lw(0, A5, 0), addi(A2, 0, 1)], 1, [0; 3]), 2);
}

#[test]
fn the_state_of_the_pipeline_crosses_blocks() {
    // lw a1; beq x0, a0 (not taken, end of a block); addi a2, a1
    assert_eq!(cycles(&[lw(A1, A5, 0), branch(1, 0, 0, 8), addi(A2, A1, 1)], 1, [0; 3]), 3);
    // lw a1; beq a1 (taken): load-use, then 3
    assert_eq!(cycles(&[lw(A1, A5, 0), branch(0, A1, 0, 4)], 1, [0; 3]), 1 + 1 + 3);
}

#[test]
fn slower_memory_stops_the_pipeline() {
    assert_eq!(cycles(&[lw(A1, A5, 0), NOP, NOP], 3, [0; 3]), 3 + 2);
    // A jump after the next instruction has left decode before the answer; `cycles` counts it as two.
    assert_eq!(cycles(&[lw(A1, A5, 0), NOP], 3, [0; 3]), 3 + 1 - 1);
    assert_eq!(cycles(&[lw(A1, A5, 0), addi(A2, A1, 1)], 3, [0; 3]), 3 + 1 + 1);
    assert_eq!(cycles(&[sw(A1, A5, 0), NOP], 3, [0; 3]), 2);
}

/// An instruction that waits in the execute stage for a slow memory spends the same time there at the end of a block as
/// in the middle of one.
#[test]
fn a_slow_answer_crosses_blocks() {
    let fdiv_double = r(0x53, 7, 0x0d, 1, 2, 3);
    // lw in cycle 0, answer in 20; fdiv.d 1 to 22, or 2 to 23 after a branch that is not taken and ends the block. The
    // return takes one cycle, and is in decode long before.
    for (between, cycles) in [(&[][..], 23), (&[branch(1, 0, 0, 8)], 24)] {
        let words = [&[lw(A1, A5, 0)], between, &[fdiv_double, RET]].concat();
        let mut card = Card::timed(&words, TimingKind::InOrder, 20);
        let mut thread = card.thread([0; 3]);
        thread.set_register(A5 as u8, map::DATA);
        assert!(matches!(card.resume(&mut thread, 100), Stop::Return(_)));
        assert_eq!(thread.cycles(), cycles);
    }
}

/// A division of 3 + 31 cycles by 1 waits in the execute stage for the previous access, and proceeds there.
#[test]
fn a_division_goes_on_while_the_access_before_it_waits_for_a_slow_memory() {
    let (divu, by_zero) = (op(5, 1, A2, A0, A1), op(5, 1, A2, A0, A4));
    // amoadd.w a1, a2, (a5), which reads 0
    let (amoadd, skip) = (0x00c7_a5af, branch(1, 0, 0, 8));
    let run = |words: &[u32], scratchpad| cycles(words, scratchpad, [1000, 1, 0]);
    for scratchpad in [1, 2, 3, 4, 5, 9, 33, 34, 35, 36, 40, 10_000] {
        let answer = u64::from(scratchpad);
        // lw in cycle 0; divu from 1 to 34, and at least one cycle beyond the answer; addi.
        assert_eq!(run(&[lw(A3, A5, 0), divu, NOP], scratchpad), (1 + 34).max(answer + 1) + 1, "{scratchpad}");
        // The answer to an atomic operation arrives a cycle later, and a division by 0 takes another cycle.
        assert_eq!(run(&[amoadd, by_zero, NOP], scratchpad), (1 + 35).max(answer + 2) + 1, "{scratchpad}");
        // The branch is in the execute stage in cycle 1.
        assert_eq!(run(&[lw(A3, A5, 0), skip, divu, NOP], scratchpad), (2 + 34).max(answer + 1) + 1, "{scratchpad}");
        // An addi between them ends after the answer.
        let behind = if scratchpad == 1 { 2 } else { answer + 1 };
        assert_eq!(run(&[lw(A3, A5, 0), NOP, divu, NOP], scratchpad), behind + 34 + 1, "{scratchpad}");
        // The divisor is the answer, 0, which is usable a cycle later.
        assert_eq!(run(&[lw(A1, A5, 0), divu, NOP], scratchpad), answer + 1 + 35 + 1, "{scratchpad}");
        assert_eq!(run(&[amoadd, divu, NOP], scratchpad), answer + 2 + 35 + 1, "{scratchpad}");
    }
}

/// Regression: on this input of the fuzzer `paths`, a stepper was right and an engine a cycle late.
#[test]
fn a_remainder_behind_a_slow_atomic_operation_has_the_time_of_a_stepper() {
    let addi_amoadd = [addi(28, A5, 0), 0x00de_25af];
    let words = [&[op(2, 1, A4, A0, A3)], &addi_amoadd[..], &[op(7, 1, A1, A3, A3)]].concat();
    for scratchpad in [1, 3, 9] {
        // mulhsu 0 to 4, addi 5, amoadd.w from 6, remu by 0 from 7 to 41. `cycles` counts the return as two; after a
        // division it takes one.
        assert_eq!(cycles(&words, scratchpad, [1000, 0, 0]), 5 + 1 + 1 + 35 - 1, "{scratchpad}");
    }
}

#[test]
fn accesses_across_words_take_another_cycle() {
    assert_eq!(cycles(&[lw(A1, A5, 1)], 1, [0; 3]), 2);
    assert_eq!(cycles(&[sw(A1, A5, 2)], 1, [0; 3]), 2);
    // Half-words: offset 1 is within a word, 3 crosses words; bytes never cross. A double is two words.
    assert_eq!(cycles(&[i(0x03, 1, A1, A5, 1)], 1, [0; 3]), 1);
    assert_eq!(cycles(&[i(0x03, 1, A1, A5, 3)], 1, [0; 3]), 2);
    assert_eq!(cycles(&[i(0x03, 0, A1, A5, 3)], 1, [0; 3]), 1);
    assert_eq!(cycles(&[i(0x07, 3, 1, A5, 8)], 1, [0; 3]), 2);
}

#[test]
fn branches_and_jumps() {
    assert_eq!(cycles(&[branch(1, 0, 0, 8)], 1, [0; 3]), 1);
    assert_eq!(cycles(&[branch(0, 0, 0, 4)], 1, [0; 3]), 3);
    assert_eq!(cycles(&[jal(A1, 4)], 1, [0; 3]), 2);
    // auipc a1, 0; jalr a2, 8(a1): decode needs the register
    assert_eq!(cycles(&[0x0000_0597, jalr(A2, A1, 8)], 1, [0; 3]), 4);
    assert_eq!(cycles(&[0x0000_0597, NOP, jalr(A2, A1, 12)], 1, [0; 3]), 4);
    // jal a1 to jalr a2, (a1): the link is available before the target
    assert_eq!(cycles(&[jal(A1, 4), jalr(A2, A1, 4)], 1, [0; 3]), 2 + 2);
    // csrr a1, instret: a separate block, whose result the jump needs in decode
    let mut card = Card::new(&[csrr(A1, 0xc02), jalr(A2, A1, 0)]);
    let (_, thread) = card.run([0; 3]);
    assert_eq!(thread.cycles(), 4 + 1 + 2);
    // lw a1; jalr (a1): two stall cycles
    let mut card = Card::new(&[DATA_A5, lw(A1, A5, 0), jalr(A2, A1, 0), RET]);
    card.set(0, &(map::PROGRAM + 12).to_le_bytes());
    assert_eq!(card.run([0; 3]).1.cycles(), 1 + 1 + 2 + 2 + RETURN);
}

#[test]
fn a_split_target_takes_another_cycle() {
    let run = |halves: &[u32]| {
        let code: Vec<u8> =
            halves.iter().flat_map(|w| w.to_le_bytes().into_iter().take(if w & 3 == 3 { 4 } else { 2 })).collect();
        Card::of_bytes(&code, TimingKind::InOrder, 1).run([0; 3]).1.cycles()
    };
    const C_NOP: u32 = 0x0001;
    // Over one 16-bit instruction to a 32-bit one at 6; the same to a 16-bit one; and without a jump
    assert_eq!(run(&[jal(0, 6), C_NOP, NOP, RET]), 3 + 1 + RETURN);
    assert_eq!(run(&[branch(0, 0, 0, 6), C_NOP, NOP, RET]), 4 + 1 + RETURN);
    assert_eq!(run(&[branch(0, 0, 0, 6), C_NOP, C_NOP, C_NOP, RET]), 3 + 2 + RETURN);
    assert_eq!(run(&[C_NOP, NOP, NOP, RET]), 3 + RETURN);
    // Also if the jump has been in decode for long, here behind a division by 0: the target's first half stays in the
    // fetch stage.
    let divu = op(5, 1, A2, A0, A1);
    assert_eq!(run(&[divu, jal(0, 6), C_NOP, NOP, RET]), 35 + 1 + 1 + 1 + RETURN);
    assert_eq!(run(&[divu, jal(0, 8), C_NOP, C_NOP, NOP, RET]), 35 + 1 + 1 + RETURN);
    // A fence refetches the next instruction, a control-register instruction does not.
    assert_eq!(run(&[C_NOP, FENCE, NOP, RET]), 1 + 4 + 1 + 1 + RETURN);
    assert_eq!(run(&[C_NOP, FENCE, C_NOP, NOP, RET]), 1 + 4 + 1 + 1 + RETURN);
    assert_eq!(run(&[C_NOP, csrr(A1, 0xc02), NOP, RET]), 1 + 4 + 1 + RETURN);
}

/// The cycle counter is read when its instruction starts to execute; the instruction then takes three more cycles.
#[test]
fn a_counter_that_is_the_target_of_a_jump_is_read_when_it_is_there() {
    let run = |halves: &[u32]| {
        let code: Vec<u8> =
            halves.iter().flat_map(|w| w.to_le_bytes().into_iter().take(if w & 3 == 3 { 4 } else { 2 })).collect();
        let thread = Card::of_bytes(&code, TimingKind::InOrder, 1).run([0; 3]).1;
        (thread.register(10), thread.cycles())
    };
    const C_NOP: u32 = 0x0001;
    assert_eq!(run(&[jal(0, 8), C_NOP, C_NOP, csrr(A0, 0xc00), RET]), (2, 2 + 4 + RETURN));
    // The target is split over two words, and starts a cycle later.
    assert_eq!(run(&[jal(0, 6), C_NOP, csrr(A0, 0xc00), RET]), (3, 3 + 4 + RETURN));
    // Not after a jump.
    assert_eq!(run(&[C_NOP, csrr(A0, 0xc00), RET]), (1, 1 + 4 + RETURN));
}

/// Its instruction is in the execute stage while the access before it waits for its answer, and begins only then: inputs of the fuzzer
/// `paths` on which a stepper was right, and an engine late.
#[test]
fn a_counter_is_read_before_the_answer_of_a_slow_memory() {
    // amoadd.w a1, a2, (a5)
    const AMOADD: u32 = 0x00c7_a5af;
    let skip = branch(1, 0, 0, 8);
    for scratchpad in [1, 2, 3, 9, 40, 10_000] {
        let run = |words: &[u32]| {
            let words = [&[DATA_A5], words, &[csrr(A0, 0xc00), NOP, RET]].concat();
            let thread = Card::timed(&words, TimingKind::InOrder, scratchpad).run([0; 3]).1;
            (thread.register(10), thread.cycles())
        };
        let end = u64::from(scratchpad) + 1 + 4 + 1 + RETURN;
        // lui in cycle 0, lw in 1, csrr from 2 on; it begins when the answer is there.
        assert_eq!(run(&[lw(A1, A5, 0)]), (2, end), "{scratchpad}");
        // The answer to an atomic operation comes a cycle later.
        assert_eq!(run(&[AMOADD]), (2, end + 1), "{scratchpad}");
        // A branch that is not taken is in the execute stage in cycle 2, and leaves it.
        assert_eq!(run(&[AMOADD, skip]), (3, end + 1), "{scratchpad}");
        // Another instruction waits there.
        assert_eq!(run(&[lw(A1, A5, 0), NOP]), (scratchpad + 2, end + 1), "{scratchpad}");
    }
}

#[test]
fn long_operations() {
    // The return is not directly after them, where it would leave decode in the meantime.
    assert_eq!(cycles(&[op(3, 1, A1, A0, A0), NOP], 1, [0; 3]), 5 + 1);
    assert_eq!(cycles(&[csrr(A1, 0xc00), NOP], 1, [0; 3]), 4 + 1);
    assert_eq!(cycles(&[FENCE, NOP], 1, [0; 3]), 4 + 1);
    // funct3 4 div, 5 divu, 7 remu; divisor, cycles
    for (f3, divisor, expected) in [
        (5, 0x8000_0000, 3),
        (5, 1, 34),
        (5, 0, 35),
        (7, 0xff, 27),
        (4, 1, 34),
        (4, 0, 35),
        (4, u32::MAX, 34),
        (4, 0x8000_0000, 3),
        (4, -256_i32 as u32, 3 + 23),
    ] {
        let words = [op(f3, 1, A2, A0, A1), NOP];
        assert_eq!(cycles(&words, 1, [1000, divisor, 0]), expected + 1, "{f3} {divisor:#x}");
    }
}

/// The jump is in decode in the first cycle of the operation, so its target is fetched by the end of the operation: the
/// jump costs one cycle instead of two.
#[test]
fn a_jump_behind_a_long_operation_leaves_decode_at_once() {
    let mulh = op(3, 1, A1, A0, A0);
    let shortest = [1000, 0x8000_0000, 0];
    let divu = op(5, 1, A2, A0, A1);
    assert_eq!(cycles(&[mulh, jal(A3, 4)], 1, [0; 3]), 5 + 1);
    assert_eq!(cycles(&[divu, jal(A3, 4)], 1, shortest), 3 + 1);
    // The second jump enters decode only after the first one leaves it.
    assert_eq!(cycles(&[mulh, jal(A3, 4), jal(A3, 4)], 1, [0; 3]), 5 + 1 + 2);
    // The return, which `cycles` counts as two.
    assert_eq!(cycles(&[mulh], 1, [0; 3]), 5 - 1);
    assert_eq!(cycles(&[divu], 1, shortest), 3 - 1);
    // With another instruction in decode in the meantime, or a branch, which is taken in the execute stage.
    assert_eq!(cycles(&[mulh, NOP, jal(A3, 4)], 1, [0; 3]), 5 + 1 + 2);
    assert_eq!(cycles(&[mulh, branch(0, 0, 0, 4)], 1, [0; 3]), 5 + 3);
    // auipc a1, 0; divu a1, a1, a0 with a divisor of 1; jalr a2, 12(a1): the jump needs the quotient in decode
    assert_eq!(cycles(&[0x0000_0597, op(5, 1, A1, A1, A0), jalr(A2, A1, 12)], 1, [1, 0, 0]), 1 + 34 + 1 + 2);
}

/// The next instruction is decoded after these end, and they start after the previous access ends.
#[test]
fn nothing_is_decoded_behind_control_registers_and_fences() {
    for word in [csrr(A1, 0xc02), FENCE] {
        assert_eq!(cycles(&[word], 1, [0; 3]), 4, "{word:#x}");
        assert_eq!(cycles(&[word, jal(A3, 4)], 1, [0; 3]), 4 + 2, "{word:#x}");
        assert_eq!(cycles(&[lw(A2, A5, 0), word], 3, [0; 3]), 3 + 4, "{word:#x}");
        // With another instruction between them, which waits in the execute stage.
        assert_eq!(cycles(&[lw(A2, A5, 0), NOP, word], 3, [0; 3]), 3 + 1 + 4, "{word:#x}");
    }
}

#[test]
fn a_loop_costs_the_same_in_every_iteration() {
    // addi, bne taken: 4; the last bne falls through
    let words = [addi(A0, A0, -1), branch(1, A0, 0, -4)];
    for rounds in [1, 2, 3, 1000] {
        assert_eq!(cycles(&words, 1, [rounds, 0, 0]), 4 * u64::from(rounds) - 2);
    }
}

#[test]
fn a_warm_engine_computes_the_same_time() {
    let mut card = Card::new(&[lw(A1, SP, -8), add(A0, A0, A1), branch(1, A0, 0, 8), NOP, RET]);
    let times = [0, 1, 0, 1].map(|a0| card.run([a0, 0, 0]).1.cycles());
    // lw, load-use, add, bne taken 3 or 1 + nop
    assert_eq!(times, [5 + RETURN, 6 + RETURN, 5 + RETURN, 6 + RETURN]);
}

#[test]
fn a_fault_has_a_time() {
    let (stop, thread) = Card::new(&[mul(A1, A0, A0), NOP, lw(A1, 0, 0), NOP, RET]).run([0; 3]);
    assert!(matches!(stop, Stop::Fault(_)));
    assert_eq!((thread.cycles(), thread.instructions()), (3, 2));
}

/// The longest block of loads, with the slowest memory of any machine.
#[test]
fn the_slowest_memory_is_counted_correctly() {
    let program = [&[DATA_A5][..], &[lw(A1, A5, 0); 62], &[RET]].concat();
    for cycles in [1, 2, 9_999, 10_000] {
        let (stop, thread) = Card::timed(&program, TimingKind::InOrder, cycles).run([0; 3]);
        assert!(matches!(stop, Stop::Return(_)));
        // One instruction, the loads in sequence, and a jump, which left decode during the wait of the last load but
        // one.
        assert_eq!(thread.cycles(), 1 + 62 * u64::from(cycles) + if cycles == 1 { 2 } else { 1 });
        let (_, thread) = Card::timed(&program, TimingKind::OooA15, cycles).run([0; 3]);
        // One load per cycle, from address to result; at most 16 at once.
        let rounds = 62_u64.div_ceil(16);
        let least = rounds * u64::from(cycles);
        assert!((least..least + 100 + 10 * rounds).contains(&thread.cycles()), "{cycles}: {}", thread.cycles());
    }
}

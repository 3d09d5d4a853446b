// SPDX-License-Identifier: Apache-2.0
//! CORE-V extensions: every instruction, as the assembler encodes it, against the user manual.

mod intrinsics;
mod loops;
mod reference;
mod words;

use abi::device::map;
use hpu::isa::instruction_set;
use hpu::{Fault, Stop};
use machine::TimingKind;

use self::reference::{Text, result};
use self::words::ASSEMBLED;
use crate::card::Card;
use hpu::testing::*;

pub const KIND: &str = "rv32imac-corev";
/// Registers of [`ASSEMBLED`]: destination, first and second source.
const D: u8 = 31;
const A: u8 = 30;
const B: u8 = 29;

pub fn card(words: &[u32]) -> Card {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Card::of_kind(&code, KIND, TimingKind::InOrder, 1)
}

/// Generates edge values and numbers with a fixed seed (xorshift).
fn numbers() -> impl Iterator<Item = u32> {
    let edges =
        [0, 1, 2, 31, 32, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x8000_0000, 0x7fff_ffff, u32::MAX, 0x8000_8000];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let random = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    });
    edges.into_iter().chain(random.take(200))
}

fn is_memory(assembly: &str) -> bool {
    assembly.contains('(')
}

fn is_branch(assembly: &str) -> bool {
    assembly.starts_with("cv.beq") || assembly.starts_with("cv.bne")
}

/// Returns all immediates of the encoding, as words and texts.
fn with_immediates(encoded: u32, assembly: &str) -> Vec<(u32, Text)> {
    let text = |immediates: Vec<i64>| Text { immediates, ..Text::of(assembly) };
    let (opcode, count) = (encoded & 0x7f, Text::of(assembly).immediates.len());
    match (opcode, count) {
        (_, 0) => vec![(encoded, text(Vec::new()))],
        // Size and position; bit reversal has three sizes.
        (0x5b, 2) => {
            let sizes = if assembly.starts_with("cv.bitrev") { 4 } else { 32 };
            let all = (0..sizes).flat_map(|size| (0..32_u32).map(move |position| (size, position)));
            all.map(|(size, position)| {
                let word = encoded & !(0x3ff << 20) | size << 25 | position << 20;
                (word, text(vec![size.into(), position.into()]))
            })
            .collect()
        }
        (0x5b, _) => (0..32).map(|shift| (encoded & !(31 << 25) | shift << 25, text(vec![shift.into()]))).collect(),
        (0x2b, _) => (0..32).map(|size| (encoded & !(31 << 20) | size << 20, text(vec![size.into()]))).collect(),
        _ => {
            let signed = Text::of(assembly).immediates[0] < 0;
            (0..64_u32)
                .map(|six| {
                    let word = encoded & !(63 << 20) | (six & 1) << 25 | (six >> 1) << 20;
                    let value = if signed { i64::from((six as i32) << 26 >> 26) } else { six.into() };
                    (word, text(vec![value]))
                })
                .collect()
        }
    }
}

#[test]
fn every_computation_is_what_the_manual_says() {
    let mut count = 0;
    for (encoded, assembly) in ASSEMBLED.iter().filter(|(_, text)| !is_memory(text) && !is_branch(text)) {
        let variants = with_immediates(*encoded, assembly);
        // Fewer values for more immediates.
        let values: Vec<u32> = numbers().take(if variants.len() > 64 { 12 } else { 60 }).collect();
        for (word, text) in variants {
            let mut card = card(&[word, RET]);
            for (index, a) in values.iter().enumerate() {
                let b = values[(index * 7 + 3) % values.len()];
                let d = values[(index * 11 + 5) % values.len()];
                let mut thread = card.thread([0; 3]);
                for (register, value) in [(A, *a), (B, b), (D, d)] {
                    thread.set_register(register, value);
                }
                assert_eq!(card.resume(&mut thread, 100), Stop::Return(0), "{assembly}");
                let expected = result(&text, *a, b, d);
                assert_eq!(thread.register(D), expected, "{assembly} {:?}: {a:#x} {b:#x} {d:#x}", text.immediates);
                // The sources are unchanged, and every instruction takes one cycle.
                assert_eq!((thread.register(A), thread.register(B), thread.cycles()), (*a, b, 3));
            }
        }
        count += 1;
    }
    assert_eq!(count, ASSEMBLED.len() - 24 - 2);
}

/// Tests all pairs of bytes, for the byte operations on two registers.
#[test]
fn operations_on_bytes_are_exhaustive() {
    let on_bytes = |text: &str| text.starts_with("cv.") && text.contains(".b t6, t5, t4") && !text.contains(".sc.");
    for (word, assembly) in ASSEMBLED.iter().filter(|(_, text)| on_bytes(text)) {
        let (mut card, text) = (card(&[*word, RET]), Text::of(assembly));
        for pair in (0..1_u32 << 16).step_by(2) {
            // Two pairs at once, and others in the upper lanes.
            let (low, high) = (pair & 0xff, pair >> 8);
            let a = low << 16 | low << 8 | low | high << 24;
            let (next, shifted) = ((pair + 1) & 0xff, (pair >> 3) & 0xff);
            let b = high << 24 | high | next << 8 | shifted << 16;
            let mut thread = card.thread([0; 3]);
            for (register, value) in [(A, a), (B, b), (D, 0x1234_5678)] {
                thread.set_register(register, value);
            }
            card.resume(&mut thread, 100);
            assert_eq!(thread.register(D), result(&text, a, b, 0x1234_5678), "{assembly}: {a:#x} {b:#x}");
        }
    }
}

#[test]
fn loads_and_stores_with_increment_or_offset() {
    let mut count = 0;
    for (word, assembly) in ASSEMBLED.iter().filter(|(_, text)| is_memory(text)) {
        count += 1;
        let name = assembly.split_once(' ').unwrap().0.trim_start_matches("cv.");
        let (post, by_register) = (assembly.contains("(t5),"), assembly.contains("t4"));
        for step in [0, 4, -1_i32, 2047, -2048] {
            let encoded = match (by_register, name.starts_with('s')) {
                (true, _) => *word,
                (false, false) => word & 0x000f_ffff | (step as u32) << 20,
                (false, true) => word & 0x01ff_f07f | (step as u32 >> 5 & 0x7f) << 25 | (step as u32 & 31) << 7,
            };
            let mut card = card(&[encoded, RET]);
            card.set(0x800, &[0x81, 0x92, 0xa3, 0xb4]);
            let mut thread = card.thread([0; 3]);
            let base = map::DATA + 0x800;
            let start = if post { base } else { base.wrapping_sub(step as u32) };
            for (register, value) in [(A, start), (B, step as u32), (D, 0xcafe_f00d)] {
                thread.set_register(register, value);
            }
            assert_eq!(card.resume(&mut thread, 100), Stop::Return(0), "{assembly}");
            let next = if post { base.wrapping_add(step as u32) } else { start };
            assert_eq!(thread.register(A), next, "{assembly} {step}");
            let (loaded, stored) = match name {
                "lb" => (0xffff_ff81, None),
                "lbu" => (0x81, None),
                "lh" => (0xffff_9281, None),
                "lhu" => (0x9281, None),
                "lw" => (0xb4a3_9281, None),
                "sb" => (0xcafe_f00d, Some(0xb4a3_920d)),
                "sh" => (0xcafe_f00d, Some(0xb4a3_f00d)),
                _ => (0xcafe_f00d, Some(0xcafe_f00d)),
            };
            assert_eq!((thread.register(D), card.word(0x800)), (loaded, stored.unwrap_or(0xb4a3_9281)), "{assembly}");
            // One cycle, and two for the return; the new address is ready immediately.
            assert_eq!(thread.cycles(), 3);
        }
    }
    assert_eq!(count, 24);
}

#[test]
fn a_loaded_value_wins_against_the_new_address() {
    // cv.lw a0, (a0), 4
    let mut card = card(&[0x0045_250b, RET]);
    card.set(0, &7_u32.to_le_bytes());
    assert_eq!(card.run([map::DATA, 0, 0]).0, Stop::Return(7));
}

#[test]
fn accesses_with_increment_take_their_time() {
    let cycles = |words: &[u32]| {
        let (stop, thread) = card(&[&[DATA_A5], words, &[RET]].concat()).run([0; 3]);
        assert!(matches!(stop, Stop::Return(_)), "{stop:?}");
        thread.cycles() - 1 - 2
    };
    // cv.lw a1, (a5), 4: the value is ready a cycle later, the address immediately; an access across words takes two
    // cycles.
    let load = 0x0047_a58b;
    assert_eq!(cycles(&[load, addi(A2, A1, 1)]), 3);
    assert_eq!(cycles(&[load, addi(A2, A5, 1)]), 2);
    assert_eq!(cycles(&[load, load, load]), 3);
    assert_eq!(cycles(&[addi(A5, A5, 2), load]), 1 + 2);
    // cv.sw a1, (a5), 4
    assert_eq!(cycles(&[0x00b7_a22b, addi(A2, A5, 1)]), 2);
}

#[test]
fn branches_compare_with_an_immediate() {
    // beqimm and bneimm a0, imm, +12: the fields of a branch, with the immediate in place of rs2
    let branch = |f3: u32, immediate: i32| branch(f3, A0, immediate as u32 & 31, 12) & !0x7f | 0x0b;
    for (f3, immediate, value, taken) in [
        (6, 5, 5, true),
        (6, 5, 6, false),
        (6, -16, -16_i32 as u32, true),
        (6, -1, 31, false),
        (7, 15, 15, false),
        (7, 15, 14, true),
        (7, -1, u32::MAX, false),
    ] {
        let words = [branch(f3, immediate), addi(A0, 0, 0), RET, addi(A0, 0, 1), RET];
        let (stop, thread) = card(&words).run([value, 0, 0]);
        assert_eq!(stop, Stop::Return(taken.into()), "{f3} {immediate} {value}");
        assert_eq!(thread.cycles(), if taken { 3 } else { 1 } + 1 + 2);
    }
    for (word, assembly) in ASSEMBLED.iter().filter(|(_, text)| is_branch(text)) {
        // As encoded by the assembler: t5, -1, 2046 bytes ahead.
        let decoded = instruction_set(KIND).unwrap().decode(&word.to_le_bytes(), 0x1d00_0000).unwrap();
        assert_eq!((decoded.target, decoded.length), (Some(0x1d00_07fe), 4), "{assembly}");
    }
}

#[test]
fn other_cores_do_not_have_them() {
    for (word, assembly) in ASSEMBLED {
        let (stop, _) = Card::new(&[NOP, *word, RET]).run([0; 3]);
        let pc = map::PROGRAM + 4;
        assert_eq!(stop, Stop::Fault(Fault::Illegal { pc, word: *word }), "{assembly}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Random instructions of every encoding, compared with the emulator unicorn (a package of Python; without it the test is
//! skipped with a message): registers, flags and memory must be equal.
//!
//! A case is a random state and at least eight instructions. For the emulator, code around the instructions loads the state and
//! stores the result; here the operations run directly. `SPINKIT_ARM_CASES` sets the number of cases, `SPINKIT_ARM_SEED` the first seed.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::decode::{decode, find};
use super::fields::{FP_FLAGS, GE, Q};
use super::flags::{nzcv, set_nzcv};
use super::row::Row;
use super::table::{CONDITIONAL, UNCONDITIONAL};
use crate::architectural_state::State;
use crate::memory::{Memory, View};
use crate::op::{Class, Flow, Op};
use crate::watch::Watched;
use crate::window::{Sharing, Window};

/// Code of the emulator.
const CODE: u32 = 0x0100_0000;
/// States of all cases, before and after.
const SLOTS: u32 = 0x4000_0000;
/// Memory of loads and stores.
const SCRATCH_BYTES: u32 = 0x4000;
/// State: 32 double registers, APSR, flags of floating-point comparisons, and 14 registers without `r13`.
const SLOT_BYTES: u32 = 32 * 8 + 8 + 14 * 4;
/// First seed of the random numbers.
const SEED: u64 = 0x5eed;
const INSTRUCTIONS: usize = 8;
/// Instructions of the emulator before those of a case.
const BEFORE: u32 = 10;
/// Register that the code around the instructions uses.
const SP: u8 = 13;

/// Xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 8) % limit
    }

    /// Returns a number, often one at the edge of a range.
    fn word(&mut self) -> u32 {
        match self.below(8) {
            0 => [0, 1, 2, u32::MAX, 0x7fff_ffff, 0x8000_0000, 0x8000_8000, 0x7fff_7fff][self.below(8) as usize],
            1 => self.below(256) as u32,
            2 => (self.below(256) as u32).wrapping_neg(),
            _ => self.next() as u32,
        }
    }

    /// Returns the bits of a single, often a special one.
    fn single(&mut self) -> u32 {
        const SPECIAL: [u32; 12] = [
            0,
            0x8000_0000,
            0x3f80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_1234,
            0x7f80_0001,
            0xffa0_0000,
            1,
            0x0080_0000,
            0x007f_ffff,
            0x7f7f_ffff,
        ];
        let sign = (self.below(2) as u32) << 31;
        match self.below(6) {
            0 => SPECIAL[self.below(12) as usize],
            1 => (self.below(65536) as f32 / 16.0).to_bits() | sign,
            2 => (self.next() as u32 & 0x807f_ffff) | (0x3f80_0000 + (self.below(8) as u32) * 0x0080_0000),
            3 => (self.next() as u32 & 0x807f_ffff) | (self.below(40) as u32) << 23,
            4 => (self.next() as u32) >> self.below(32),
            _ => self.next() as u32,
        }
    }

    /// Returns a double register: vectors of integers, singles or a double.
    fn wide(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next(),
            1 => u64::from(self.word()) << 32 | u64::from(self.word()),
            2 => u64::from(self.single()) << 32 | u64::from(self.single()),
            _ => match self.below(4) {
                0 => super::float::widened(self.single()),
                1 => [0x7ff8_0000_0000_0001, 0x7ff0_0000_0000_0001, 1, 0x000f_ffff_ffff_ffff][self.below(4) as usize],
                _ => self.next() & 0x800f_ffff_ffff_ffff | (0x3fc + self.below(40)) << 52,
            },
        }
    }
}

/// Returns every row whose instructions neither jump nor trap nor enter the card.
fn rows() -> Vec<(bool, &'static Row)> {
    let rows = [(false, CONDITIONAL), (true, UNCONDITIONAL)];
    let all = rows
        .into_iter()
        .flat_map(|(always, rows)| rows.iter().flat_map(move |rows| rows.iter().map(move |row| (always, row))));
    // The emulator stops at `yield`, and `mrs` there also returns the mode; it is tested by the code around each case.
    let all = all.filter(|(_, row)| !["yield", "mrs"].contains(&row.name));
    all.filter(|(_, row)| {
        !matches!(row.class, Class::Command | Class::Trap | Class::Jump | Class::Return | Class::JumpIndirect)
    })
    .collect()
}

/// Returns `movw` and `movt`.
fn constant(register: u8, value: u32) -> [u32; 2] {
    let half = |value: u32| (value >> 12 & 15) << 16 | value & 0xfff | u32::from(register) << 12;
    [0xe300_0000 | half(value & 0xffff), 0xe340_0000 | half(value >> 16)]
}

/// Draws an instruction of a row with the instructions that prepare its address.
fn draw(random: &mut Random, always: bool, row: &Row, scratch: u32) -> Option<Vec<u32>> {
    let mut word = random.next() as u32 & !row.mask | row.bits;
    // Some fields must be zero.
    for nibble in [0xf000, 0xf_0000] {
        if random.below(4) == 0 {
            word &= !nibble | row.mask;
        }
    }
    if !always {
        let condition = if random.below(4) == 0 { random.below(14) as u32 } else { 14 };
        word = word & 0x0fff_ffff | condition << 28;
    }
    let decoded = decode(word, CODE);
    if decoded.class.ends_block() && decoded.class != Class::Atomic || decoded.class == Class::Trap {
        return None;
    }
    let used = decoded.sources | decoded.results | decoded.access.updates;
    if used.contains(SP) {
        return None;
    }
    if !decoded.class.accesses_memory() {
        return Some(vec![word]);
    }
    // The base is in the middle of the memory, the offset small and aligned.
    let base = decoded.access.base;
    if base > 14 {
        return None; // relative to the pc
    }
    let mut code = constant(base, scratch + SCRATCH_BYTES / 2).to_vec();
    let is_vector = always;
    let is_word = word & 0x0e00_0010 == 0x0600_0000;
    let is_extra = word & 0x0e40_0090 == 0x0000_0090 && word & 0x60 != 0;
    if is_vector || is_word || is_extra {
        let offset = (word & 15) as u8;
        if offset == base {
            return None;
        }
        if offset < 13 {
            code.extend(constant(offset, 8 * random.below(16) as u32));
        }
        // Rotations and large shifts would leave the memory.
        if is_word && (word & 0x60 == 0x60 || word & 0x60 == 0 && word >> 7 & 31 > 5) {
            return None;
        }
    }
    // A double word has an address that is a multiple of 4.
    if word & 0x0e50_00d0 == 0x0040_00d0 && word & 3 != 0 {
        return None;
    }
    code.push(word);
    Some(code)
}

/// Returns a word with the name of its row.
fn named(word: u32) -> String {
    format!("{word:#010x} {}", find(word).map_or("", |row| row.name))
}

/// A case: the state before, and the instructions.
struct Case {
    before: State,
    words: Vec<u32>,
}

fn apsr(s: &State) -> u32 {
    nzcv(s) << 28 | s.word(Q) << 27 | s.word(GE) << 16
}

fn random_state(random: &mut Random) -> State {
    let mut state = State::ZERO;
    (0..32).for_each(|register| state.set_wide(register, random.wide()));
    (0..15).filter(|register| *register != SP).for_each(|register| state.set_word(register, random.word()));
    set_nzcv(&mut state, random.below(16) as u32);
    state.set_word(Q, random.below(2) as u32);
    state.set_word(GE, random.below(16) as u32);
    state.set_word(FP_FLAGS, (random.below(16) as u32) << 28);
    state
}

/// Returns the bytes of a state. Flags of the comparison are NZCV in bits 31 to 28.
fn slot(s: &State) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..32).flat_map(|register| s.wide(register).to_le_bytes()).collect();
    bytes.extend(apsr(s).to_le_bytes());
    bytes.extend(s.word(FP_FLAGS).to_le_bytes());
    bytes.extend((0..15).filter(|register| *register != SP).flat_map(|register| s.word(register).to_le_bytes()));
    bytes
}

/// Returns the emulator's code of a case: loads the state in `slot`, runs, and stores the state there.
fn code(case: &Case, slot: u32) -> Vec<u32> {
    let mut code = constant(SP, slot).to_vec();
    code.extend([
        0xf57f_f01f, // clrex
        0xecbd_0b20, // vldmia sp!, {d0-d15}
        0xecfd_0b20, // vldmia sp!, {d16-d31}
        0xe49d_0004, // ldr r0, [sp], #4
        0xe12c_f000, // msr apsr_nzcvqg, r0
        0xe49d_0004, // ldr r0, [sp], #4
        0xeee1_0a10, // vmsr fpscr, r0
        0xe89d_5fff, // ldm sp, {r0-r12, lr}
    ]);
    code.extend(&case.words);
    code.extend(constant(SP, slot));
    code.extend([
        0xecad_0b20, // vstmia sp!, {d0-d15}
        0xeced_0b20, // vstmia sp!, {d16-d31}
        0xe28d_d008, // add sp, sp, #8
        0xe88d_5fff, // stm sp, {r0-r12, lr}
        0xe10f_0000, // mrs r0, apsr
        0xe50d_0008, // str r0, [sp, #-8]
        0xeef1_fa10, // vmrs apsr_nzcv, fpscr
        0xe10f_0000, // mrs r0, apsr
        0xe50d_0004, // str r0, [sp, #-4]
    ]);
    code
}

/// Runs the emulator; `None` if it is not installed.
fn emulated(code: &[u32], data: &[u8]) -> Option<Vec<u8>> {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = home.join(".venv/bin/python");
    let script = home.join("tests/arm/unicorn_run.py");
    let child = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return None };
    let mut input: Vec<u8> =
        [CODE, 4 * code.len() as u32, SLOTS, data.len() as u32].iter().flat_map(|word| word.to_le_bytes()).collect();
    input.extend(code.iter().flat_map(|word| word.to_le_bytes()));
    input.extend(data);
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    match output.status.code() {
        Some(0) => Some(output.stdout),
        Some(3) => None,
        _ => {
            let at = u32::from_le_bytes(output.stdout[..4].try_into().unwrap()).wrapping_sub(CODE) / 4;
            let near = (at as usize).saturating_sub(4)..(at as usize + 2).min(code.len());
            let near: Vec<_> = code[near].iter().map(|word| named(*word)).collect();
            panic!("the emulator failed near {near:?}");
        }
    }
}

/// Runs a case here, with its first instruction at `pc`.
fn run(case: &Case, pc: u32, arena: &mut [u8], scratch: u32) -> Result<State, Flow> {
    let mut watched = Watched::default();
    let windows = [Window { base: scratch, len: SCRATCH_BYTES, offset: 0, write: true, sharing: Sharing::Private }];
    let mut memory = Memory { arena, windows: &windows, watched: &mut watched };
    let mut view = View::new(&mut memory);
    let mut state = case.before.clone();
    for (pc, word) in (pc..).step_by(4).zip(&case.words) {
        let op = decode(*word, pc).op;
        match Op::run_all(&[op], &mut state, &mut view) {
            Flow::Next => {}
            flow => return Err(flow),
        }
    }
    Ok(state)
}

/// Returns the emulator's state after a case, with the flags that programs see. The emulator sets Q if the products of an
/// SMLAD overflow, even if the sum with the addend does not (A8.8.178): Q is then ours.
fn observed(theirs: &[u8], at: usize, (case, after): &(Case, State)) -> Vec<u8> {
    let mut bytes = theirs[at * SLOT_BYTES as usize..][..SLOT_BYTES as usize].to_vec();
    if case.words.iter().any(|word| find(*word).is_some_and(|row| row.name == "smlad")) {
        bytes[259] = bytes[259] & !8 | (after.word(Q) as u8) << 3;
    }
    for (place, mask) in [(256, 0xf80f_0000_u32), (260, 0xf000_0000)] {
        let kept = u32::from_le_bytes(bytes[place..place + 4].try_into().unwrap()) & mask;
        bytes[place..place + 4].copy_from_slice(&kept.to_le_bytes());
    }
    bytes
}

/// Runs cases on both sides; returns the number of instructions, or `None` without the emulator.
fn compare(seed: u64, cases: u32, seen: &mut std::collections::BTreeSet<u32>) -> Option<u64> {
    let mut random = Random(seed);
    let rows = rows();
    let scratch = (SLOTS + cases * SLOT_BYTES).next_multiple_of(4096);
    let mut arena: Vec<u8> = (0..SCRATCH_BYTES).map(|_| random.next() as u8).collect();
    let mut data = vec![0; (scratch - SLOTS) as usize];
    data.extend(&arena);
    let first_arena = arena.clone();
    let (mut program, mut results, mut count) = (Vec::new(), Vec::new(), 0);
    while results.len() < cases as usize {
        let (mut words, mut exclusive_size) = (Vec::new(), None);
        while words.len() < INSTRUCTIONS {
            let (always, row) = rows[random.below(rows.len() as u64) as usize];
            // The pair of load and store exclusive must have the same size.
            if row.class == Class::Atomic && *exclusive_size.get_or_insert(row.bits & 0x60_0000) != row.bits & 0x60_0000
            {
                continue;
            }
            if let Some(more) = draw(&mut random, always, row, scratch) {
                words.extend(more);
                seen.insert(row.bits);
            }
        }
        let case = Case { before: random_state(&mut random), words };
        let kept = arena.clone();
        let Ok(after) = run(&case, CODE + 4 * (program.len() as u32 + BEFORE), &mut arena, scratch) else {
            // A misaligned access, which the emulator permits.
            arena = kept;
            continue;
        };
        let slot_address = SLOTS + results.len() as u32 * SLOT_BYTES;
        let at = (slot_address - SLOTS) as usize;
        data[at..at + SLOT_BYTES as usize].copy_from_slice(&slot(&case.before));
        program.extend(code(&case, slot_address));
        count += case.words.len() as u64;
        results.push((case, after));
    }
    let theirs = emulated(&program, &data)?;
    let first = (0..results.len())
        .find(|at| slot(&results[*at].1) != observed(&theirs, *at, &results[*at]))
        .unwrap_or(results.len());
    if first < results.len() || theirs[(scratch - SLOTS) as usize..] != arena {
        // Find the first case after which the memories differ.
        let starts: Vec<usize> = results
            .iter()
            .scan(0, |at, (case, _)| {
                let start = *at;
                *at += code(case, 0).len();
                Some(start)
            })
            .chain([program.len()])
            .collect();
        let differs = |cases: usize| {
            let mut arena = first_arena.clone();
            for (at, (case, _)) in results.iter().take(cases).enumerate() {
                run(case, CODE + 4 * (starts[at] as u32 + BEFORE), &mut arena, scratch).unwrap();
            }
            emulated(&program[..starts[cases]], &data).unwrap()[(scratch - SLOTS) as usize..] != arena
        };
        let (mut equal, mut different) = (0, first);
        if differs(first) {
            while different - equal > 1 {
                let middle = usize::midpoint(equal, different);
                if differs(middle) { different = middle } else { equal = middle }
            }
            let words: Vec<_> = results[equal].0.words.iter().map(|word| named(*word)).collect();
            panic!("seed {seed}: memory differs after {words:?}");
        }
    }
    let mut differences = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let (case, after) = result;
        let (ours, bytes) = (slot(after), observed(&theirs, at, result));
        if ours != bytes {
            let differs = (0..SLOT_BYTES as usize).find(|at| ours[*at] != bytes[*at]).unwrap();
            let place =
                if differs < 256 { format!("d{}", differs / 8) } else { format!("word {}", (differs - 256) / 4) };
            let start = if differs < 256 { differs & !7 } else { differs & !3 };
            let range = start..start + if differs < 256 { 8 } else { 4 };
            let names: Vec<_> = case.words.iter().map(|word| named(*word)).collect();
            differences.push(format!(
                "{place}: ours {:02x?}, emulator {:02x?}; {names:?}",
                &ours[range.clone()],
                &bytes[range.clone()]
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "seed {seed}, {} differences:\n{}",
        differences.len(),
        differences[..differences.len().min(20)].join("\n")
    );
    Some(count)
}

#[test]
fn every_encoding_equals_the_emulator() {
    let cases: u64 = std::env::var("SPINKIT_ARM_CASES").map_or(2500, |cases| cases.parse().unwrap());
    let seed: u64 = std::env::var("SPINKIT_ARM_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    let (mut done, mut instructions, mut seen) = (0, 0, std::collections::BTreeSet::new());
    while done < cases {
        let some = (cases - done).min(2500);
        let Some(count) = compare(seed + done, some as u32, &mut seen) else {
            println!("skipped: the Python package unicorn is not installed (requirements.txt)");
            return;
        };
        (done, instructions) = (done + some, instructions + count);
    }
    let missing: Vec<_> = rows().iter().filter(|(_, row)| !seen.contains(&row.bits)).map(|(_, row)| row.name).collect();
    println!("{instructions} instructions of {} encodings", seen.len());
    assert!(missing.is_empty(), "not drawn: {missing:?}");
}

// SPDX-License-Identifier: Apache-2.0
//! Loading of device programs, and all errors in them.

use std::sync::Arc;

use abi::device::map;
use hpu::{ElfError, Engine, Memory, Sharing, Stop, Thread, Watched, Window};
use machine::TimingKind;
use proptest::prelude::*;

use crate::card::{STACK_TOP, load};
use hpu::testing::*;

/// Compiled by `zig cc -target riscv32-freestanding-ilp32 -mcpu=generic_rv32+m+a+c -O2 -g -nostdlib`; see `mix.c`.
pub const MIX: &[u8] = include_bytes!("mix.elf");

const KIND: &str = "rv32imac";
const HEADER: usize = 52;
const SEGMENT: usize = 32;
const NO_TYPE: u8 = 0;
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;

/// A symbol: name, address, size, type.
type Symbol<'a> = (&'a str, u32, u32, u8);

/// Builds an ELF32 executable: code at PROGRAM, `data` and as much zeroed memory at DATA, symbols.
pub fn image(code: &[u8], data: &[u8], symbols: &[Symbol<'_>]) -> Vec<u8> {
    image_for("", code, data, symbols)
}

/// Builds an executable like [`elf`], with attributes that name the target architecture.
pub fn image_for(architecture: &str, code: &[u8], data: &[u8], symbols: &[Symbol<'_>]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut names = vec![0];
    let mut table = vec![0; 16];
    for (name, address, size, kind) in symbols {
        table.extend(words(&[names.len() as u32, *address, *size]));
        // Global, default visibility, section 1
        table.extend([0x10 | kind, 0, 1, 0]);
        names.extend(name.bytes().chain([0]));
    }
    // Format version; length, vendor; tag of the whole file, length, and Tag_RISCV_arch.
    let value = [&[5], architecture.as_bytes(), &[0]].concat();
    let vendor = b"riscv\0";
    let length = 4 + vendor.len() + 5 + value.len();
    let attributes =
        [b"A", &words(&[length as u32])[..], vendor, &[1], &words(&[5 + value.len() as u32]), &value].concat();
    let attributes_name = names.len() as u32;
    names.extend(b".riscv.attributes\0");
    let code_at = HEADER + 2 * SEGMENT;
    let data_at = code_at + code.len();
    let table_at = data_at + data.len();
    let names_at = table_at + table.len();
    let attributes_at = names_at + names.len();
    let sections_at = attributes_at + attributes.len();

    let mut elf = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_EXEC, EM_RISCV
    elf.extend([2, 0, 243, 0]);
    elf.extend(words(&[1, map::PROGRAM, HEADER as u32, sections_at as u32, 0]));
    let sections = if architecture.is_empty() { 4 } else { 5 };
    for half in [HEADER, SEGMENT, 2, 40, sections, 3] {
        elf.extend((half as u16).to_le_bytes());
    }
    // PT_LOAD: offset, addresses, sizes in file and memory, flags, alignment
    let (code_len, data_len) = (code.len() as u32, data.len() as u32);
    elf.extend(words(&[1, code_at as u32, map::PROGRAM, map::PROGRAM, code_len, code_len, 5, 4]));
    elf.extend(words(&[1, data_at as u32, map::DATA, map::DATA, data_len, 2 * data_len, 6, 4]));
    for part in [code, data, &table, &names, &attributes] {
        elf.extend_from_slice(part);
    }
    // Sections: none, .text, symbol table, strings, attributes (SHT_RISCV_ATTRIBUTES)
    elf.extend(words(&[0; 10]));
    elf.extend(words(&[0, 1, 6, map::PROGRAM, code_at as u32, code_len, 0, 0, 4, 0]));
    elf.extend(words(&[0, 2, 0, 0, table_at as u32, table.len() as u32, 3, 1, 4, 16]));
    elf.extend(words(&[0, 3, 0, 0, names_at as u32, names.len() as u32, 0, 0, 1, 0]));
    let attributes_len = attributes.len() as u32;
    elf.extend(words(&[attributes_name, 0x7000_0003, 0, 0, attributes_at as u32, attributes_len, 0, 0, 1, 0]));
    elf
}

fn example() -> Vec<u8> {
    let code: Vec<u8> = [addi(A0, 3, 0), RET, NOP, RET].iter().flat_map(|w| w.to_le_bytes()).collect();
    let symbols = [
        ("payload", map::PROGRAM, 8, FUNCTION),
        ("completion", map::PROGRAM + 8, 8, FUNCTION),
        ("label", map::PROGRAM + 4, 0, NO_TYPE),
        ("table", map::PROGRAM + 4, 4, OBJECT),
        ("counter", map::DATA, 4, FUNCTION),
        ("__global_pointer$", map::DATA + 0x800, 0, NO_TYPE),
    ];
    image(&code, &[1, 2, 3, 4], &symbols)
}

fn error(elf: &[u8]) -> ElfError {
    load(elf, KIND).err().expect("an error")
}

#[test]
fn segments_symbols_and_global_pointer() {
    let program = load(&example(), KIND).unwrap();
    assert_eq!(program.program_segment().len(), 16);
    assert_eq!(program.data_segment(), [1, 2, 3, 4, 0, 0, 0, 0]);
    assert!(program.data_parts().iter().eq([&(map::DATA..map::DATA + 8)]));
    assert_eq!(program.entry("payload"), Some(map::PROGRAM));
    assert_eq!(program.entry("label"), Some(map::PROGRAM + 4));
    for absent in ["table", "counter", "", "nothing"] {
        assert_eq!(program.entry(absent), None, "{absent}");
    }
    assert_eq!(program.function(map::PROGRAM + 6), Some("payload"));
    assert_eq!(program.function(map::PROGRAM + 8), Some("completion"));
    assert_eq!(program.function(map::PROGRAM + 16), None);
    assert_eq!(program.function(map::DATA), None);
    assert_eq!(program.line(map::PROGRAM), None);

    let thread = Thread::new(&program, map::PROGRAM, STACK_TOP, [0; 3]);
    assert_eq!(thread.register(3), map::DATA + 0x800);
}

#[test]
fn foreign_and_broken_files_are_named() {
    assert!(matches!(error(b""), ElfError::Elf(_)));
    assert!(matches!(error(b"#!/bin/sh\n"), ElfError::Elf(_)));
    assert!(matches!(error(&example()[..100]), ElfError::Elf(_)));
    let with = |at: usize, bytes: &[u8]| {
        let mut elf = example();
        elf[at..at + bytes.len()].copy_from_slice(bytes);
        elf
    };
    // 64 bit; big-endian
    assert!(matches!(error(&with(4, &[2])), ElfError::Elf(_)));
    assert!(matches!(error(&with(5, &[2])), ElfError::Elf(_)));
    let text = error(&with(18, &[62, 0])).to_string();
    assert_eq!(text, "device program: machine is 62, but rv32imac cores execute RISC-V (243)");
    assert!(matches!(error(&with(16, &[3, 0])), ElfError::Type { found: 3 }));

    let segment = |n: usize, field: usize, value: u32| with(HEADER + SEGMENT * n + 4 * field, &value.to_le_bytes());
    for (n, address) in [(0, 0x8000_0000), (1, map::PACKETS), (0, map::PROGRAM - 1), (0, map::RETURN - 8)] {
        match error(&segment(n, 2, address)) {
            ElfError::Placement { index, address: found, .. } => assert_eq!((index, found), (n, address)),
            other => panic!("{other}"),
        }
    }
    let allowed =
        "programs may only use program memory (0x1d000000, 33554416 B) and static data (0x1c000000, 4194304 B)";
    for (address, place) in [
        (0x8000_0000, "in no memory"),
        (map::PACKETS, "in the packet buffers"),
        (map::DATA - 4, "only partly in the static data"),
    ] {
        assert_eq!(
            error(&segment(1, 2, address)).to_string(),
            format!("device program: segment 1 at {address:#010x}, 8 B, is {place} of the test card; {allowed}")
        );
    }
    assert!(matches!(error(&segment(1, 5, u32::MAX)), ElfError::Placement { index: 1, bytes: u32::MAX, .. }));
    assert!(matches!(error(&segment(0, 1, 1 << 20)), ElfError::Truncated { index: 0, .. }));
    assert!(matches!(error(&segment(1, 4, 100)), ElfError::Truncated { index: 1, .. }));
    // No loadable segment holds code.
    assert!(matches!(error(&segment(0, 0, 0)), ElfError::NoCode));
}

#[test]
fn a_compiled_program_runs_and_has_source_lines() {
    let program = Arc::new(load(MIX, KIND).unwrap());
    let entry = program.entry("mix").unwrap();
    assert_eq!(program.function(entry), Some("mix"));
    let location = program.line(entry).unwrap();
    assert_eq!((location.file, location.line), ("mix.c", 15));
    assert_eq!(program.data_segment().len(), 4 + 64);

    for timing in [TimingKind::InOrder, TimingKind::OooA15] {
        let mut engine = Engine::new(program.clone(), timing, 1);
        let mut arena = vec![0; 4096];
        let data = program.data_segment();
        arena[..data.len()].copy_from_slice(data);
        let code = program.program_segment();
        arena[1024..1024 + code.len()].copy_from_slice(code);
        let windows = [
            Window { base: map::DATA, len: data.len() as u32, offset: 0, write: true, sharing: Sharing::Shared },
            Window { base: STACK_TOP - 512, len: 512, offset: 512, write: true, sharing: Sharing::Private },
            Window {
                base: map::PROGRAM,
                len: code.len() as u32,
                offset: 1024,
                write: false,
                sharing: Sharing::Private,
            },
        ];
        let mut thread = Thread::new(&program, entry, STACK_TOP, [0xdead_beef, 1000, 7]);
        let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut Watched::default() };
        let stop = engine.run(&mut thread, &mut memory, u64::MAX);
        assert_eq!(stop, Stop::Return(mix(0xdead_beef, 1000, 7)));
    }
}

/// Reference computation of `mix.c`.
fn mix(seed: u32, rounds: u32, step: u32) -> u32 {
    let (mut counter, mut bins) = (5_u32, [0_u32; 16]);
    let mut x = u64::from(seed) << 32 | u64::from(step);
    for i in 1..=rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bins[(x & 15) as usize] = bins[(x & 15) as usize].wrapping_add((x >> 40) as u32 / i);
        counter = match x & 7 {
            0 => counter.wrapping_add(bins[3]),
            1 => counter.wrapping_mul(3),
            2 => counter.wrapping_sub((x as u32 as i32 % -7) as u32),
            3 => counter ^ (x >> 32) as u32,
            5 => counter.rotate_left(5),
            6 => !counter,
            _ => counter.wrapping_add(i64::from(x as i32).wrapping_mul(i64::from((x >> 32) as i32)) as u64 as u32),
        };
    }
    bins.iter().fold(counter, |sum, bin| sum.wrapping_mul(31).wrapping_add(*bin))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Arbitrary bytes yield a program or an error, and a loaded program runs to a stop.
    #[test]
    fn damaged_programs_never_panic(
        compiled: bool,
        cut in 0_usize..16384,
        damage in prop::collection::vec((0_usize..16384, any::<u8>()), 1..12),
    ) {
        let mut elf = if compiled { MIX.to_vec() } else { example() };
        for (at, byte) in damage {
            let len = elf.len();
            elf[at % len] = byte;
        }
        if cut < elf.len() && cut % 3 == 0 {
            elf.truncate(cut);
        }
        if let Ok(program) = load(&elf, KIND) {
            let program = Arc::new(program);
            let entry = program.entry(if compiled { "mix" } else { "payload" }).unwrap_or(map::PROGRAM);
            let _ = (program.line(entry), program.function(entry));
            let mut engine = Engine::new(program.clone(), TimingKind::OooA15, 1);
            let mut thread = Thread::new(&program, entry, STACK_TOP, [1, 2, 3]);
            let mut arena = vec![0; 1024];
            let windows = [Window { base: STACK_TOP - 1024, len: 1024, offset: 0, write: true, sharing: Sharing::Private }];
            let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut Watched::default() };
            let _ = engine.run(&mut thread, &mut memory, 1000);
        }
    }
}

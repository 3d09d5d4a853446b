// SPDX-License-Identifier: Apache-2.0
//! Missing extensions: the loader refuses code that needs them, and their instructions are illegal.

use abi::device::map;
use hpu::{Fault, Stop};
use machine::TimingKind;

use crate::card::{Card, load};
use crate::elf::{MIX, image, image_for};
use hpu::testing::*;

/// Offset of `e_flags` in an ELF header.
const FLAGS: usize = 36;

fn error(elf: &[u8], kind: &str) -> String {
    load(elf, kind).err().expect("an error").to_string()
}

/// Returns the stop of a handler with this code and a return, on a core of this kind.
fn end(code: &[u8], kind: &str) -> Stop {
    let code = [code, &RET.to_le_bytes()].concat();
    Card::of_kind(&code, kind, TimingKind::InOrder, 1).run([map::DATA, map::DATA, 0]).0
}

#[test]
fn programs_for_floating_point_registers_are_refused() {
    let code = RET.to_le_bytes();
    let with = |flags: u8| {
        let mut elf = image(&code, &[], &[]);
        elf[FLAGS] = flags;
        elf
    };
    // EF_RISCV_RVC, and the calling conventions ilp32, ilp32f, ilp32d and ilp32q
    for (flags, kind, message) in [
        (3, "rv32imac", "it passes arguments in floating-point registers (calling convention ilp32f)"),
        (4, "rv32imac", "it passes arguments in double-precision floating-point registers (calling convention ilp32d)"),
        (
            4,
            "rv32imafc",
            "it passes arguments in double-precision floating-point registers (calling convention ilp32d)",
        ),
        (1, "rv32ima", "it has compressed instructions (extension C)"),
    ] {
        assert_eq!(error(&with(flags), kind), format!("device program: {message}, which {kind} cores do not have"));
    }
    let quadruple = "device program: it passes arguments in quadruple-precision registers, which no core has";
    assert_eq!(error(&with(6), "rv32imafdc"), quadruple);
    for (flags, kind) in [(0, "rv32i"), (1, "rv32imac"), (3, "rv32imafc"), (5, "rv32imafdc")] {
        assert!(load(&with(flags), kind).is_ok(), "{flags} on {kind}");
    }
}

#[test]
fn programs_for_other_extensions_are_refused() {
    let compiled_for = |architecture: &str| image_for(architecture, &RET.to_le_bytes(), &[], &[]);
    for (architecture, kind, lacks) in [
        ("rv32i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0", "rv32imac", "extension F"),
        ("rv32i2p1_c2p0_zcf1p0", "rv32imac", "extension ZCF"),
        ("rv32i2p1_m2p0", "rv32iac", "extension M"),
        ("rv32i2p1_zba1p0", "rv32imafdc", "extension ZBA"),
        ("rv64i2p1_m2p0", "rv32imac", "rv64i"),
    ] {
        let message = format!("device program: it was compiled for {lacks}, which {kind} cores do not have");
        assert_eq!(error(&compiled_for(architecture), kind), message);
    }
    for kind in ["rv32imac", "rv32imafdc", "rv32imac-small"] {
        assert!(load(&compiled_for("rv32i2p1_m2p0_a2p1_c2p0_zicsr2p0_zmmul1p0"), kind).is_ok(), "{kind}");
        assert!(load(MIX, kind).is_ok(), "{kind}");
    }
    let mut broken = compiled_for("rv32i2p1");
    let version = broken.windows(12).position(|part| part.ends_with(b"riscv\0\x01")).unwrap();
    broken[version] = b'B';
    let message = error(&broken, "rv32imac");
    assert!(message.starts_with("device program: its section .riscv.attributes is broken: "), "{message}");
    assert!(!message.contains("cores"), "{message}");
}

#[test]
fn instructions_of_extensions_that_a_core_does_not_have_are_illegal() {
    let half = |word: u16| word.to_le_bytes().to_vec();
    let word = |word: u32| word.to_le_bytes().to_vec();
    for (name, code, without, with) in [
        ("flw", word(0x0005_2507), "rv32imac", "rv32imafc"),
        ("fsw", word(0x00a5_2027), "rv32imac", "rv32imafc"),
        ("fadd.s", word(0x00a5_0553), "rv32imac", "rv32imafc"),
        ("fmv.x.w", word(0xe005_05d3), "rv32imac", "rv32imafc"),
        ("fld", word(0x0005_3507), "rv32imafc", "rv32imafdc"),
        ("fadd.d", word(0x02a5_0553), "rv32imafc", "rv32imafdc"),
        ("c.flw", half(0x6108), "rv32imac", "rv32imafc"),
        ("c.fsw", half(0xe108), "rv32imac", "rv32imafc"),
        ("c.fld", half(0x2108), "rv32imafc", "rv32imafdc"),
        ("c.fsd", half(0xa108), "rv32imac", "rv32imafdc"),
        ("c.flwsp", half(0x6502), "rv32imac", "rv32imafc"),
        ("csrr frm", word(0x0020_25f3), "rv32imac", "rv32imafc"),
        ("mul", word(0x02b5_0533), "rv32iac", "rv32imac"),
        ("amoadd.w", word(0x00b5_262f), "rv32imc", "rv32imac"),
        ("c.li", half(0x4505), "rv32ima", "rv32imac"),
    ] {
        let pc = map::PROGRAM;
        let mut bytes = [0; 4];
        bytes[..code.len()].copy_from_slice(&code);
        let illegal = Stop::Fault(Fault::Illegal { pc, word: u32::from_le_bytes(bytes) });
        assert_eq!(end(&code, without), illegal, "{name} on {without}");
        let stop = end(&code, with);
        // A load through the stack pointer, which is the end of the stack, is a different fault.
        let runs = matches!(stop, Stop::Return(_) | Stop::Fault(Fault::Load { .. }));
        assert!(runs, "{name} on {with}: {stop:?}");
    }
}

#[test]
fn writing_a_counter_is_illegal() {
    // unimp: csrrw x0, cycle, x0
    let illegal = |word| Stop::Fault(Fault::Illegal { pc: map::PROGRAM, word });
    assert_eq!(end(&0xc000_1073_u32.to_le_bytes(), "rv32imac"), illegal(0xc000_1073));
    assert!(matches!(end(&csrr(A0, 0xc00).to_le_bytes(), "rv32imac"), Stop::Return(_)));
}

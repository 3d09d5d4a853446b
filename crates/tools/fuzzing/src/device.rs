// SPDX-License-Identifier: Apache-2.0
//! Device programs and their images.

use abi::device::map;
use hpu::Program;
use hpu::isa::instruction_set;
use nic::{CardProgram, DeviceProgram};

/// Parses an ELF file with its symbols and line table.
pub fn elf(bytes: &[u8]) {
    let kinds = ["rv32imac", "rv32imafdc", "armv7a"].map(|kind| instruction_set(kind).expect("an instruction set"));
    let Some(program) = kinds.into_iter().find_map(|isa| Program::load(bytes, isa, &nic::load_map()).ok()) else {
        return;
    };
    let code = program.program_segment().len() as u32;
    // The check covers every address of a small program, or the first and last ones, and addresses without code.
    let inside = (0..code.min(4096)).chain(code.saturating_sub(2)..code + 2).map(|at| map::PROGRAM + at);
    for pc in inside.chain([0, map::PROGRAM - 1, map::DATA, map::RETURN, u32::MAX]) {
        let is_code = pc.checked_sub(map::PROGRAM).is_some_and(|at| at < code);
        let line = program.line(pc);
        assert!(is_code || line.is_none(), "{pc:#x} is no code, but of {line:?}");
        program.function(pc);
    }
}

/// Parses an image as embedded by spincc.
pub fn image(bytes: &[u8]) {
    for kind in ["rv32imac", "rv32imafdc", "armv7a"] {
        let Ok(device) = DeviceProgram::from_image(bytes, 0x40_0000, kind) else { continue };
        for (_, handler) in &device.handlers {
            assert_eq!(device.program.entry(&handler.name), Some(handler.entry));
        }
        let machine = crate::base::beside("base = \"sc17-int\"", &[]);
        if let Ok(program) = CardProgram::new(device, &machine) {
            assert!(program.handlers().count() <= bytes.len());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Device program that executes a script in its initial state, optionally followed by arbitrary code.

use std::rc::Rc;
use std::sync::Arc;

use abi::device::{AtomicCmd, CasCmd, DmaAtomicCmd, DmaCmd, FetchAddCmd, PutCmd, map, ret};
use abi::portals::Process;
use bytemuck::bytes_of;
use hpu::Program;
use hpu::isa::instruction_set;
use machine::Machine;
use nic::testing::code::{
    A0, A7, ECALL, RET, S0, S1, S2, T0, T1, ZERO, add, addi, beqz, bnez, executable, immediate as i, lui, lw, twin,
};
use nic::{CardProgram, DeviceProgram, Handler};

/// Number of bytes of the state, at the start of the HPU memory.
pub const STATE: usize = 1024;
/// Maximum number of commands of a handler.
const COMMANDS: usize = 6;
/// Offset of the first handler's script; those of the other roles follow. A script has [`COMMANDS`] entries: a byte
/// with the command's number (0 ends the script), one that tells whether the argument is a word of the state instead of
/// its address, and a half-word with its offset in the state. The return code follows.
const SCRIPT: usize = 8 * COMMANDS + 8;
/// Offset of the first template of a command.
const TEMPLATES: usize = 256;
/// Distance between two templates.
const TEMPLATE: usize = 64;
/// Addresses of the handlers' host twins: the scripts of the three roles, then the code of the input.
pub const TWINS: [u64; 4] = [twin(0), twin(1), twin(2), twin(3)];

/// Returns the handler that executes the script of a role.
fn player(role: usize) -> [u32; 17] {
    const BYTE: u32 = 4;
    const HALF: u32 = 5;
    let script = (role * SCRIPT) as i32;
    [
        lui(S2, map::HPU_MEMORY),
        addi(S0, S2, script),
        addi(S1, ZERO, COMMANDS as i32),
        i(0x03, BYTE, A7, S0, 0), // 3: the next command
        i(0x03, BYTE, T0, S0, 1),
        i(0x03, HALF, T1, S0, 2),
        beqz(A7, 9),                          // to 15
        i(0x13, 7, T1, T1, STATE as i32 - 4), // and
        add(A0, S2, T1),
        beqz(T0, 2), // to 11
        lw(A0, A0, 0),
        ECALL,
        addi(S0, S0, 8),
        addi(S1, S1, -1),
        bnez(S1, -11), // to 3
        lw(A0, S2, script + 8 * COMMANDS as i32),
        RET,
    ]
}

/// Returns the handlers that execute scripts, followed by `code`.
pub fn program(machine: &Machine, code: &[u8]) -> Option<Rc<CardProgram>> {
    let players: Vec<u8> = (0..3).flat_map(player).flat_map(u32::to_le_bytes).collect();
    let isa = instruction_set(&machine.hpu.kind).ok()?;
    let program = Program::load(&executable(&[&players, code].concat()), isa, &nic::load_map()).ok()?;
    let handler = |role: usize| {
        let entry = map::PROGRAM + (role * size_of_val(&player(0))) as u32;
        (TWINS[role], Handler { name: format!("handler{role}").into(), entry })
    };
    let handlers = (0..TWINS.len()).map(handler).collect();
    CardProgram::new(DeviceProgram { program: Arc::new(program), handlers }, machine).ok()
}

/// Returns an initial state: templates of commands, and empty scripts that return success, with `changes` applied.
pub fn state(changes: &[u8]) -> [u8; STATE] {
    let mut state = [0; STATE];
    for (role, code) in [ret::PROCESS_DATA, ret::SUCCESS, ret::SUCCESS].into_iter().enumerate() {
        let at = role * SCRIPT + 8 * COMMANDS;
        state[at..at + 4].copy_from_slice(&code.to_le_bytes());
    }
    let room = map::HPU_MEMORY + 768;
    let target_id = Process { nid: 1, pid: 0 };
    let put = PutCmd { local: room.into(), len: 32, match_bits: 1, target_id, ..PutCmd::default() };
    let atomic = AtomicCmd { put: PutCmd { len: 8, ..put }, operation: 2, datatype: 8 };
    let dma = DmaCmd { local: room, len: 64, ..DmaCmd::default() };
    let templates = [
        bytes_of(&put),
        bytes_of(&PutCmd { local: 8, ..put }),
        bytes_of(&dma),
        bytes_of(&DmaCmd { options: 1, ..dma }),
        bytes_of(&atomic),
        bytes_of(&DmaAtomicCmd { value: 3, result: room, datatype: 8, ..DmaAtomicCmd::default() }),
        bytes_of(&CasCmd { address: room, ..CasCmd::default() }),
        bytes_of(&FetchAddCmd { increment: 1, address: room, ..FetchAddCmd::default() }),
    ]
    .map(<[u8]>::to_vec);
    for (number, template) in templates.iter().enumerate() {
        let at = TEMPLATES + number * TEMPLATE;
        state[at..at + template.len()].copy_from_slice(template);
    }
    // Each change is an offset and a byte.
    for change in changes.chunks_exact(3) {
        state[usize::from(u16::from_le_bytes([change[0], change[1]])) % STATE] ^= change[2];
    }
    state
}

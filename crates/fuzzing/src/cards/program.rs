//! A device program that does what its initial state says, and may be followed by any code.

use std::rc::Rc;
use std::sync::Arc;

use abi::device::{AtomicCmd, CasCmd, DmaAtomicCmd, DmaCmd, FetchAddCmd, PutCmd, map, ret};
use abi::portals::{Plain, Process};
use hpu::Program;
use machine::Machine;
use nic::{CardProgram, DeviceProgram, Handler};

/// Bytes of the state, which lies at the start of the HPU memory.
pub const STATE: usize = 1024;
/// Commands of a handler.
const COMMANDS: usize = 6;
/// Where a handler's script starts; those of the roles follow each other. A script has [`COMMANDS`] times a byte with the
/// command's number (0 ends the script), one that says whether the argument is a word of the state instead of its address,
/// and a half-word with its place in the state; then the return code.
const SCRIPT: usize = 8 * COMMANDS + 8;
/// Where the templates of commands start.
const TEMPLATES: usize = 256;
/// Distance of two templates.
const TEMPLATE: usize = 64;
/// Where the host twins of the handlers are: the scripts of the three roles, then the code of the input.
pub const TWINS: [u64; 4] = [0x1000, 0x1010, 0x1020, 0x1030];

const ZERO: u32 = 0;
const T0: u32 = 5;
const T1: u32 = 6;
const S0: u32 = 8;
const S1: u32 = 9;
const A0: u32 = 10;
const A7: u32 = 17;
const S2: u32 = 18;
const ECALL: u32 = 0x0000_0073;
const RET: u32 = 0x0000_8067;

/// An instruction with an immediate: opcode, function, destination, source.
fn i(opcode: u32, f3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode
}

fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x13, 0, rd, rs1, imm)
}

fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | rd << 7 | 0x33
}

/// Branches by so many instructions when `rs1` is zero, or (`unless`) when it is not.
fn branch(unless: bool, rs1: u32, instructions: i32) -> u32 {
    let o = (instructions * 4) as u32;
    let (high, low) = ((o >> 12 & 1) << 31 | (o >> 5 & 63) << 25, (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7);
    high | rs1 << 15 | u32::from(unless) << 12 | low | 0x63
}

/// The handler that plays the script of a role.
fn player(role: usize) -> [u32; 17] {
    const BYTE: u32 = 4;
    const HALF: u32 = 5;
    const WORD: u32 = 2;
    let script = (role * SCRIPT) as i32;
    [
        map::HPU_MEMORY | S2 << 7 | 0x37, // lui
        addi(S0, S2, script),
        addi(S1, ZERO, COMMANDS as i32),
        i(0x03, BYTE, A7, S0, 0), // 3: the next command
        i(0x03, BYTE, T0, S0, 1),
        i(0x03, HALF, T1, S0, 2),
        branch(false, A7, 9),                 // to 15
        i(0x13, 7, T1, T1, STATE as i32 - 4), // and
        add(A0, S2, T1),
        branch(false, T0, 2), // to 11
        i(0x03, WORD, A0, A0, 0),
        ECALL,
        addi(S0, S0, 8),
        addi(S1, S1, -1),
        branch(true, S1, -11), // to 3
        i(0x03, WORD, A0, S2, script + 8 * COMMANDS as i32),
        RET,
    ]
}

/// The players, and `code` behind them.
pub fn program(machine: &Machine, code: &[u8]) -> Option<Rc<CardProgram>> {
    let players: Vec<u8> = (0..3).flat_map(player).flat_map(u32::to_le_bytes).collect();
    let program = Program::load(&crate::engine::executable(&[&players, code].concat())).ok()?;
    let twin = |role: usize| {
        let entry = map::PROGRAM + (role * size_of_val(&player(0))) as u32;
        (TWINS[role], Handler { name: format!("handler{role}").into(), entry })
    };
    let handlers = (0..TWINS.len()).map(twin).collect();
    CardProgram::new(DeviceProgram { program: Arc::new(program), handlers }, &machine.hpu).ok()
}

/// An initial state: templates of commands, and empty scripts that return success; with `changes` on top.
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
        put.as_bytes(),
        PutCmd { local: 8, ..put }.as_bytes(),
        dma.as_bytes(),
        DmaCmd { options: 1, ..dma }.as_bytes(),
        atomic.as_bytes(),
        DmaAtomicCmd { value: 3, result: room, datatype: 8, ..DmaAtomicCmd::default() }.as_bytes(),
        CasCmd { address: room, ..CasCmd::default() }.as_bytes(),
        FetchAddCmd { increment: 1, address: room, ..FetchAddCmd::default() }.as_bytes(),
    ]
    .map(<[u8]>::to_vec);
    for (number, template) in templates.iter().enumerate() {
        let at = TEMPLATES + number * TEMPLATE;
        state[at..at + template.len()].copy_from_slice(template);
    }
    // Each change: a place and a byte.
    for change in changes.chunks_exact(3) {
        state[usize::from(u16::from_le_bytes([change[0], change[1]])) % STATE] ^= change[2];
    }
    state
}

// SPDX-License-Identifier: Apache-2.0
//! Training run for the C++ compiler's profile: all HPUs execute instructions, and packets pass.

use std::path::Path;

use abi::pspin::{control, map};

use crate::RtlError;
use crate::lockstep::instructions::RETIRED;
use crate::nic::{BEAT, Ports};
use crate::simulation::{Port, Simulation};

/// Version of the run; the simulator's code depends on its profile, so change it with the run.
pub const VERSION: u32 = 1;
/// Length of the run in cycles.
const CYCLES: u32 = 4_000;
/// Cycles from one packet to the next.
const PACKET_CYCLES: u32 = 8;
/// Number of messages, to which packets belong in turn.
const MESSAGES: u32 = 16;

/// Endless program of the HPUs. Each HPU has its own word in its stack, in its own bank.
const CODE: [u32; 16] = [
    0x0025_9293, // slli t0, a1, 2
    0x4051_02B3, // sub  t0, sp, t0
    0x1C00_0437, // lui  s0, 0x1C000
    0x01F0_0313, // li   t1, 31
    0xFC02_A383, // 1: lw t2, -64(t0)
    0x0263_83B3, // mul  t2, t2, t1
    0x0073_8393, // addi t2, t2, 7
    0xFC72_A023, // sw   t2, -64(t0)
    0x0043_FE13, // andi t3, t2, 4
    0x000E_0463, // beqz t3, 2f
    0x001E_8E93, // addi t4, t4, 1
    0x001E_8E93, // 2: addi t4, t4, 1
    0x01FE_FE13, // andi t3, t4, 31
    0xFC0E_1EE3, // bnez t3, 1b
    0x0004_2383, // lw   t2, 0(s0): a word of L2
    0xFD5F_F06F, // j    1b
];

/// Runs the design of an instrumented library.
///
/// # Errors
/// When the library is not such a design, or its HPUs execute nothing.
pub fn run(library: &Path) -> Result<(), RtlError> {
    let failed = |reason: &str| RtlError::Library(library.to_owned(), format!("it cannot be trained: {reason}"));
    let mut simulation = Simulation::open(library, 1)?;
    let ports = Ports::new(&simulation)?;
    let program = simulation.memories().iter().position(|memory| memory.scope.contains(".u_program_memory."));
    let rows = simulation.rows(program.ok_or_else(|| failed("there is no program memory"))?);
    rows.chunks_exact_mut(4).zip(CODE).for_each(|(word, code)| word.copy_from_slice(&code.to_le_bytes()));
    let mut cycle = |inputs: &[(Port, u64)]| {
        inputs.iter().for_each(|(port, value)| simulation.set(*port, *value));
        simulation.settle();
        simulation.tick();
    };
    for is_running in [0, 1] {
        cycle(&[(ports.rst_ni, is_running), (ports.feedback_ready_i, 1)]);
    }
    for (address, value) in [
        (control::ENTRY, map::PROGRAM),
        (control::CODE_ADDRESS, map::PROGRAM),
        (control::CODE_BYTES, 4 * CODE.len() as u32),
        (control::BOOT_ADDRESS, map::HANDLER),
        (control::BOOT_BYTES, 4),
        // No handlers: packets are fed back at once.
        (control::CONTEXT_HEADER, 0),
        (control::CONTEXT_PAYLOAD, 0),
        (control::CONTEXT_COMPLETION, 0),
        (control::CONTEXT_WRITE, 0),
        (control::ENABLE, 1),
    ] {
        let data = [(ports.ctrl_address_i, address.into()), (ports.ctrl_wdata_i, value.into())];
        cycle(&[data, [(ports.ctrl_valid_i, 1), (ports.ctrl_we_i, 1)]].concat());
    }
    for now in 0..CYCLES {
        let is_offered = u64::from(now % PACKET_CYCLES == 0);
        let number = now / PACKET_CYCLES;
        cycle(&[
            (ports.ctrl_valid_i, 0),
            (ports.write_valid_i, is_offered),
            (ports.write_address_i, (map::PACKET + number % MESSAGES * BEAT as u32).into()),
            (ports.write_strobe_i, u64::MAX),
            (ports.her_valid_i, is_offered),
            (ports.her_message_i, (number % MESSAGES).into()),
            (ports.her_eom_i, u64::from(number / MESSAGES % 4 == 3)),
            (ports.her_address_i, (map::PACKET + number % MESSAGES * BEAT as u32).into()),
            (ports.her_size_i, BEAT as u64),
            (ports.her_transfer_i, BEAT as u64),
            (ports.her_user_i, number.into()),
        ]);
    }
    if let Some(reason) = simulation.failure() {
        return Err(failed(reason));
    }
    let mut events = Vec::new();
    simulation.take_events(&mut events);
    let retired = events.iter().filter(|event| event.kind == RETIRED).count();
    if retired < CYCLES as usize { Err(failed(&format!("{retired} instructions in {CYCLES} cycles"))) } else { Ok(()) }
}

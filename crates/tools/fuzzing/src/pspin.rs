// SPDX-License-Identifier: Apache-2.0
//! A small PsPIN unit with its NIC: any handlers, any packets.

use std::rc::Rc;
use std::sync::Arc;

use accel::testing::code::{A0, A1, NOP, S0, S1, T0, T1, ZERO, add, addi, executable, immediate, lui, lw, sw};
use hpu::Program;
use hpu::isa::instruction_set;
use machine::Accelerator;
use pspin_nic::driver::{Driver, Request};
use pspin_nic::inbound::Arrival;
use pspin_nic::system::System;
use pspin_unit::Cycle;
use pspin_unit::core::{Hpus, Runtime};
use pspin_unit::her::{DriverEvent, Range};
use sim::{Clock, Time};

use crate::base::beside;

const PROGRAM: u32 = 0x1D00_0000;
const STACK: u32 = 2;
/// Maximum number of packets of an input.
const MOST: usize = 200;
/// Watchdog threshold, and limit of a run, in cycles.
const WATCHDOG: u64 = 500;
const LIMIT: u64 = 4_000_000;

/// The runtime's loop (`sdk/pspin/rt/runtime/src/start.S`).
#[rustfmt::skip]
fn runtime() -> Vec<u32> {
    vec![
        lui(S0, 0x1B20_5000), addi(S1, STACK, -16), addi(T0, S0, 8), sw(T0, S1, 0),
        immediate(0x13, 1, T1, A0, 3), add(T1, T1, A1), sw(T1, S1, 4), sw(A0, S1, 8), sw(A1, S1, 12), addi(STACK, STACK, -16),
        lw(T0, S0, 0), NOP, addi(A0, S1, 0), immediate(0x67, 0, 1, T0, 0), NOP, sw(ZERO, S0, 0x50), 0xfe9f_f06f,
    ]
}

/// Runs an input: a byte for the unit, one for the number of packets, two bytes for each packet, then the code of three handlers.
pub fn unit(bytes: &[u8]) {
    let Some(([kind, count], rest)) = bytes.split_first_chunk::<2>() else { return };
    let count = usize::from(*count).min(MOST);
    let Some((packets, code)) = rest.split_at_checked(2 * count) else { return };
    let set = [
        format!("accelerator.clusters={}", 1 + kind % 3),
        format!("accelerator.hpus_per_cluster={}", 1 + kind / 4 % 3),
        format!("accelerator.mpq.queues={}", [4, 8, 256][usize::from(kind / 16 % 3)]),
        format!("accelerator.overload={}", ["block", "drop", "ecn"][usize::from(kind / 64 % 3)]),
        "accelerator.l2_packet.bytes=16384".to_owned(),
        format!("accelerator.default_watchdog_cycles={WATCHDOG}"),
        "accelerator.mpq.idle_cycles=2000".to_owned(),
    ];
    let Accelerator::Pspin(unit) = beside("base = \"pspin-400g\"", &set).accelerator else { unreachable!("its kind") };
    let unit: Rc<machine::Pspin> = Rc::from(unit);
    let mut image: Vec<u8> = runtime().iter().flat_map(|word| word.to_le_bytes()).collect();
    image.resize(image.len().next_multiple_of(32), 0);
    let handlers: Vec<Range> = (0..3)
        .map(|role| {
            let part = code.len() / 3 / 4 * 4;
            let own = &code[part * role..part * (role + 1)];
            let address = if own.is_empty() { 0 } else { PROGRAM + image.len() as u32 };
            image.extend_from_slice(own);
            Range { address, size: own.len() as u32 }
        })
        .collect();
    if image.len() > unit.program.bytes as usize {
        return;
    }
    let isa = instruction_set("rv32imac-corev").expect("an instruction set");
    let Ok(program) = Program::load(&executable(&image), isa, &accel::load_map()) else { return };
    let cores = Hpus::new(unit.clone(), Arc::new(program), Runtime { boot: PROGRAM, again: PROGRAM });
    let mut system = System::new(unit.clone(), Clock::from_khz(1_000_000), cores, ());
    system.unit().memory().write(PROGRAM, image.len() as u32).expect("it fits").copy_from_slice(&image);
    let request = Request {
        handlers: [handlers[0], handlers[1], handlers[2]],
        code: vec![Range { address: PROGRAM, size: image.len() as u32 }],
        handler_memory: 1_024,
        scratchpad: 256,
        host: 4_096,
        ..Request::default()
    };
    let context = Driver::new(&unit, 0).context(&request).expect("there is room");
    system.host().register(context.tenant, context.descriptor, 64 + context.host.size);
    let context = Rc::new(context);
    assert!(system.boot(Cycle(LIMIT)), "the runtime boots");
    let begin = system.unit().now().0 * 1_000;
    for (number, packet) in packets.chunks_exact(2).enumerate() {
        let size = usize::from(packet[1]) * 5;
        system.push(Arrival {
            at: Time::from_ps(begin + 40_000 * number as u64 * u64::from(packet[0] & 1)),
            bytes: vec![number as u8; size],
            message: u32::from(packet[0] / 4 % 16),
            is_last: packet[0] & 2 != 0,
            transfer: size as u32,
            context: context.clone(),
            user: number as u64,
        });
    }
    let mut done = 0;
    while system.unit().now().0 < LIMIT && system.advance(Cycle(LIMIT), |_, _| done += 1).expect("nothing is stuck") {
        let is_end = |(_, event): &(Cycle, DriverEvent)| matches!(event, DriverEvent::Terminated { .. });
        if system.take_events().iter().any(is_end) {
            return;
        }
    }
    let counts = *system.inbound().counts();
    assert_eq!((counts.arrived, counts.fed_back), (count as u64, done), "packets that have arrived and that are done");
    assert_eq!(counts.fed_back + counts.dropped(), counts.arrived);
    assert_eq!((system.inbound().inside(), system.unit().inside()), (0, 0));
}

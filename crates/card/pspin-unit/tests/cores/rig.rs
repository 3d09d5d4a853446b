// SPDX-License-Identifier: Apache-2.0
//! A unit with real cores; the test submits packets and inspects the outputs.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use accel::load_map;
use accel::testing::code::*;
use hpu::Program;
use machine::{Accelerator, Machine};
use pspin_unit::command::Send;
use pspin_unit::core::{Hpus, Runtime};
use pspin_unit::her::{Convention, DriverEvent, ExecutionContext, Feedback, Her, HostRange, HpuId, Range, TaskOutcome};
use pspin_unit::observe::{Noted, Observer};
use pspin_unit::{By, Cycle, HostFault, Outside, Pspin};
use sim::Clock;

/// First address of the first cluster's L1, and the distance between L1s.
pub const L1: u32 = 0x1000_0000;
pub const SPAN: u32 = 0x40_0000;
pub const HANDLER: u32 = 0x1C00_0000;
pub const PACKET: u32 = 0x1C40_0000;
pub const PROGRAM: u32 = 0x1D00_0000;
/// Offset of the tests' scratchpads in L1, after the packet buffers.
pub const SCRATCHPAD: u32 = 0x1_0000;

/// Observed events, in the order of cycles.
#[derive(Default)]
pub struct Log {
    /// Cycles of landed packets, of function pointers, and of doorbells.
    pub landed: Vec<u64>,
    pub started: Vec<u64>,
    pub ended: Vec<(u64, u32)>,
    pub conflicts: u64,
    pub misses: Vec<u32>,
}

impl Observer for Log {
    fn note(&mut self, at: Cycle, what: Noted<'_>) {
        match what {
            Noted::DmaDone { .. } => self.landed.push(at.0),
            Noted::Start { .. } => self.started.push(at.0),
            Noted::End { hpu, .. } => self.ended.push((at.0, u32::from(hpu.cluster) * 8 + u32::from(hpu.hpu))),
            Noted::Conflict { .. } => self.conflicts += 1,
            Noted::Miss { address, .. } => self.misses.push(address),
            _ => {}
        }
    }
}

/// Surroundings of the unit.
#[derive(Default)]
pub struct Nic {
    pub feedback: Vec<(u64, Feedback)>,
    pub events: Vec<DriverEvent>,
    /// Packets sent: cycle, destination and bytes.
    pub sent: Vec<(u64, Send, Vec<u8>)>,
    /// Writes to host memory: cycle, address and bytes.
    pub written: Vec<(u64, u64, Vec<u8>)>,
}

impl Outside for Nic {
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool {
        self.feedback.push((at.0, *feedback));
        true
    }

    fn raise(&mut self, _at: Cycle, event: DriverEvent) {
        self.events.push(event);
    }

    fn send(&mut self, at: Cycle, _hpu: HpuId, send: Send, packet: &[u8]) {
        self.sent.push((at.0, send, packet.to_vec()));
    }

    fn host_write(&mut self, at: Cycle, _by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault> {
        self.written.push((at.0, address, data.to_vec()));
        Ok(())
    }

    /// Each byte of the host equals the low byte of its address.
    fn host_read(&mut self, _at: Cycle, _by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        (address..).zip(data).for_each(|(address, byte)| *byte = address as u8);
        Ok(())
    }
}

pub struct Rig<O: Observer = Log> {
    pub unit: Pspin<Hpus, O>,
    pub nic: Nic,
    pub context: ExecutionContext,
    packets: u32,
    messages: u32,
}

/// Returns the runtime: a stack frame with the arguments of handlers, then the loop of PsPIN §III-B2. A NOP precedes
/// and follows the call, as in the published runtime.
#[rustfmt::skip]
pub fn runtime() -> Vec<u32> {
    vec![
        lui(S0, 0x1B20_5000), addi(S1, 2, -16), addi(T0, S0, 8), sw(T0, S1, 0),
        // slli t1, a0, 3
        immediate(0x13, 1, T1, A0, 3), add(T1, T1, A1), sw(T1, S1, 4), sw(A0, S1, 8), sw(A1, S1, 12), addi(2, 2, -16),
        lw(T0, S0, 0), NOP, addi(A0, S1, 0),
        // jalr ra, t0
        immediate(0x67, 0, 1, T0, 0), NOP, sw(ZERO, S0, 0x50),
        // j -24
        0xfe9f_f06f,
    ]
}

/// Returns a machine of this repository.
pub fn machine(name: &str, set: &[&str]) -> machine::Pspin {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    match Machine::load(name, &[machines], &set).unwrap().accelerator {
        Accelerator::Pspin(unit) => *unit,
        other => panic!("{}", other.kind()),
    }
}

impl Rig {
    /// Creates a unit with booted HPUs, and a payload handler of these instructions.
    pub fn new(payload: &[u32]) -> Rig {
        Rig::on(machine("pspin-400g", &[]), payload)
    }

    pub fn on(config: machine::Pspin, payload: &[u32]) -> Rig {
        Rig::watched(config, payload, Log::default())
    }

    /// Creates a unit like [`Rig::new`], whose program also has data.
    pub fn with_data(payload: &[u32], data: &[(u32, Vec<u8>)]) -> Rig {
        Rig::loaded(machine("pspin-400g", &[]), payload, data, Log::default())
    }
}

impl<O: Observer> Rig<O> {
    /// Creates a unit like [`Rig::on`], with this observer.
    pub fn watched(config: machine::Pspin, payload: &[u32], observer: O) -> Rig<O> {
        Rig::loaded(config, payload, &[], observer)
    }

    fn loaded(config: machine::Pspin, payload: &[u32], data: &[(u32, Vec<u8>)], observer: O) -> Rig<O> {
        let mut words = runtime();
        // Handlers begin in a new line.
        words.resize(words.len().next_multiple_of(8), NOP);
        let entry = PROGRAM + 4 * words.len() as u32;
        words.extend(payload);
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let isa = hpu::isa::instruction_set("rv32imac").unwrap();
        let program = Arc::new(Program::load(&executable_with(&code, data), isa, &load_map()).unwrap());
        let clusters = config.units.clusters;
        let context = ExecutionContext {
            handler_memory: Range { address: HANDLER + 0x1000, size: 0x1000 },
            host: HostRange { address: 0x1122_3344_5566_7788, size: 0x100 },
            handlers: [Range::default(), Range { address: entry, size: 4 * payload.len() as u32 }, Range::default()],
            scratchpads: (0..clusters).map(|i| Range { address: L1 + i * SPAN + SCRATCHPAD, size: 0x1000 }).collect(),
            code: Vec::new(),
            watchdog_cycles: 10_000,
            idle_cycles: 1_000_000,
            descriptor: 0,
            tenant: 0,
            share: pspin_unit::her::Share::default(),
            convention: Convention::Pspin,
            pin: None,
        };
        let config = Rc::new(config);
        let hpus = Hpus::new(config.clone(), program, Runtime { boot: PROGRAM, again: PROGRAM });
        let mut unit = Pspin::new(config, Clock::from_khz(1_000_000), hpus, observer);
        for (address, bytes) in data.iter().chain([&(PROGRAM, code)]) {
            unit.memory().write(*address, bytes.len() as u32).unwrap().copy_from_slice(bytes);
        }
        unit.boot();
        let mut rig = Rig { unit, nic: Nic::default(), context, packets: PACKET, messages: 0 };
        rig.wait(2_000);
        rig
    }

    /// Advances by `cycles` cycles.
    pub fn wait(&mut self, cycles: u64) {
        let until = self.unit.now() + cycles;
        while self.unit.advance(until, &mut self.nic) < until {}
    }

    /// Submits a packet as the whole message `message`. Returns the cycle.
    pub fn submit_as(&mut self, message: u32, bytes: &[u8]) -> u64 {
        let size = bytes.len() as u32;
        let packet = Range { address: self.packets, size };
        self.packets += size.next_multiple_of(64);
        if size > 0 {
            self.unit.memory().write(packet.address, size).unwrap().copy_from_slice(bytes);
        }
        let context = Rc::new(self.context.clone());
        let mut her = Her { message, flow: 77, eom: true, packet, transfer: size, context, user: 5 };
        loop {
            match self.unit.submit(her) {
                Ok(()) => return self.unit.now().0,
                Err((_, refused)) => {
                    her = refused;
                    self.wait(1);
                }
            }
        }
    }

    /// Submits a packet as a complete message; its home cluster follows that of the previous one.
    pub fn submit(&mut self, bytes: &[u8]) {
        self.messages += 1;
        self.submit_as(self.messages, bytes);
    }

    /// Submits a packet and waits until it is done. Returns the cycles from the request to the feedback, and the
    /// outcome.
    pub fn run(&mut self, bytes: &[u8]) -> (u64, TaskOutcome) {
        self.messages += 4;
        let submitted = self.submit_as(self.messages, bytes);
        let known = self.nic.feedback.len();
        for _ in 0..200 {
            self.wait(1_000);
            if let Some((at, feedback)) = self.nic.feedback.get(known) {
                return (at - submitted, feedback.outcome);
            }
        }
        panic!("the packet is lost");
    }

    pub fn word(&mut self, address: u32) -> u32 {
        u32::from_le_bytes(self.unit.memory().read(address, 4).unwrap().try_into().unwrap())
    }
}

/// Returns instructions that load a word of the task into `rd`; the first word of the arguments points to the task.
pub fn task_word(rd: u32, word: i32) -> [u32; 2] {
    [lw(rd, A0, 0), lw(rd, rd, 4 * word)]
}

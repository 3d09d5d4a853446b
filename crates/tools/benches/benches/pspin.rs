// SPDX-License-Identifier: Apache-2.0
//! Simulation speed of the PsPIN unit: cycles per second of CPU time, with cores that take a fixed number of cycles per
//! handler, and with HPUs that execute instructions.

use std::hint::black_box;
use std::rc::Rc;

use benches::cpu_time;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use pspin_unit::command::Send;
use pspin_unit::cores::Cores;
use pspin_unit::her::{DriverEvent, ExecutionContext, Feedback, Her, HpuId, Range, Role};
use pspin_unit::{By, Cycle, HostFault, Outside, Pspin};

#[allow(dead_code)]
#[path = "../../../card/pspin-unit/tests/unit/fixed.rs"]
mod fixed;
#[allow(dead_code)]
#[path = "../../../card/pspin-unit/tests/unit/rig.rs"]
mod rig;

#[allow(dead_code)]
#[path = "../../../card/pspin-unit/tests/cores/rig.rs"]
mod cores;

use accel::testing::code::{RET, ZERO, add, addi, bnez, lui, lw, sw};

/// Packets of a measurement with short handlers, and with long ones.
const MANY: u32 = 100_000;
const FEW: u32 = 128;

/// NIC that counts feedback.
#[derive(Default)]
struct Nic {
    fed_back: u64,
}

impl Outside for Nic {
    fn feedback(&mut self, _at: Cycle, _feedback: &Feedback) -> bool {
        self.fed_back += 1;
        true
    }

    fn raise(&mut self, _at: Cycle, event: DriverEvent) {
        panic!("{event:?}");
    }

    fn send(&mut self, _at: Cycle, _hpu: HpuId, _send: Send, _packet: &[u8]) {}

    fn host_write(&mut self, _at: Cycle, _by: By<'_>, _address: u64, _data: &[u8]) -> Result<(), HostFault> {
        Ok(())
    }

    fn host_read(&mut self, _at: Cycle, _by: By<'_>, _address: u64, _data: &mut [u8]) -> Result<(), HostFault> {
        Ok(())
    }
}

/// Unit with a NIC that submits a packet in every cycle in which the unit is ready.
struct Stream<C: Cores> {
    unit: Pspin<C>,
    nic: Nic,
    context: Rc<ExecutionContext>,
    submitted: u32,
}

impl<C: Cores> Stream<C> {
    fn new(unit: Pspin<C>, context: ExecutionContext) -> Stream<C> {
        Stream { unit, nic: Nic::default(), context: Rc::new(context), submitted: 0 }
    }

    /// Runs packets from the first request to the last feedback. Messages have 128 packets, eight messages at a time. Returns
    /// the number of cycles.
    fn run(&mut self, packets: u32, size: u32) -> u64 {
        let (start, end) = (self.unit.now(), self.submitted + packets);
        while self.submitted < end {
            let index = self.submitted;
            // The slots of the NIC's ring in L2 are reused long after their packets finish.
            let packet = Range { address: cores::PACKET + index % 1024 * size.next_multiple_of(64), size };
            let (message, eom) = (index / 1024 * 8 + index % 8, index % 1024 >= 1016);
            let her = Her { message, flow: 0, eom, packet, transfer: size, context: self.context.clone(), user: 0 };
            self.submitted += u32::from(self.unit.submit(her).is_ok());
            self.unit.advance(self.unit.now() + 1_u64, &mut self.nic);
        }
        while self.nic.fed_back < u64::from(end) {
            self.unit.advance(Cycle::NEVER, &mut self.nic);
        }
        self.unit.now() - start
    }
}

/// Measures the simulation of consecutive streams of packets.
fn measure<C: Cores>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut stream: Stream<C>,
    packets: u32,
    size: u32,
) {
    // The first packets fill caches and memos. After them each stream takes about the same number of cycles.
    stream.run(packets, size);
    group.throughput(Throughput::Elements(stream.run(packets, size)));
    group.bench_function(name, |bench| {
        bench.iter_custom(|runs| cpu_time(runs, || _ = black_box(stream.run(packets, size))));
    });
}

/// Creates a unit whose cores charge each handler the cycles of `instructions` instructions.
fn fixed(instructions: u64) -> Stream<impl Cores> {
    let rig = rig::Rig::new(rig::machine("pspin-400g", &[]), (), move |_, _| instructions);
    Stream::new(rig.unit, rig::context(&[Role::Payload]))
}

/// Creates a unit with HPUs that execute a handler.
fn executing(handler: &[u32]) -> Stream<impl Cores> {
    let rig = cores::Rig::watched(cores::machine("pspin-400g", &[]), handler, ());
    Stream::new(rig.unit, ExecutionContext { watchdog_cycles: u64::MAX, ..rig.context })
}

fn unit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pspin");
    measure(&mut group, "no instructions, 64 B", fixed(0), MANY, 64);
    measure(&mut group, "empty handler, 64 B", executing(&[RET]), MANY, 64);
    measure(&mut group, "empty handler, 1024 B", executing(&[RET]), MANY / 10, 1024);
    measure(&mut group, "32 HPUs busy", executing(&busy(300)), FEW, 64);
    group.finish();
}

/// Returns a handler that accesses its cluster's L1 in 7 of 20 instructions: words of its stack, and a word shared by
/// all handlers of the cluster.
fn busy(rounds: i32) -> Vec<u32> {
    let (stack, shared, count) = (2, 11, 12);
    let start = [lui(shared, 0x1B00_0000 + cores::SCRATCHPAD), addi(count, ZERO, rounds)];
    let body = [
        lw(13, stack, -4),
        addi(14, 14, 1),
        add(13, 13, 14),
        sw(13, stack, -8),
        addi(15, 15, 3),
        lw(16, shared, 0),
        addi(17, 17, 1),
        add(16, 16, 17),
        sw(16, shared, 0),
        addi(14, 14, 1),
        lw(13, stack, -12),
        addi(15, 15, 3),
        add(13, 13, 15),
        addi(17, 17, 1),
        sw(13, stack, -16),
        addi(16, 16, 1),
        lw(16, stack, -20),
        addi(14, 14, 1),
        addi(count, count, -1),
        bnez(count, -19),
    ];
    [&start[..], &body, &[lui(13, 0), RET]].concat()
}

criterion_group!(benches, unit);
criterion_main!(benches);

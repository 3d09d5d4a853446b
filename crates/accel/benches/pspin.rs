//! How fast the PsPIN unit is simulated: cycles a second of CPU time, with cores that take a fixed number of cycles for a handler,
//! and with HPUs that execute instructions.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use accel::pspin::her::Role;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[allow(dead_code)]
#[path = "../tests/pspin/fixed.rs"]
mod fixed;
#[allow(dead_code)]
#[path = "../tests/pspin/rig.rs"]
mod rig;

#[allow(dead_code)]
#[path = "../tests/cores/rig.rs"]
mod cores;

use accel::testing::code::{RET, ZERO, add, addi, bnez, lui, lw, sw};
use rig::{Packet, Rig, context, machine};

const PACKETS: u32 = 100_000;

/// Packets of messages of 128, eight at a time.
fn flood(instructions: u64, size: u32) -> u64 {
    let context = Rc::new(context(&[Role::Payload]));
    let packets = (0..PACKETS).map(|index| Packet {
        message: index / 1024 * 8 + index % 8,
        size,
        eom: index % 1024 >= 1016,
        context: context.clone(),
    });
    let mut rig = Rig::new(machine("pspin-400g", &[]), (), |_, _| instructions);
    let (start, end) = rig.flood(packets);
    end - start
}

/// The time that this thread has been running: other programs on the machine do not count.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Measures the simulation of so many cycles.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: BenchmarkId, simulate: impl Fn() -> u64) {
    group.throughput(Throughput::Elements(simulate()));
    group.bench_function(name, |bench| {
        bench.iter_custom(|runs| {
            let start = cpu();
            (0..runs).for_each(|_| _ = black_box(simulate()));
            cpu() - start
        });
    });
}

fn unit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pspin");
    for (instructions, size) in [(0, 64), (0, 1024), (256, 64)] {
        let name = BenchmarkId::new(format!("{size} B"), instructions);
        measure(&mut group, name, || flood(instructions, size));
    }
    group.sample_size(10);
    measure(&mut group, BenchmarkId::from_parameter("32 HPUs busy"), || all_busy(128, 300));
    measure(&mut group, BenchmarkId::from_parameter("64 B, HPUs with an empty handler"), || empty(20_000));
    group.finish();
}

/// A handler that accesses its cluster's L1 in 7 of 20 instructions: the words of its stack, and one that all handlers of the
/// cluster use.
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

/// Cycles in which all HPUs execute such handlers.
fn all_busy(packets: u32, rounds: i32) -> u64 {
    let mut rig = cores::Rig::watched(cores::machine("pspin-400g", &[]), &busy(rounds), ());
    rig.context.watchdog_cycles = u64::MAX;
    let start = rig.unit.now().0;
    (0..packets).for_each(|_| rig.submit(&[0; 64]));
    while rig.nic.feedback.len() < packets as usize {
        rig.wait(1_000);
    }
    let end = rig.nic.feedback.iter().map(|(at, _)| *at).max().unwrap_or(start);
    end - start
}

/// Cycles of packets at line rate with an empty handler.
fn empty(packets: u32) -> u64 {
    let mut rig = cores::Rig::watched(cores::machine("pspin-400g", &[]), &[RET], ());
    let start = rig.unit.now().0;
    (0..packets).for_each(|_| rig.submit(&[0; 64]));
    rig.wait(100);
    rig.unit.now().0 - start
}

criterion_group!(benches, unit);
criterion_main!(benches);

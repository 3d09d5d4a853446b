//! How fast the PsPIN unit is simulated: cycles a second of CPU time, with cores that take a fixed number of cycles for a handler.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

use accel::pspin::her::Role;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[allow(dead_code)]
#[path = "../tests/pspin/fixed.rs"]
mod fixed;
#[allow(dead_code)]
#[path = "../tests/pspin/rig.rs"]
mod rig;

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

fn unit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pspin");
    for (instructions, size) in [(0, 64), (0, 1024), (256, 64)] {
        group.throughput(Throughput::Elements(flood(instructions, size)));
        let name = BenchmarkId::new(format!("{size} B"), instructions);
        group.bench_function(name, |bench| {
            bench.iter_custom(|runs| {
                let start = cpu();
                (0..runs).for_each(|_| _ = black_box(flood(instructions, size)));
                cpu() - start
            });
        });
    }
    group.finish();
}

criterion_group!(benches, unit);
criterion_main!(benches);

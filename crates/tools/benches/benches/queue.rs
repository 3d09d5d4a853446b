// SPDX-License-Identifier: Apache-2.0
//! Events per second in the hold model: each event taken out schedules another, as in a simulation.

use std::hint::black_box;

use benches::cpu_time;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sim::{EventQueue, Time};

/// Payload of the size of a card's events.
type Event = [u64; 3];

/// Holds per measured step; each is a pop and a push.
const HOLDS: u64 = 10_000;

/// Returns a pseudo-random span of up to about a microsecond (Knuth's MMIX generator).
fn span(state: &mut u64) -> Time {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    Time::from_ps(*state >> 44)
}

fn hold(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue/hold");
    group.throughput(Throughput::Elements(2 * HOLDS));
    for pending in [16, 1_000, 100_000] {
        let (mut queue, mut random) = (EventQueue::<Event>::default(), 1);
        for number in 0..pending {
            queue.push(span(&mut random), [number; 3]);
        }
        group.bench_function(BenchmarkId::from_parameter(pending), |bench| {
            let mut hold = || {
                for _ in 0..HOLDS {
                    if let Some((now, event)) = queue.pop() {
                        queue.push(now + span(&mut random), black_box(event));
                    }
                }
            };
            bench.iter_custom(|runs| cpu_time(runs, &mut hold));
        });
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);

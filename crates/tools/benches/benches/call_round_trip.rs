// SPDX-License-Identifier: Apache-2.0
//! A library call of a rank: from the program through shared memory to the simulator and back.

#[path = "../../../system/world/tests/common/mod.rs"]
mod common;

use abi::portals::ReturnCode;
use criterion::{Criterion, criterion_group, criterion_main};
use ranks::{Pause, Reply};
use sim::Time;

fn call_round_trip(criterion: &mut Criterion) {
    let program = common::compile(
        "#include <portals4.h>
        int main(void) {
            ptl_ct_event_t event;
            PtlInit();
            for (;;) PtlCTGet(1, &event);
        }",
    );
    let mut job = common::job(&program, 1);
    let mut pause = job.start(0).expect("the program was compiled");
    criterion.bench_function("call_round_trip", |bencher| {
        bencher.iter(|| {
            let Pause::Call(call) = &pause else { panic!("expected a call, not {pause:?}") };
            pause = job.resume(call.caller, Time::ZERO, &Reply::new(ReturnCode::Ok));
        });
    });
}

criterion_group!(benches, call_round_trip);
criterion_main!(benches);

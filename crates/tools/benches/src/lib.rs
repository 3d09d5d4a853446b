// SPDX-License-Identifier: Apache-2.0
//! Benchmarks of the other crates, run by `cargo bench -p spinkit-benches`. In a separate crate, no build and no test
//! has to compile Criterion.

use std::time::Duration;

/// Returns the CPU time of a thread for `times` repetitions of an action, undisturbed by other programs.
pub fn cpu_time(times: u64, mut what: impl FnMut()) -> Duration {
    let start = cpu();
    (0..times).for_each(|_| what());
    cpu() - start
}

/// Returns the CPU time of this thread.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

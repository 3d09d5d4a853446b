// SPDX-License-Identifier: Apache-2.0
//! Benchmarks of the other crates, which `cargo bench -p spinkit-benches` runs. In a crate of their own they cost no build and no test the time to
//! compile Criterion.

use std::time::Duration;

/// The CPU time of a thread while it does something a number of times: other programs on the machine do not count.
pub fn cpu_time(times: u64, mut what: impl FnMut()) -> Duration {
    let start = cpu();
    (0..times).for_each(|_| what());
    cpu() - start
}

/// The time that this thread has been running.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

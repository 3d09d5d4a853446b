// SPDX-License-Identifier: Apache-2.0
//! CPU time of this process and its threads.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the CPU time that this process has used.
pub fn of_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Returns the CPU time that this thread has used.
pub fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).expect("CPU time is not negative")
}

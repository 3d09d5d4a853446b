// SPDX-License-Identifier: Apache-2.0
//! Options of a LogGOPS run.

use crate::run_progress::RunProgress;
use sim::noise::Noise;

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Ignores dependencies on other CPUs of a rank, as LogGOPSim does: an operation starts when its own CPU is free,
    /// even if such a dependency ends later.
    pub ignore_other_cpus: bool,
    /// CPU noise.
    pub noise: Option<Noise>,
    /// Records the times of every operation and message, which takes 48 bytes for each.
    pub record: bool,
    /// Number of simulation threads, each for a part of the ranks, unless the schedule allows only
    /// [one](super::one_thread()); 0 means one. The outcome is the same.
    pub threads: usize,
    /// Receives the progress of the run.
    pub progress: RunProgress,
}

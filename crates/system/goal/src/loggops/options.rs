use crate::run_progress::RunProgress;
use sim::noise::Noise;

/// How to execute a schedule.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Start an operation that depends on one of another CPU of its rank when its own CPU is free, even if its dependency
    /// ends later, as LogGOPSim does.
    pub ignore_other_cpus: bool,
    /// The noise that the CPUs meet.
    pub noise: Option<Noise>,
    /// Record when every operation and message ran, which takes 48 bytes for each.
    pub record: bool,
    /// Number of threads of the simulation, each of which executes a part of the ranks, unless the schedule allows only
    /// [one](super::one_thread()); 0 means one. The outcome is the same.
    pub threads: usize,
    /// Shows how far the run is.
    pub progress: RunProgress,
}

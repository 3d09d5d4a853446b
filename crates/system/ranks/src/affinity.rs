// SPDX-License-Identifier: Apache-2.0
//! Chooses the CPUs of the simulator and the ranks.
//!
//! Only one of them runs at a time. On separate CPUs the hand-over is fastest while the receiver still spins. Waking a
//! sleeper on another CPU takes ten times as long as on the same one, and a hundred times in a virtual machine with an
//! idle CPU. Therefore, once enough waits end in sleep, all of them move to one CPU, and stay there if that is no
//! slower. They leave it when another program wants it, and periodically to test whether waits have become short.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use std::fs;
use std::time::{Duration, Instant};

/// Number of waits between two choices of CPUs.
const WAITS: u32 = 256;
/// One CPU is tried if more than 1/`SLEPT` of the waits end in sleep.
const SLEPT: u32 = 8;
/// Initial and maximum period on one CPU, or without trying one, before waits are measured again.
const STAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(16));
/// Minimum period for measuring how long the simulator waits for its CPU.
const MEASURED: Duration = Duration::from_millis(30);
/// The CPU is crowded if the simulator waits for it during more than 1/`CROWDED` of the time. With ranks on the same
/// CPU it waits until the rank that woke it sleeps; beside one busy program it waits half of the time.
const CROWDED: u32 = 4;

/// Statistics of waits, and the current placement.
pub struct Affinity {
    /// CPUs on which the simulator may run; `None` if the kernel chooses.
    allowed: Option<CpuSet>,
    /// Number of waits since the last choice, and the number of these that ended in sleep.
    waits: u32,
    slept: u32,
    stay: Duration,
    /// Start of the waits since the last choice.
    began: Instant,
    /// Earliest time at which one CPU is tried again.
    not_before: Instant,
    bound: Option<Bound>,
}

/// Placement of all processes on one CPU.
struct Bound {
    cpu: usize,
    until: Instant,
    /// Duration of the preceding [`WAITS`] waits, until the first comparison.
    before: Option<Duration>,
    /// Time of the last measurement of the simulator's scheduling delay, and the delay.
    measured: (Instant, Duration),
    /// Time until the next measurement. It doubles with each move, which may not have helped.
    measure_interval: Duration,
}

/// New placement of all processes.
pub enum Choice {
    /// Any allowed CPU.
    Anywhere,
    /// This CPU.
    On(usize),
}

impl Affinity {
    /// Adapts the CPUs if `adapts` is set and more than one CPU is available.
    pub fn new(adapts: bool) -> Affinity {
        let allowed = sched_getaffinity(None).ok().filter(|cpus| adapts && cpus.count() > 1);
        // Without this number, a crowded CPU could not be detected.
        let allowed = allowed.filter(|_| delay().is_some());
        let now = Instant::now();
        Affinity { allowed, waits: 0, slept: 0, stay: STAY.0, began: now, not_before: now, bound: None }
    }

    /// Records a wait for a rank. Returns the new placement if it changes.
    pub fn note(&mut self, slept: bool) -> Option<Choice> {
        let allowed = self.allowed.as_ref()?;
        self.waits += 1;
        self.slept += u32::from(slept);
        if self.waits < WAITS {
            return None;
        }
        let many_slept = self.slept * SLEPT > self.waits;
        (self.waits, self.slept) = (0, 0);
        let now = Instant::now();
        let taken = now - std::mem::replace(&mut self.began, now);
        let Some(bound) = &mut self.bound else {
            if !many_slept || now < self.not_before {
                return None;
            }
            let cpu = sched_getcpu();
            let (until, measured) = (now + self.stay, (now, delay()?));
            self.bound = Some(Bound { cpu, until, before: Some(taken), measured, measure_interval: MEASURED });
            self.stay = (self.stay * 2).min(STAY.1);
            return Some(Choice::On(cpu));
        };
        let is_slower = bound.before.take().is_some_and(|before| taken > before);
        if is_slower || now >= bound.until {
            // Both placements are tried again, but not at once.
            self.not_before = if is_slower { bound.until } else { now };
            self.bound = None;
            return Some(Choice::Anywhere);
        }
        let (since, before) = bound.measured;
        if now - since < bound.measure_interval {
            return None;
        }
        let waited = delay()?;
        let is_crowded = waited.saturating_sub(before) > (now - since) / CROWDED;
        bound.measured = (now, waited);
        if !is_crowded {
            return None;
        }
        bound.measure_interval = (bound.measure_interval * 2).min(STAY.1);
        bound.cpu = next(allowed, bound.cpu);
        Some(Choice::On(bound.cpu))
    }

    /// Returns the CPUs of a choice; `None` if the kernel chooses.
    pub fn cpus(&self, choice: &Choice) -> Option<CpuSet> {
        let allowed = self.allowed?;
        let Choice::On(cpu) = choice else { return Some(allowed) };
        let mut one = CpuSet::new();
        one.set(*cpu);
        Some(one)
    }

    /// Leaves the choice to the kernel from now on. Returns the CPUs to restore if all were on one.
    pub fn end(&mut self) -> Option<CpuSet> {
        let allowed = self.allowed.take();
        self.bound.take().and(allowed)
    }
}

/// Returns the next CPU of a set after `cpu`, cyclically.
fn next(set: &CpuSet, cpu: usize) -> usize {
    (cpu + 1..CpuSet::MAX_CPU).chain(0..cpu).find(|&cpu| set.is_set(cpu)).unwrap_or(cpu)
}

/// Returns the total time for which this thread was runnable but waited for a CPU.
fn delay() -> Option<Duration> {
    let numbers = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    numbers.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_cpu_is_in_the_set() {
        let mut set = CpuSet::new();
        [1, 3, 5].into_iter().for_each(|cpu| set.set(cpu));
        assert_eq!([1, 3, 5].map(|cpu| next(&set, cpu)), [3, 5, 1]);
        set.clear();
        set.set(2);
        assert_eq!(next(&set, 2), 2);
    }

    /// Records enough waits for one choice. Returns true for one CPU, false for any CPU, and `None` without a change.
    fn choose(affinity: &mut Affinity, sleeps: impl Fn(u32) -> bool) -> Option<bool> {
        let choices: Vec<bool> = (0..WAITS)
            .filter_map(|wait| affinity.note(sleeps(wait)))
            .map(|choice| matches!(choice, Choice::On(_)))
            .collect();
        assert!(choices.len() < 2);
        choices.first().copied()
    }

    #[test]
    fn sleeping_waits_move_all_to_one_cpu() {
        let mut affinity = Affinity::new(true);
        if affinity.allowed.is_none() {
            return; // one CPU
        }
        assert_eq!(choose(&mut affinity, |wait| wait % SLEPT == 0), None);
        affinity.began -= Duration::from_secs(1); // slow
        assert_eq!(choose(&mut affinity, |wait| wait % 4 == 0), Some(true));
        assert_eq!(choose(&mut affinity, |_| true), None, "it is faster");
        affinity.bound.as_mut().unwrap().until = Instant::now();
        assert_eq!(choose(&mut affinity, |_| true), Some(false), "waits are watched again");
        assert_eq!(choose(&mut affinity, |_| true), Some(true));
        affinity.began -= Duration::from_secs(1);
        assert_eq!(choose(&mut affinity, |_| true), Some(false), "it is slower");
        assert_eq!(choose(&mut affinity, |_| true), None, "it is not tried again at once");
        affinity.not_before = Instant::now();
        assert_eq!(choose(&mut affinity, |_| true), Some(true));
        let mut never = Affinity::new(false);
        assert_eq!(choose(&mut never, |_| true), None);
    }
}

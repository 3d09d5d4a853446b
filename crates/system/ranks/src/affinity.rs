//! The CPUs on which the simulator and the ranks run.
//!
//! Only one of them runs at a time. On CPUs of their own they hand over fastest, as long as each side sees the other's answer while it
//! still watches for it. Waking a sleeper on another CPU takes ten times as long as on the same one, and a hundred times in a virtual
//! machine whose CPU is idle. So once some waits have ended in sleep, all of them go to one CPU, and stay if that is no slower. They
//! leave it when another program wants it, and now and then to see whether waits have become short.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use std::fs;
use std::time::{Duration, Instant};

/// The number of waits after which the CPUs are chosen anew.
const WAITS: u32 = 256;
/// The share of waits, as one over this number, that may end in sleep before one CPU is tried.
const SLEPT: u32 = 8;
/// How long all stay on one CPU, or do not try it, before waits are watched again: at first, and at most.
const STAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(16));
/// The shortest time over which it is measured how long the simulator has waited for its CPU.
const MEASURED: Duration = Duration::from_millis(30);
/// The share of the time, as one over this number, that the simulator may wait for its CPU. While ranks share it, it waits until a
/// rank that has woken it sleeps; beside one busy program it waits half of the time.
const CROWDED: u32 = 4;

/// What is known about waits, and where all run.
pub struct Affinity {
    /// The CPUs on which the simulator may run; `None` if the choice is left to the kernel.
    allowed: Option<CpuSet>,
    /// Number of waits since the last choice, and how many of them ended in sleep.
    waits: u32,
    slept: u32,
    stay: Duration,
    /// When the waits since the last choice have begun.
    began: Instant,
    /// Before this time one CPU is not tried.
    not_before: Instant,
    bound: Option<Bound>,
}

/// All are on one CPU.
struct Bound {
    cpu: usize,
    until: Instant,
    /// How long the waits before took, until it is known that those on one CPU are not slower.
    before: Option<Duration>,
    /// When the simulator's delay was last read, and the delay.
    measured: (Instant, Duration),
    /// The time until the next measurement. It doubles with each move, which may not have helped.
    measure_interval: Duration,
}

/// Where all are to run from now on.
pub enum Choice {
    /// Wherever the kernel likes.
    Anywhere,
    /// On this CPU.
    On(usize),
}

impl Affinity {
    /// Lets waits decide if `adapts`, and if there is more than one CPU.
    pub fn new(adapts: bool) -> Affinity {
        let allowed = sched_getaffinity(None).ok().filter(|cpus| adapts && cpus.count() > 1);
        // Without this number it could not be seen that the CPU is another program's, too.
        let allowed = allowed.filter(|_| delay().is_some());
        let now = Instant::now();
        Affinity { allowed, waits: 0, slept: 0, stay: STAY.0, began: now, not_before: now, bound: None }
    }

    /// Takes note of a wait for a rank. Returns where all are to run if that changes.
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
            // Both ways are tried again, but not at once.
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

    /// Returns the CPUs of a choice; `None` if the choice is left to the kernel.
    pub fn cpus(&self, choice: &Choice) -> Option<CpuSet> {
        let allowed = self.allowed?;
        let Choice::On(cpu) = choice else { return Some(allowed) };
        let mut one = CpuSet::new();
        one.set(*cpu);
        Some(one)
    }

    /// Leaves the choice to the kernel from now on. Returns the CPUs to go back to if all were on one.
    pub fn end(&mut self) -> Option<CpuSet> {
        let allowed = self.allowed.take();
        self.bound.take().and(allowed)
    }
}

/// Returns the CPU of a set that follows a CPU.
fn next(set: &CpuSet, cpu: usize) -> usize {
    (cpu + 1..CpuSet::MAX_CPU).chain(0..cpu).find(|&cpu| set.is_set(cpu)).unwrap_or(cpu)
}

/// How long this thread has waited for a CPU while it could have run.
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

    /// Notes as many waits as are needed for a choice, and returns it: whether all go to one CPU.
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

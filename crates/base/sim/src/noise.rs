// SPDX-License-Identifier: Apache-2.0
//! Noise: detours, during which the operating system uses a CPU, delay the work of a rank.

use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

use crate::Time;
use crate::random::{self, mix};

/// Minimum period, and minimum mean time between detours.
const SHORTEST: Time = Time::from_ns(1);

/// Detours of all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Detours of one CPU.
    pub detours: Detours,
    /// Random seed; equal seeds give equal noise.
    pub seed: u64,
    /// True if all CPUs have their detours at the same times.
    pub co_scheduled: bool,
    /// Ranks whose CPUs have detours; `None` for all.
    pub ranks: Option<Vec<RangeInclusive<u32>>>,
}

impl Noise {
    /// Returns true if the CPUs of `rank` have detours.
    fn disturbs(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.iter().any(|range| range.contains(&rank)))
    }
}

/// Detours of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detours {
    /// One detour every `period`, with a random phase for each CPU.
    Periodic {
        /// Time from the start of a detour to the start of the next
        period: Time,
        /// Length of each detour, shorter than the period
        length: Time,
    },
    /// Exponentially distributed times from the end of a detour to the start of the next.
    Poisson {
        /// Mean of that time
        interval: Time,
        /// Length of each detour
        length: Time,
    },
    /// Measured detours, which repeat, with a random phase for each CPU.
    Trace(Trace),
}

/// Measured detours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Start and length of each detour in picoseconds, in order, without overlap.
    detours: Arc<[(u64, u64)]>,
    /// Period of the trace in picoseconds.
    span: u64,
    /// Total length of all detours in picoseconds.
    busy: u64,
}

/// Error of invalid noise parameters.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoiseError {
    /// A detour fills its period, or the time between detours is zero.
    #[error(
        "detours must be shorter than their period, and the time between them not zero: the CPU would never be free"
    )]
    NeverFree,
    /// Detours are so frequent that the simulation would not progress.
    #[error("from one detour to the next are at least {} ns", SHORTEST.as_ps() / 1000)]
    TooOften,
    /// A line of a noise trace is invalid.
    #[error("line {0}: expected start and length of a detour in ns, after the end of the one before: \"{1}\"")]
    Line(usize, String),
    /// A noise trace has no detour.
    #[error("no detours")]
    Empty,
}

impl Trace {
    /// Reads lines of `START LENGTH` in whole nanoseconds; `#` begins a comment. The trace repeats from the end of its
    /// last line, which may have the length 0 to set the period.
    ///
    /// # Errors
    /// If a line is malformed or out of order, or if the trace has no detour.
    pub fn read(text: &str) -> Result<Trace, NoiseError> {
        let (mut detours, mut span) = (Vec::new(), 0);
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            let mut words = content.split_whitespace();
            let Some(first) = words.next() else { continue };
            let wrong = || NoiseError::Line(index + 1, line.trim().to_owned());
            let ps = |word: &str| word.parse::<u64>().ok()?.checked_mul(1000);
            let (start, length) = (ps(first), words.next().and_then(ps));
            let (Some(start), Some(length), None) = (start, length, words.next()) else { return Err(wrong()) };
            let end = start.checked_add(length).filter(|_| start >= span).ok_or_else(wrong)?;
            if length > 0 {
                detours.push((start, length));
            }
            span = end;
        }
        let busy: u64 = detours.iter().map(|detour| detour.1).sum();
        match detours.is_empty() {
            true => Err(NoiseError::Empty),
            false if busy == span => Err(NoiseError::NeverFree),
            false => Ok(Trace { detours: detours.into(), span, busy }),
        }
    }

    /// Returns the number of detours.
    pub fn len(&self) -> usize {
        self.detours.len()
    }

    /// Returns true if the trace has no detour, which never happens.
    pub fn is_empty(&self) -> bool {
        self.detours.is_empty()
    }

    /// Returns the period of the trace.
    pub fn span(&self) -> Time {
        Time::from_ps(self.span)
    }
}

impl Detours {
    /// Checks that the CPU is sometimes free, and that detours are not too frequent.
    ///
    /// # Errors
    /// See [`NoiseError`].
    pub fn check(&self) -> Result<(), NoiseError> {
        match *self {
            Detours::Periodic { period, length } if length >= period => Err(NoiseError::NeverFree),
            Detours::Poisson { interval, .. } if interval == Time::ZERO => Err(NoiseError::NeverFree),
            Detours::Periodic { period: between, .. } | Detours::Poisson { interval: between, .. }
                if between < SHORTEST =>
            {
                Err(NoiseError::TooOften)
            }
            _ => Ok(()),
        }
    }
}

/// Computes the duration of work on a CPU.
pub trait CpuTime {
    /// Returns the end of `work` picoseconds of work that starts at `start` on `cpu`. Calls for one CPU must have
    /// ascending starts.
    fn end(&mut self, cpu: usize, start: u64, work: u64) -> u64;
}

/// CPUs without noise.
#[derive(Debug)]
pub struct NoNoise;

impl CpuTime for NoNoise {
    #[inline(always)]
    fn end(&mut self, _: usize, start: u64, work: u64) -> u64 {
        start.saturating_add(work)
    }
}

/// CPUs with optional noise.
impl<S: CpuTime> CpuTime for Option<S> {
    #[inline]
    fn end(&mut self, cpu: usize, start: u64, work: u64) -> u64 {
        match self {
            None => NoNoise.end(cpu, start, work),
            Some(noise) => noise.end(cpu, start, work),
        }
    }
}

/// CPUs with noise: the first unfinished detour of each CPU of all ranks.
#[derive(Debug)]
pub struct NoisyCpus {
    detours: Detours,
    cpus: Vec<Cpu>,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    start: u64,
    length: u64,
    /// State of the random numbers; for a trace, the number of detours since its start.
    state: u64,
    offset: u64,
}

impl Cpu {
    /// A CPU without detours.
    const QUIET: Cpu = Cpu { start: u64::MAX, length: 0, state: 0, offset: 0 };
}

impl NoisyCpus {
    /// Creates `cpus` CPUs for each of `ranks` ranks, numbered rank by rank.
    pub fn new(noise: &Noise, ranks: usize, cpus: usize) -> NoisyCpus {
        let first = |cpu: usize| {
            if !noise.disturbs((cpu / cpus) as u32) {
                return Cpu::QUIET;
            }
            let mut state = if noise.co_scheduled { noise.seed } else { mix(noise.seed ^ mix(cpu as u64 + 1)) };
            match &noise.detours {
                Detours::Periodic { period, length } => {
                    let start = below(random::next(&mut state), period.as_ps());
                    Cpu { start, length: length.as_ps(), state, offset: 0 }
                }
                Detours::Poisson { interval, length } => {
                    let start = exponential(&mut state, interval.as_ps());
                    Cpu { start, length: length.as_ps(), state, offset: 0 }
                }
                Detours::Trace(trace) => {
                    let offset = below(random::next(&mut state), trace.span);
                    let next = trace.detours.partition_point(|&(start, length)| start + length <= offset);
                    Cpu { start: 0, length: 0, state: next as u64, offset }
                }
            }
        };
        NoisyCpus { detours: noise.detours.clone(), cpus: (0..ranks * cpus).map(first).collect() }
    }

    /// Advances a CPU to its next detour.
    fn next(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        match &self.detours {
            Detours::Periodic { period, .. } => cpu.start = cpu.start.saturating_add(period.as_ps()),
            Detours::Poisson { interval, .. } => {
                let gap = exponential(&mut cpu.state, interval.as_ps());
                cpu.start = cpu.start.saturating_add(cpu.length).saturating_add(gap);
            }
            Detours::Trace(trace) => {
                let (round, index) = (cpu.state / trace.detours.len() as u64, cpu.state % trace.detours.len() as u64);
                let (start, length) = trace.detours[index as usize];
                let start = start.saturating_add(round.saturating_mul(trace.span));
                // The first detour may begin before the CPU starts.
                let begun = cpu.offset.saturating_sub(start).min(length);
                (cpu.start, cpu.length) = (start.saturating_sub(cpu.offset), length - begun);
                cpu.state += 1;
            }
        }
    }

    /// Skips whole periods, or whole rounds of a trace, before `until` in one step.
    fn skip(&mut self, cpu: usize, until: u64) {
        let cpu = &mut self.cpus[cpu];
        let passed = until.saturating_sub(cpu.start);
        match &self.detours {
            Detours::Periodic { period, .. } => {
                let period = period.as_ps();
                cpu.start = cpu.start.saturating_add(passed / period * period);
            }
            Detours::Poisson { .. } => {}
            Detours::Trace(trace) => {
                // The index of the current detour must not change, so only whole rounds before the last one are
                // skipped.
                let rounds = (passed / trace.span).saturating_sub(1);
                cpu.start = cpu.start.saturating_add(rounds.saturating_mul(trace.span));
                cpu.state = cpu.state.saturating_add(rounds.saturating_mul(trace.detours.len() as u64));
            }
        }
    }

    /// Passes, in one step, all whole periods or rounds of a trace within work that would end at `end` without further
    /// detours. The current detour has not begun. Returns the new end, if any were passed.
    fn pass(&mut self, cpu: usize, end: u64) -> Option<u64> {
        let cpu = &mut self.cpus[cpu];
        let (span, busy, count) = match &self.detours {
            Detours::Periodic { period, length } => (period.as_ps(), length.as_ps(), 0),
            Detours::Poisson { .. } => return None,
            Detours::Trace(trace) => {
                let count = trace.detours.len() as u64;
                let index = cpu.state.checked_sub(1)? % count;
                // If the CPU starts within its current detour, that detour repeats after less than a whole round.
                if cpu.length != trace.detours[index as usize].1 {
                    return None;
                }
                (trace.span, trace.busy, count)
            }
        };
        // The caller handles the last round.
        let rounds = (end.saturating_sub(cpu.start) / (span - busy)).checked_sub(1).filter(|&rounds| rounds > 0)?;
        cpu.start = cpu.start.saturating_add(rounds.saturating_mul(span));
        cpu.state = cpu.state.saturating_add(rounds.saturating_mul(count));
        Some(end.saturating_add(rounds.saturating_mul(busy)))
    }
}

impl CpuTime for NoisyCpus {
    fn end(&mut self, cpu: usize, start: u64, work: u64) -> u64 {
        if work == 0 {
            return start;
        }
        self.skip(cpu, start);
        let mut end = start.saturating_add(work);
        loop {
            let Cpu { start: detour, length, .. } = self.cpus[cpu];
            let over = detour.saturating_add(length);
            if detour >= end || end == u64::MAX {
                return end;
            }
            if detour >= start
                && let Some(later) = self.pass(cpu, end)
            {
                end = later;
                continue;
            }
            // A past detour adds nothing, a current one its remainder, and a future one its full length.
            end = end.saturating_add(over.saturating_sub(detour.max(start)));
            self.next(cpu);
        }
    }
}

/// Maps a random 64-bit number to a number below `limit`.
fn below(random: u64, limit: u64) -> u64 {
    ((u128::from(random) * u128::from(limit)) >> 64) as u64
}

/// Returns an exponentially distributed number by von Neumann's method, which only compares and so gives the same
/// result on every machine.
fn exponential(state: &mut u64, mean: u64) -> u64 {
    let mut whole = 0u64;
    loop {
        let first = random::next(state);
        let (mut last, mut falling) = (first, 1);
        loop {
            let next = random::next(state);
            if next >= last {
                break;
            }
            (last, falling) = (next, falling + 1);
        }
        if falling % 2 == 1 {
            return whole.saturating_mul(mean).saturating_add(below(first, mean));
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ends(detours: Detours, seed: u64, work: &[(u64, u64)]) -> Vec<u64> {
        let noise = Noise { detours, seed, co_scheduled: false, ranks: None };
        let mut noisy = NoisyCpus::new(&noise, 1, 1);
        work.iter().map(|&(start, work)| noisy.end(0, start, work)).collect()
    }

    #[test]
    fn periodic_detours_are_added_to_work_that_meets_them() {
        let detours = Detours::Periodic { period: Time::from_ps(100), length: Time::from_ps(10) };
        // The phase of the first detour follows from the end of very long work, which gets 90 of every 100 ns.
        let noise = Noise { detours: detours.clone(), seed: 7, co_scheduled: false, ranks: None };
        let first = NoisyCpus::new(&noise, 1, 1).cpus[0].start;
        assert!(first < 100);
        let work = [(first + 20, 80), (first + 200, 1), (first + 215, 85), (first + 315, 86), (first + 505, 5)];
        let expected = [first + 100, first + 211, first + 300, first + 411, first + 515];
        assert_eq!(ends(detours.clone(), 7, &work), expected);
        assert_eq!(ends(detours, 7, &[(first + 10, 90_000)]), [first + 100_000]);
    }

    #[test]
    fn a_trace_repeats() {
        let trace = Trace::read("# start length\n10 5\n\n20 1 # short\n50 0\n").unwrap();
        let noise = Noise { detours: Detours::Trace(trace), seed: 1, co_scheduled: true, ranks: None };
        let mut noisy = NoisyCpus::new(&noise, 2, 1);
        let busy = |noisy: &mut NoisyCpus, cpu| noisy.end(cpu, 0, 44_000 * 1000) - 44_000 * 1000;
        let (one, two) = (busy(&mut noisy, 0), busy(&mut noisy, 1));
        // The application gets 44 of every 50 ns: 1000 rounds of work contain all their detours, for any start.
        assert_eq!((one, two), (6_000 * 1000, 6_000 * 1000));
        for (text, error) in [
            ("", NoiseError::Empty),
            ("3 0", NoiseError::Empty),
            ("0 7", NoiseError::NeverFree),
            ("1 2\n2 1", NoiseError::Line(2, "2 1".into())),
            ("1 2 3", NoiseError::Line(1, "1 2 3".into())),
            ("99999999999999999999 1", NoiseError::Line(1, "99999999999999999999 1".into())),
        ] {
            assert_eq!(Trace::read(text), Err(error), "{text}");
        }
    }

    #[test]
    fn poisson_noise_has_its_mean() {
        let detours = Detours::Poisson { interval: Time::from_ns(1000), length: Time::from_ns(50) };
        let [end] = ends(detours.clone(), 3, &[(0, 1_000_000_000_000)])[..] else { panic!() };
        let share = end as f64 / 1e12;
        assert!((1.0499..1.0501).contains(&share), "{share}");
        assert_eq!(ends(detours.clone(), 3, &[(0, 1_000_000_000_000)]), [end]);
        assert_ne!(ends(detours, 4, &[(0, 1_000_000_000_000)]), [end]);
    }

    /// Simulates one detour after the other, without skipping.
    fn plainly(noisy: &mut NoisyCpus, start: u64, work: u64) -> u64 {
        let mut end = start + work;
        while work > 0 && noisy.cpus[0].start < end {
            let Cpu { start: detour, length, .. } = noisy.cpus[0];
            end += (detour + length).saturating_sub(detour.max(start));
            noisy.next(0);
        }
        end
    }

    proptest! {
        #[test]
        fn many_detours_at_once_are_those_one_by_one(
            seed: u64,
            (lead, short, long) in (0u64..4, 1u64..4, 1u64..9),
            is_trace: bool,
            works in prop::collection::vec((0u64..60_000, 0u64..60_000), 1..6),
        ) {
            let detours = if is_trace {
                let text = format!("{lead} {short}\n{} {long}\n{} 0", lead + short + 1, lead + short + long + 3);
                Detours::Trace(Trace::read(&text).unwrap())
            } else {
                Detours::Periodic { period: Time::from_ns(lead + long + 1), length: Time::from_ns(long) }
            };
            let noise = Noise { detours, seed, co_scheduled: false, ranks: None };
            let (mut one, mut other) = (NoisyCpus::new(&noise, 1, 1), NoisyCpus::new(&noise, 1, 1));
            let mut now = 0;
            for (idle, work) in works {
                let start = now + idle;
                now = one.end(0, start, work);
                prop_assert_eq!(now, plainly(&mut other, start, work));
            }
        }
    }

    #[test]
    fn detours_without_number_take_no_time_to_count() {
        let trace = Detours::Trace(Trace::read("1 1\n3 0").unwrap());
        let periodic = Detours::Periodic { period: Time::from_ns(3), length: Time::from_ns(1) };
        for detours in [trace, periodic] {
            let hour = 3_600_000_000_000_000;
            let [one, two] = ends(detours, 1, &[(0, hour), (hour * 2, hour)])[..] else { panic!() };
            // The system takes one of every three nanoseconds, so two hours of work take three.
            assert!(one.abs_diff(hour / 2 * 3) <= 1000, "{one}");
            assert!(two.abs_diff(hour / 2 * 7) <= 1000, "{two}");
        }
        let often = Detours::Poisson { interval: Time::from_ps(1), length: Time::from_ps(1) };
        assert_eq!(often.check(), Err(NoiseError::TooOften));
        assert_eq!(often.check().unwrap_err().to_string(), "from one detour to the next are at least 1 ns");
        let often = Detours::Periodic { period: Time::from_ps(999), length: Time::from_ps(1) };
        assert_eq!(often.check(), Err(NoiseError::TooOften));
    }
}

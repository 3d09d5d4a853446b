// SPDX-License-Identifier: Apache-2.0
//! CPU time of the ranks between their calls: measured, recorded, or replayed.

/// CPU times in nanoseconds before each call, in call order, by rank.
pub type ComputeTimes = Vec<Vec<u64>>;

/// Source of the CPU time of a rank before a call.
#[derive(Debug, Default)]
pub enum Computation {
    /// Measured by the calling rank.
    #[default]
    Measured,
    /// Measured by the calling rank, and recorded.
    Recorded(ComputeTimes),
    /// Replayed from an earlier recording.
    Replayed {
        /// Recorded times.
        times: ComputeTimes,
        /// Number of calls so far, by rank.
        calls: Vec<usize>,
        /// Simulated picoseconds per microsecond.
        scale: u64,
    },
}

impl Computation {
    /// Replays these times of as many ranks as the job has; `scale` is in simulated picoseconds per microsecond.
    pub fn replay(times: ComputeTimes, scale: u64) -> Computation {
        Computation::Replayed { calls: vec![0; times.len()], times, scale }
    }

    /// Returns the scale of the times; `measured` is the scale for measured times.
    pub fn scale(&self, measured: u64) -> u64 {
        match self {
            Computation::Replayed { scale, .. } => *scale,
            _ => measured,
        }
    }

    /// Returns the CPU time before the next call of a rank; `measured` is the time reported by the rank.
    ///
    /// # Errors
    /// A message for the user when the recording has no further call.
    pub fn next(&mut self, rank: usize, measured: u64) -> Result<u64, String> {
        match self {
            Computation::Measured => Ok(measured),
            Computation::Recorded(times) => {
                times[rank].push(measured);
                Ok(measured)
            }
            Computation::Replayed { times, calls, .. } => {
                let known = times[rank].get(calls[rank]).copied();
                calls[rank] += 1;
                known.ok_or_else(|| {
                    let there = times[rank].len();
                    format!(
                        "it makes more library calls than the {there} for which computation was recorded: program, input or \
                         machine are not those of the recording; make it again (--compute record:FILE)"
                    )
                })
            }
        }
    }

    /// Returns the recorded times.
    pub fn recorded(&self) -> Option<&ComputeTimes> {
        match self {
            Computation::Recorded(times) => Some(times),
            _ => None,
        }
    }

    /// Returns the ranks with fewer calls than recorded, with the numbers of calls made and recorded.
    pub fn left_over(&self) -> Vec<(usize, usize, usize)> {
        let Computation::Replayed { times, calls, .. } = self else { return Vec::new() };
        let counts = times.iter().map(Vec::len).zip(calls).enumerate();
        counts.filter(|(_, (there, made))| *made < there).map(|(rank, (there, made))| (rank, *made, there)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_replayed_in_the_order_of_each_rank() {
        let mut recorder = Computation::Recorded(vec![Vec::new(); 2]);
        for (rank, time) in [(0, 5), (1, 7), (0, 0), (0, 9)] {
            assert_eq!(recorder.next(rank, time), Ok(time));
        }
        let times = recorder.recorded().unwrap().clone();
        assert_eq!(times, [vec![5, 0, 9], vec![7]]);
        let mut replay = Computation::replay(times, 3000);
        let got = [1, 0, 0].map(|rank| replay.next(rank, 1_000_000));
        assert_eq!(got, [Ok(7), Ok(5), Ok(0)]);
        assert_eq!((replay.scale(7), Computation::Measured.scale(7)), (3000, 7));
        assert_eq!(replay.left_over(), [(0, 2, 3)]);
        assert!(
            replay.next(1, 0).is_err_and(|why| why.starts_with("it makes more library calls than the 1 for which"))
        );
        assert_eq!(Computation::Measured.next(3, 8), Ok(8));
    }
}

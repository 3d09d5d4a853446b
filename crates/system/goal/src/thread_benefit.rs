// SPDX-License-Identifier: Apache-2.0
//! Decides if several threads pay.

use std::time::Duration;
use std::{fs, thread};

use thiserror::Error;

use crate::schedule::Schedule;

/// Number of operations that one thread executes in about 100 ms in LogGOPS: at 12 to 20 million events per second, with
/// an event for each operation and each message.
const SHORT: usize = 1 << 20;
/// Number of packets that one thread moves in about 100 ms: at 5 million hops per second, with 4 to 6 hops for each.
const FEW: u64 = 100_000;
/// Number of samples of the computer's load, and the interval between them.
const SAMPLES: usize = 5;
const PAUSE: Duration = Duration::from_millis(2);

/// Reason why several threads would be slower than one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SingleThread {
    /// Starting and synchronising threads takes longer than it saves.
    #[error("{operations} operations are too few for several ({SHORT})")]
    Short {
        /// Number of operations
        operations: usize,
    },
    /// Starting and synchronising threads takes longer than it saves.
    #[error("{packets} packets are too few for several ({FEW})")]
    FewPackets {
        /// Number of packets
        packets: u64,
    },
    /// The threads synchronise every few microseconds, so all are as slow as one that shares a processor.
    #[error("{running} other threads of this computer are running, and it has {processors} processors")]
    Busy {
        /// Number of runnable threads of other processes
        running: usize,
        /// Number of processors of this process
        processors: usize,
    },
}

/// Returns the reason to execute a schedule in LogGOPS by one thread instead of `threads`, if any: a short schedule or a
/// busy processor.
pub fn single_thread_reason(schedule: &Schedule, threads: usize) -> Option<SingleThread> {
    if schedule.len() < SHORT {
        return Some(SingleThread::Short { operations: schedule.len() });
    }
    busy_reason(threads)
}

/// Returns the reason to move packets by one thread instead of `threads`, if any: few packets or a busy processor.
pub fn single_thread_reason_for_packets(packets: u64, threads: usize) -> Option<SingleThread> {
    if packets < FEW {
        return Some(SingleThread::FewPackets { packets });
    }
    busy_reason(threads)
}

fn busy_reason(threads: usize) -> Option<SingleThread> {
    let mut samples = [0; SAMPLES];
    for sample in &mut samples {
        thread::sleep(PAUSE);
        // Without information, the computer counts as idle.
        *sample = fs::read_to_string("/proc/loadavg").ok().and_then(|text| others(&text)).unwrap_or(0);
    }
    samples.sort_unstable();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    lacks_processors(samples[SAMPLES / 2], processors, threads)
}

/// Parses the number of other runnable threads from `/proc/loadavg`: its fourth word is `RUNNING/ALL`, including the
/// reader.
fn others(text: &str) -> Option<usize> {
    let (running, _) = text.split_whitespace().nth(3)?.split_once('/')?;
    Some(running.parse::<usize>().ok()?.saturating_sub(1))
}

fn lacks_processors(running: usize, processors: usize, threads: usize) -> Option<SingleThread> {
    (running + threads > processors).then_some(SingleThread::Busy { running, processors })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, Spec, generate};

    #[test]
    fn short_schedules_use_one_thread() {
        let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.name() == "alltoall").unwrap();
        let schedule = generate(pattern, &Spec { ranks: 8, bytes: 1, ..Spec::default() }).unwrap();
        let why = single_thread_reason(&schedule, 2).unwrap();
        assert_eq!(why, SingleThread::Short { operations: schedule.len() });
        assert_eq!(why.to_string(), format!("{} operations are too few for several (1048576)", schedule.len()));
    }

    #[test]
    fn few_packets_use_one_thread() {
        let why = single_thread_reason_for_packets(99_999, 2).unwrap();
        assert_eq!(why.to_string(), "99999 packets are too few for several (100000)");
        assert!(!matches!(single_thread_reason_for_packets(100_000, 2), Some(SingleThread::FewPackets { .. })));
    }

    #[test]
    fn a_thread_needs_a_processor_that_nobody_else_uses() {
        assert_eq!(lacks_processors(0, 2, 2), None);
        assert_eq!(lacks_processors(1, 2, 2), Some(SingleThread::Busy { running: 1, processors: 2 }));
        assert_eq!(lacks_processors(1, 4, 3), None);
        assert_eq!(lacks_processors(2, 4, 3), Some(SingleThread::Busy { running: 2, processors: 4 }));
    }

    #[test]
    fn the_load_is_read_without_the_reader() {
        assert_eq!(others("14.63 18.06 21.99 18/460 32364\n"), Some(17));
        assert_eq!(others("0.00 0.00 0.00 1/97 12\n"), Some(0));
        assert_eq!(others("0.00 0.00"), None);
        assert_eq!(others("0 0 0 x/9 1"), None);
        assert!(others(&fs::read_to_string("/proc/loadavg").unwrap()).is_some());
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Tests the critical path with random schedules.

use goal::loggops::{CriticalPath, LogGops, Options, Outcome, Part, critical_path, run};
use goal::text::read;
use goal::{Action, Builder, Schedule, Wait};
use proptest::prelude::*;
use sim::noise::{Detours, Noise};
use sim::{Time, TimePerByte};

const RANKS: u32 = 4;

/// A calculation, or a message and its receive.
#[derive(Clone, Debug)]
struct Thing {
    from: u32,
    /// Receiver; for a calculation, the same rank as `from`.
    to: u32,
    size: u64,
    cpus: [u8; 2],
    nic: u8,
    is_any: bool,
    /// For each of its operations, the distance in the rank to the operation that it waits for, and true if it waits
    /// for that operation's start, false for its end.
    waits: [Option<(usize, bool)>; 2],
}

fn thing() -> impl Strategy<Value = Thing> {
    let wait = || prop::option::weighted(0.6, (1_usize..4, any::<bool>()));
    let ends = (0..RANKS, 0..RANKS, 0_u64..300);
    (ends, [0_u8..2, 0..2], 0_u8..2, prop::bool::weighted(0.1), [wait(), wait()])
        .prop_map(|((from, to, size), cpus, nic, is_any, waits)| Thing { from, to, size, cpus, nic, is_any, waits })
}

/// Returns a schedule. Operations wait only for earlier ones, so a schedule can deadlock only if a receive from any
/// source takes the message that another receive needs.
fn schedule(things: &[Thing], resources: u8) -> Schedule {
    let mut builder = Builder::new(RANKS);
    for rank in 0..RANKS {
        builder.begin_rank(rank);
        let mut ops = Vec::new();
        for (tag, thing) in (0..).zip(things) {
            let bytes = thing.size;
            for (end, cpu) in thing.cpus.into_iter().enumerate() {
                let action = match end {
                    0 if thing.from != rank => continue,
                    1 if thing.to != rank || thing.from == thing.to => continue,
                    _ if thing.from == thing.to => Action::Calc(thing.size * 10),
                    0 => Action::Send { bytes, to: thing.to, tag, space: 0 },
                    _ if thing.is_any => Action::Recv { bytes, from: None, tag: None, space: 0 },
                    _ => Action::Recv { bytes, from: Some(thing.from), tag: Some(tag), space: 0 },
                };
                let op = builder.add(action, cpu % resources, thing.nic % resources).unwrap();
                if let Some((back, for_start)) = thing.waits[end]
                    && let Some(&before) = ops.iter().rev().nth(back - 1)
                {
                    builder.depend(op, before, if for_start { Wait::Started } else { Wait::Done });
                }
                ops.push(op);
            }
        }
        builder.end_rank().unwrap();
    }
    builder.finish().unwrap()
}

fn parameters() -> impl Strategy<Value = LogGops> {
    (0_u64..4, 0_u64..3, 0_u64..3, 0_u64..3, 0_u64..2, prop::sample::select(vec![0, 100, 1000])).prop_map(
        |(latency, overhead, gap, per_byte, cpu_per_byte, eager)| LogGops {
            latency: Time::from_ns(latency * 500),
            overhead: Time::from_ns(overhead * 100),
            gap: Time::from_ns(gap * 150),
            gap_per_byte: TimePerByte::from_fs_per_byte(per_byte * 1_000_000),
            overhead_per_byte: TimePerByte::from_fs_per_byte(cpu_per_byte * 1_000_000),
            eager,
        },
    )
}

/// Checks that a path leads from 0 to the end without a gap, and that its parts add up to the total.
fn is_whole(schedule: &Schedule, outcome: &Outcome, path: &CriticalPath) -> Result<(), TestCaseError> {
    let steps = &path.steps;
    let all = path.compute + path.overhead + path.latency + path.gap + path.bandwidth + path.waiting;
    prop_assert_eq!(all, outcome.end());
    prop_assert_eq!(path.waiting, Time::ZERO);
    prop_assert_eq!(steps.first().map_or(Time::ZERO, |step| step.start), Time::ZERO);
    prop_assert_eq!(steps.last().map_or(Time::ZERO, |step| step.end), outcome.end());
    for pair in steps.windows(2) {
        prop_assert_eq!(pair[0].end, pair[1].start);
        let flies = pair[0].part == Part::Flight
            && matches!(schedule.action(pair[0].op), Action::Send { to, .. } if to == pair[1].rank);
        let is_matched = outcome.details.matches.iter().any(|found| found.at == pair[0].end);
        prop_assert!(flies || is_matched || pair[0].rank == pair[1].rank, "{:?}", pair);
    }
    Ok(())
}

fn steps(text: &str, parameters: &LogGops) -> Vec<(u32, Part, u64, u64)> {
    let schedule = read(text.as_bytes()).unwrap();
    let outcome = run(&schedule, parameters, &Options { record: true, ..Options::default() }).unwrap();
    let path = critical_path(&schedule, parameters, &outcome);
    assert_eq!(path.waiting, Time::ZERO);
    path.steps.iter().map(|step| (step.rank, step.part, step.start.as_ps() / 1000, step.end.as_ps() / 1000)).collect()
}

#[test]
fn a_receive_lets_the_sender_of_a_long_message_go_on() {
    // The long message arrives long before its receive, which waits for another message. The reception of that message
    // ends at 600,000 + 1500 + 2500 + 1500 + 7 · 6.
    let text = "num_ranks 3
        rank 0 { a: send 70000b to 1 b: calc 900000 b requires a }
        rank 1 { a: recv 8b from 2 b: recv 70000b from 0 b requires a }
        rank 2 { a: calc 600000 b: send 8b to 1 b requires a }";
    let expected = [
        (2, Part::Compute, 0, 600_000),
        (2, Part::Flight, 600_000, 604_000),
        (1, Part::Receive, 604_000, 605_542),
        (0, Part::Compute, 605_542, 1_505_542),
    ];
    assert_eq!(steps(text, &LogGops::default()), expected);
}

#[test]
fn what_takes_no_time_is_a_cause_too() {
    let parameters = LogGops { overhead: Time::ZERO, latency: Time::from_ns(1000), ..LogGops::default() };
    let text = "num_ranks 2
        rank 0 { a: calc 100 b: send 1b to 1 b requires a }
        rank 1 { a: recv 1b from 0 b: calc 0 c: calc 500 b requires a c requires b }";
    let expected = [(0, Part::Compute, 0, 100), (0, Part::Flight, 100, 1100), (1, Part::Compute, 1100, 1600)];
    assert_eq!(steps(text, &parameters), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_path_explains_all_time(
        things in prop::collection::vec(thing(), 1..30),
        parameters in parameters(),
        resources in 1_u8..3,
        is_noisy in prop::bool::weighted(0.3),
    ) {
        let schedule = schedule(&things, resources);
        let detours = Detours::Poisson { interval: Time::from_ns(500), length: Time::from_ns(70) };
        let noise = is_noisy.then_some(Noise { detours, seed: 1, co_scheduled: false, ranks: None });
        let options = Options { record: true, noise, ..Options::default() };
        let Ok(outcome) = run(&schedule, &parameters, &options) else { return Err(TestCaseError::reject("stuck")) };
        let path = critical_path(&schedule, &parameters, &outcome);
        is_whole(&schedule, &outcome, &path)?;
    }

    /// With this option, time may run backwards at a rank, as in LogGOPSim, so some steps have no cause.
    #[test]
    fn what_ignores_other_cpus_has_a_path_too(things in prop::collection::vec(thing(), 1..30), parameters in parameters()) {
        let schedule = schedule(&things, 2);
        let options = Options { record: true, ignore_other_cpus: true, ..Options::default() };
        let Ok(outcome) = run(&schedule, &parameters, &options) else { return Err(TestCaseError::reject("stuck")) };
        let path = critical_path(&schedule, &parameters, &outcome);
        let all = path.compute + path.overhead + path.latency + path.gap + path.bandwidth + path.waiting;
        prop_assert_eq!(all, outcome.end());
        prop_assert!(path.steps.windows(2).all(|pair| pair[0].end <= pair[1].start), "{:?}", path);
    }
}

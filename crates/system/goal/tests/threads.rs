// SPDX-License-Identifier: Apache-2.0
//! Tests that LogGOPS gives the same outcome in several threads as in one.

use goal::generate::{Pattern, Spec, generate};
use goal::loggops::{LogGops, OneThread, Options, Outcome, RunError, one_thread, run};
use goal::text::read;
use goal::{Action, Builder, Schedule, Wait};
use proptest::prelude::*;
use sim::noise::{Detours, Noise};
use sim::{Time, TimePerByte};

/// Returns the outcome of one thread, after checking that several threads give the same.
fn outcome(schedule: &Schedule, parameters: &LogGops, options: &Options) -> Result<Outcome, RunError> {
    let expected = run(schedule, parameters, options);
    for threads in [2, 3, 5] {
        let options = Options { threads, ..options.clone() };
        assert_eq!(run(schedule, parameters, &options), expected, "{threads} threads");
    }
    expected
}

/// A message of a random schedule: from, to, tag, bytes, true if the receive names its source and its tag, and the
/// duration of the calculations before send and receive.
type Message = (u32, u32, u32, u64, [bool; 2], [u64; 2]);

fn message(ranks: u32) -> impl Strategy<Value = Message> {
    let named = prop::array::uniform2(prop::bool::weighted(0.99));
    // Few different durations make many events simultaneous.
    let calc = prop::array::uniform2(prop::sample::select(vec![0u64, 0, 0, 1, 2, 3]));
    let bytes = prop::sample::select(vec![0u64, 1, 2, 5]);
    (0..ranks, 0..ranks, 0u32..3, bytes, named, calc)
}

/// Returns a schedule. No operation waits for a later one of the list, so it finishes if each receive gets its message.
fn schedule(ranks: u32, messages: &[Message], resources: &[(u8, u8)], waits: &[(usize, bool)]) -> Schedule {
    let mut builder = Builder::new(ranks);
    for rank in 0..ranks {
        builder.begin_rank(rank);
        let mut all: Vec<u32> = Vec::new();
        for (index, &(from, to, tag, bytes, [source_named, tag_named], calc)) in messages.iter().enumerate() {
            let mut ops = Vec::new();
            if rank == from {
                ops.extend([Action::Calc(calc[0]), Action::Send { bytes, to, tag, space: 0 }]);
            }
            if rank == to {
                let (from, tag) = (source_named.then_some(from), tag_named.then_some(tag));
                ops.extend([Action::Calc(calc[1]), Action::Recv { bytes, from, tag, space: 0 }]);
            }
            for (action, salt) in ops.into_iter().zip(0..) {
                let (cpu, nic) = resources[(index + salt) % resources.len()];
                let op = builder.add(action, cpu, nic).unwrap();
                let (back, on_start) = waits[(index * 3 + salt) % waits.len()];
                if back > 0 && back <= all.len() {
                    let wait = if on_start { Wait::Started } else { Wait::Done };
                    builder.depend(op, all[all.len() - back], wait);
                }
                all.push(op);
            }
        }
        builder.end_rank().unwrap();
    }
    builder.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_schedules_end_the_same(
        (ranks, messages) in (2u32..8).prop_flat_map(|ranks| {
            (Just(ranks), prop::collection::vec(message(ranks), 1..60))
        }),
        resources in prop::collection::vec((0u8..2, 0u8..2), 1..4),
        has_one_cpu: bool,
        waits in prop::collection::vec((0usize..4, any::<bool>()), 1..20),
        [l, o, g, big_g, big_o] in prop::array::uniform5(0u64..4),
        eager in prop::sample::select(vec![1u64, 9]),
        noise in prop::option::of(1u64..9),
    ) {
        let resources = if has_one_cpu { vec![(0, 0)] } else { resources };
        let schedule = schedule(ranks, &messages, &resources, &waits);
        let parameters = LogGops {
            latency: Time::from_ns(l),
            overhead: Time::from_ns(o),
            gap: Time::from_ns(g),
            gap_per_byte: TimePerByte::from_fs_per_byte(big_g * 1_000_000),
            overhead_per_byte: TimePerByte::from_fs_per_byte(big_o * 1_000_000),
            eager,
        };
        let detours = Detours::Poisson { interval: Time::from_ns(20), length: Time::from_ns(3) };
        let noise = noise.map(|seed| Noise { detours, seed, co_scheduled: false, ranks: None });
        let outcome = outcome(&schedule, &parameters, &Options { noise, ..Options::default() });
        // A receive may take the message that another one needs.
        prop_assume!(!matches!(outcome, Err(RunError::Deadlock(_))));
        let outcome = outcome.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(outcome.ends.len(), ranks as usize);
        prop_assert_eq!(outcome.events, (schedule.len() + messages.len()) as u64);
    }
}

#[test]
fn all_patterns_end_the_same() {
    for pattern in Pattern::ALL.into_iter().filter(|pattern| !pattern.needs_cards()) {
        for (ranks, bytes) in [(64, 8), (61, 1000), (2, 1), (1, 1)] {
            let schedule = generate(pattern, &Spec { ranks, bytes, iterations: 3, ..Spec::default() }).unwrap();
            let outcome = outcome(&schedule, &LogGops::default(), &Options::default());
            assert!(outcome.is_ok(), "{} {ranks}: {outcome:?}", pattern.name());
        }
    }
}

#[test]
fn what_needs_one_thread_says_why() {
    let why = |text: &str, parameters: &LogGops, options: Options| {
        let schedule = read(text.as_bytes()).unwrap();
        outcome(&schedule, parameters, &options).unwrap();
        one_thread(&schedule, parameters, &Options { threads: 2, ..options }).map(|why| why.to_string())
    };
    let pair = "num_ranks 2 rank 0 { send 70000b to 1 } rank 1 { recv 70000b from 0 }";
    let parameters = LogGops::default();
    let rendezvous = "rank 0, operation 1 (send 70000b to 1 tag 0) sends more than S bytes, and its match acts at once in \
                      another part of the ranks";
    assert_eq!(why(pair, &parameters, Options::default()).unwrap(), rendezvous);
    let eager = LogGops { eager: 70_000, ..LogGops::default() };
    assert_eq!(why(pair, &eager, Options::default()), None);
    // Within a part no operation has to wait.
    let four =
        "num_ranks 4 rank 0 { send 70000b to 1 } rank 1 { recv 70000b from 0 } rank 2 { calc 5 } rank 3 { calc 5 }";
    assert_eq!(why(four, &parameters, Options::default()), None);
    let timeless = LogGops { latency: Time::ZERO, overhead: Time::ZERO, ..eager.clone() };
    assert_eq!(why(pair, &timeless, Options::default()).unwrap(), "o + L is 0");
    let record = Options { record: true, ..Options::default() };
    assert_eq!(why(pair, &eager, record).unwrap(), OneThread::Record.to_string());
    let cpus = "num_ranks 2 rank 0 { calc 5 cpu 1 send 1b to 1 } rank 1 { recv 1b from 0 }";
    let past = Options { ignore_other_cpus: true, ..Options::default() };
    assert_eq!(why(cpus, &eager, past).unwrap(), OneThread::Past.to_string());
}

#[test]
fn what_fails_fails_as_in_one_thread() {
    let stuck =
        "num_ranks 3 rank 0 { recv 8b from 2 tag 3 } rank 1 { send 8b to 2 } rank 2 { recv 8b from 1 tag 0 calc 5 }";
    let error = outcome(&read(stuck.as_bytes()).unwrap(), &LogGops::default(), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("rank 0 waits for a message of operation 1 (recv 8b from 2 tag 3)"), "{error}");
    let late = "num_ranks 2 rank 0 { calc 18446744073709551 calc 18446744073709551 } rank 1 { calc 1 }";
    let error = outcome(&read(late.as_bytes()).unwrap(), &LogGops::default(), &Options::default()).unwrap_err();
    assert!(matches!(error, RunError::TooLate { .. }), "{error}");
    let lost = "num_ranks 2 rank 0 { send 1b to 1 send 2b to 1 } rank 1 { send 3b to 0 }";
    let outcome = outcome(&read(lost.as_bytes()).unwrap(), &LogGops::default(), &Options::default()).unwrap();
    assert_eq!(outcome.unreceived, [0, 1, 2]);
}

// SPDX-License-Identifier: Apache-2.0
//! Tests of patterns: message counts, bytes and end times.

use super::*;
use crate::loggops::{LogGops, Options, run};
use crate::op::Action;

/// Returns the number of messages, their bytes, and the end in nanoseconds with LogGOPSim's parameters.
fn outcome(pattern: Pattern, spec: &Spec) -> (u64, u64, u64) {
    let schedule = generate(pattern, spec).unwrap();
    let sizes: Vec<u64> = (0..schedule.len() as u32)
        .filter_map(|op| if let Action::Send { bytes, .. } = schedule.action(op) { Some(bytes) } else { None })
        .collect();
    let outcome = run(&schedule, &LogGops::default(), &Options::default())
        .unwrap_or_else(|error| panic!("{} {spec:?}: {error}", pattern.name()));
    assert_eq!(outcome.unreceived, [], "{} {spec:?}", pattern.name());
    (sizes.len() as u64, sizes.iter().sum(), outcome.end().as_ps() / 1000)
}

fn spec(ranks: u32, bytes: u64) -> Spec {
    Spec { ranks, bytes, ..Spec::default() }
}

#[test]
fn all_finish_with_any_number_of_ranks_and_the_right_traffic() {
    for ranks in 1..=18 {
        for (bytes, root, calc_ns) in [(1, 0, 0), (1000, ranks - 1, 10), (100_000, ranks / 2, 0)] {
            let spec =
                Spec { root, calc_ns, segment: 300, radix: 3, periodic: true, iterations: 5, ..spec(ranks, bytes) };
            let (n, log) = (u64::from(ranks), u64::from(ranks.next_power_of_two().trailing_zeros()));
            let extra = n - (1 << ranks.ilog2());
            for pattern in Pattern::ALL.into_iter().filter(|pattern| !pattern.needs_cards()) {
                let (messages, sum, _) = outcome(pattern, &spec);
                let expected = match pattern {
                    Pattern::Bcast | Pattern::BcastKnomial | Pattern::Reduce | Pattern::Gather | Pattern::Scatter => {
                        Some((n - 1, (n - 1) * bytes))
                    }
                    Pattern::BcastPipeline => Some(((n - 1) * bytes.div_ceil(300), (n - 1) * bytes)),
                    Pattern::BcastDoubleTree => {
                        let half = bytes.div_ceil(2);
                        let segments = half.div_ceil(300) + (bytes - half).div_ceil(300).max(1);
                        Some(((n - 1) * segments, (n - 1) * bytes))
                    }
                    Pattern::AllreduceRing => Some((2 * n * (n - 1), 2 * (n - 1) * bytes)),
                    Pattern::AllreduceRecursiveDoubling => {
                        let messages = (n - extra) * u64::from(ranks.ilog2()) + 2 * extra;
                        Some((messages, messages * bytes))
                    }
                    Pattern::AllreduceRabenseifner => {
                        // Each exchange of both halves moves the vector once for each group of partners.
                        let power = n - extra;
                        Some((
                            2 * power * u64::from(ranks.ilog2()) + 2 * extra,
                            2 * (power - 1) * bytes + 2 * extra * bytes,
                        ))
                    }
                    Pattern::GatherBinomial | Pattern::ScatterBinomial => {
                        // The number of edges that each part crosses is the number of set bits of its relative rank.
                        let edges: u64 = (0..ranks).map(|rank| u64::from(rank.count_ones())).sum();
                        Some((n - 1, edges * bytes))
                    }
                    Pattern::AllgatherRing => Some((n * (n - 1), n * (n - 1) * bytes)),
                    Pattern::AllgatherBruck => Some((n * log, n * (n - 1) * bytes)),
                    Pattern::ReduceScatterRing => Some((n * (n - 1), (n - 1) * bytes)),
                    Pattern::Dissemination => Some((n * log, n * log * bytes)),
                    Pattern::Alltoall | Pattern::AlltoallPairwise => Some((n * (n - 1), n * (n - 1) * bytes)),
                    Pattern::Scan => {
                        let messages = (0..log).map(|bit| n - (1 << bit)).sum::<u64>();
                        Some((messages, messages * bytes))
                    }
                    _ => None,
                };
                if let Some(expected) = expected {
                    assert_eq!((messages, sum), expected, "{} {spec:?}", pattern.name());
                }
            }
        }
    }
}

/// Compares with the end times of LogGOPSim for the same patterns (parameters A of the golden rows).
#[test]
fn patterns_take_as_long_as_those_of_the_ancestor() {
    for (pattern, ranks, bytes, end) in [
        (Pattern::Bcast, 8, 1024, 34_914),
        (Pattern::Bcast, 16, 1, 22_000),
        (Pattern::Reduce, 8, 1_048_576, 18_890_850),
        (Pattern::Dissemination, 11, 64, 23_512),
        (Pattern::Alltoall, 8, 1024, 81_466),
        (Pattern::AllreduceRabenseifner, 8, 1024, 43_716),
        (Pattern::AllreduceRing, 8, 8, 77_000),
        (Pattern::Gather, 8, 1024, 57_466),
        (Pattern::Scatter, 8, 1_048_576, 44_051_650),
    ] {
        assert_eq!(outcome(pattern, &spec(ranks, bytes)).2, end, "{} {ranks} {bytes}", pattern.name());
    }
}

/// Time of one message each way: o + L + o + (s-1)G.
#[test]
fn closed_forms() {
    let hop = |bytes: u64| 1500 + 2500 + 1500 + (bytes - 1) * 6;
    assert_eq!(outcome(Pattern::BcastPipeline, &spec(9, 100)).2, 8 * hop(100));
    // In each exchange, the send's o overlaps with nothing, as the partner's CPU is busy too.
    assert_eq!(outcome(Pattern::AllreduceRecursiveDoubling, &spec(16, 64)).2, 4 * hop(64));
    assert_eq!(outcome(Pattern::Scan, &spec(2, 64)).2, hop(64));
    // A wavefront crosses a grid of 4 x 3 ranks in 3 + 2 hops and 6 computations.
    let wave = Spec { dims: vec![4, 3], calc_ns: 10_000, ..spec(12, 1) };
    let (messages, _, end) = outcome(Pattern::Sweep, &wave);
    assert_eq!(messages, 3 * 3 + 4 * 2);
    assert!((6 * 10_000 + 5 * hop(1)..6 * 10_000 + 5 * (hop(1) + 3000)).contains(&end), "{end}");
    let halo = Spec { dims: vec![3, 3, 3, 2], periodic: true, iterations: 2, ..spec(54, 8) };
    assert_eq!(outcome(Pattern::Halo, &halo).0, 2 * 54 * 8);
    // In each step, messages take o + L + o. The independent computation overlaps with them; the rest follows.
    let hidden = Spec { dims: vec![2], overlap_ns: 50_000, calc_ns: 7_000, iterations: 3, ..spec(2, 1) };
    assert_eq!(outcome(Pattern::Halo, &hidden).2, 3 * (1_500 + 50_000 + 1_500 + 7_000));
    // Posting takes no time in this model, so the end is unchanged.
    let early = Spec { early_receives: true, ..hidden };
    assert_eq!(outcome(Pattern::Halo, &early).2, 3 * (1_500 + 50_000 + 1_500 + 7_000));
    let halo = Spec { dims: vec![4, 5], iterations: 1, ..spec(20, 8) };
    assert_eq!(outcome(Pattern::Halo, &halo).0, 2 * (3 * 5 + 4 * 4));
}

#[test]
fn specs_that_make_no_sense() {
    for (pattern, spec, error) in [
        (Pattern::Bcast, spec(0, 1), "the number of ranks is from 1 to 1073741824, not 0"),
        (Pattern::Bcast, Spec { root: 4, ..spec(4, 1) }, "root 4 does not exist: there are 4 ranks, numbered from 0"),
        (Pattern::BcastKnomial, Spec { radix: 1, ..spec(4, 1) }, "the radix of a k-nomial tree is at least 2, not 1"),
        (Pattern::Halo, Spec { dims: vec![2, 3], ..spec(4, 1) }, "a grid of [2, 3] is 6 ranks, not 4"),
        (Pattern::Sweep, Spec { dims: vec![4], ..spec(4, 1) }, "sweep takes 2 dimensions, not 1"),
        (Pattern::Bcast, spec(4, u64::MAX), "the size is too large: at most 4611686018427387904"),
    ] {
        assert_eq!(generate(pattern, &spec).unwrap_err().to_string(), error);
    }
}

#[test]
fn the_number_of_operations_is_known_before_they_are_made() {
    for ranks in 1..=18 {
        for (calc_ns, segment, overlap_ns, periodic) in [(0, 0, 0, false), (0, 300, 5, true), (10, 300, 5, true)] {
            let spec = Spec { calc_ns, segment, overlap_ns, periodic, radix: 3, iterations: 3, ..spec(ranks, 1000) };
            for pattern in Pattern::ALL {
                let (_, dims) = prepare(pattern, &spec).unwrap();
                let expected = size::operations(pattern, &spec, &dims);
                let found = generate(pattern, &spec).unwrap().len() as u128;
                match calc_ns {
                    0 => assert_eq!(expected, found, "{} {spec:?}", pattern.name()),
                    // At most one calculation for each receive, or for each test of a counter.
                    _ => assert!((expected..=expected * 2).contains(&found), "{} {spec:?}", pattern.name()),
                }
            }
        }
    }
}

/// Neither schedule would fit into memory; both are refused at once.
#[test]
fn a_pattern_that_is_too_large_is_refused_before_it_is_made() {
    let error = generate(Pattern::Alltoall, &spec(1_000_000, 1)).unwrap_err();
    let expected = "alltoall with 1000000 ranks has 1999998000000 operations; a schedule has at most 1073741824";
    assert_eq!(error.to_string(), expected);
    let long = Spec { segment: 1, ..spec(3, 1 << 40) };
    let error = generate(Pattern::BcastPipeline, &long).unwrap_err();
    assert!(matches!(error, SpecError::TooManyOperations { operations: 4_398_046_511_104, .. }), "{error}");
}

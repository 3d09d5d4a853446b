// SPDX-License-Identifier: Apache-2.0
//! Tests the generator of training steps against counts worked out by hand.

use std::collections::BTreeMap;

use goal::loggops::{LogGops, Options, run};
use goal::{Action, Schedule};
use sim::Time;
use workload::llm::Llm;

/// Returns the messages and bytes in each matching space, and the computation of each rank in ns.
fn totals(schedule: &Schedule) -> (BTreeMap<u16, (u64, u64)>, Vec<u64>) {
    let (mut spaces, mut compute) = (BTreeMap::new(), vec![0; schedule.ranks() as usize]);
    for op in 0..schedule.len() as u32 {
        match schedule.action(op) {
            Action::Send { bytes, space, .. } => {
                let sums: &mut (u64, u64) = spaces.entry(space).or_default();
                *sums = (sums.0 + 1, sums.1 + bytes);
            }
            Action::Calc(ns) => compute[schedule.rank(op) as usize] += ns,
            _ => {}
        }
    }
    (spaces, compute)
}

fn model() -> Llm {
    Llm {
        data: 2,
        tensor: 4,
        pipeline: 2,
        layers: 6,
        hidden: 64,
        sequence: 32,
        micro_batches: 3,
        vocabulary: 1024,
        operations_per_ns: 1.0,
        ..Llm::default()
    }
}

#[test]
fn messages_and_computation_are_those_of_the_formulas() {
    let schedule = model().generate().unwrap();
    assert_eq!(schedule.ranks(), 16);
    let (spaces, compute) = totals(&schedule);
    let activations = 32 * 64 * 2;
    // Between stages: eight pairs, three micro-batches, two directions; each carries its part of the activations.
    assert_eq!(spaces[&0], (8 * 3 * 2, 8 * 3 * 2 * activations / 4));
    // Among four tensor-parallel ranks: two all-reduces in each direction of three layers and three micro-batches.
    let rings = 3 * 3 * 4;
    assert_eq!(spaces[&1], (rings * 16 * 6, rings * 4 * 6 * activations));
    // Gradients: a ring of two for each of three layers, and on both stages one for the embedding.
    let layer = 12 * 64 * 64 * 2 / 4;
    let embedding = 1024 * 64 * 2 / 4;
    assert_eq!(spaces[&2], (16 * 4 * 2, 8 * 2 * (3 * layer + embedding)));
    assert_eq!(spaces.len(), 3);
    let attention = (8 * 32 * 64 * 64 + 4 * 32 * 32 * 64) / 4;
    let mlp = 16 * 32 * 64 * 64 / 4;
    let logits = 2 * 32 * 64 * 1024 / 4;
    let stage = 3 * 3 * 3 * (attention + mlp);
    assert_eq!((compute[0], compute[15]), (stage, stage + 3 * 3 * logits));
    let outcome = run(&schedule, &LogGops::default(), &Options::default()).unwrap();
    assert!(outcome.unreceived.is_empty());
}

/// With a free network a step takes (micro-batches + stages - 1) times the computation of a micro-batch on a stage
/// (Narayanan et al., §2.2.1). The logits would make the last stage slower, so they are negligible here.
#[test]
fn the_pipeline_has_the_bubble_of_its_schedule() {
    let free = LogGops {
        latency: Default::default(),
        overhead: Default::default(),
        gap: Default::default(),
        gap_per_byte: Default::default(),
        overhead_per_byte: Default::default(),
        eager: u64::MAX,
    };
    let model = Llm { data: 1, tensor: 1, pipeline: 3, layers: 3, micro_batches: 5, vocabulary: 1, ..model() };
    let schedule = model.generate().unwrap();
    let (_, compute) = totals(&schedule);
    let batch = compute[0] / 5;
    let end = run(&schedule, &free, &Options::default()).unwrap().end();
    let (expected, found) = ((5 + 3 - 1) * batch, end.as_ps() / 1000);
    assert!(found >= expected && found < expected + expected / 100, "{found} ns instead of {expected}");
}

#[test]
fn experts_exchange_tokens_and_reduce_their_gradients_apart() {
    let model = Llm { data: 4, tensor: 1, pipeline: 1, expert: 2, layers: 1, experts: 4, top_k: 2, ..model() };
    let schedule = model.generate().unwrap();
    let (spaces, _) = totals(&schedule);
    let activations = 32 * 64 * 2;
    // Pairs exchange half of their tokens, each for two experts: twice in each direction of three micro-batches.
    assert_eq!(spaces[&3], (4 * 4 * 3, 4 * 4 * 3 * activations * 2 / 2));
    // Two of four experts on a rank; two copies of each.
    assert_eq!(spaces[&4], (4 * 2, 2 * 2 * 8 * 64 * 64 * 2 * 2));
    // Ring of four: attention, and the embedding.
    assert_eq!(spaces[&2], (2 * 4 * 6, 6 * (4 * 64 * 64 * 2 + 1024 * 64 * 2)));
    assert!(run(&schedule, &LogGops::default(), &Options::default()).unwrap().unreceived.is_empty());
}

/// All-reduce of gradients among eight copies, in a layer and the embedding.
fn copies(collectives: &str) -> Llm {
    let collectives = collectives.parse().unwrap();
    Llm { data: 8, tensor: 1, pipeline: 1, layers: 1, micro_batches: 1, collectives, ..model() }
}

#[test]
fn switches_are_ranks_that_add_the_vectors_of_all_copies() {
    let (layer, embedding): (u64, u64) = (12 * 64 * 64 * 2, 1024 * 64 * 2);
    let schedule = copies("allreduce=switch,tree=2x2,chunk=10000").generate().unwrap();
    // Four switches of two ranks, two of two switches, and the root.
    assert_eq!(schedule.ranks(), 8 + 4 + 2 + 1);
    let (spaces, compute) = totals(&schedule);
    // Each of 14 links of the tree carries each chunk up and down.
    let chunks = layer.div_ceil(10_000) + embedding.div_ceil(10_000);
    assert_eq!(spaces.into_values().collect::<Vec<_>>(), [(28 * chunks, 28 * (layer + embedding))]);
    assert!(compute[8..].iter().all(|ns| *ns == 0));
    assert!(run(&schedule, &LogGops::default(), &Options::default()).unwrap().unreceived.is_empty());
}

#[test]
fn channels_use_the_switches_of_different_planes() {
    let schedule = copies("allreduce=switch,tree=4,planes=4,channels=2").generate().unwrap();
    assert_eq!(schedule.ranks(), 8 + 4 * 2 + 4);
    // Two planes are in use: the first channel has the switches 8, 12 and 16, the second the following ones.
    let busy: Vec<u32> =
        (8..20).filter(|rank| (0..schedule.len() as u32).any(|op| schedule.rank(op) == *rank)).collect();
    assert_eq!(busy, [8, 9, 12, 13, 16, 17]);
    assert_eq!(totals(&schedule).0.len(), 2);
    assert!(run(&schedule, &LogGops::default(), &Options::default()).unwrap().unreceived.is_empty());
}

/// Two groups with the same switches have the same tags; each switch must combine the vectors of one group only.
#[test]
fn groups_in_one_plane_are_kept_apart() {
    let model = Llm { tensor: 2, ..copies("allreduce=switch,tree=4") };
    let schedule = model.generate().unwrap();
    // Eight pairs of tensor-parallel ranks, and two groups of copies.
    assert_eq!(totals(&schedule).0.len(), 8 + 2);
    assert!(run(&schedule, &LogGops::default(), &Options::default()).unwrap().unreceived.is_empty());
}

/// If only latency counts, the parts of a card take as long as the whole: two times seven steps around the ring. Rounds of
/// hosts follow each other: 16, the most, for the embedding of 128 KiB.
#[test]
fn chunks_of_cards_overlap() {
    let latency = Time::from_ns(2500);
    let network = LogGops {
        latency,
        overhead: Time::ZERO,
        gap: Time::ZERO,
        gap_per_byte: Default::default(),
        overhead_per_byte: Default::default(),
        eager: u64::MAX,
    };
    let of = |collectives: &str| {
        let schedule = copies(collectives).generate().unwrap();
        let (spaces, _) = totals(&schedule);
        (spaces[&2], run(&schedule, &network, &Options::default()).unwrap().end())
    };
    let whole = of("allreduce=hierarchical,node=1");
    let rounds = of("allreduce=hierarchical,node=1,chunk=1000");
    let overlapping = of("allreduce=card,node=1,chunk=1000");
    assert_eq!((whole.0.1, whole.1), (overlapping.0.1, overlapping.1));
    // 13 parts of the layer and 17 of the embedding.
    assert_eq!(overlapping.0.0, 30 * 8 * 14);
    assert_eq!(rounds.1, whole.1 + latency * (15 * 14));
}

#[test]
fn impossible_shapes_are_named() {
    for (model, error) in [
        (Llm { pipeline: 4, ..model() }, "--layers 6 is not divisible by --pp 4"),
        (Llm { expert: 3, ..model() }, "--dp 2 is not divisible by --ep 3"),
        (Llm { hidden: 0, ..model() }, "--hidden is at least 1"),
        (Llm { top_k: 2, ..model() }, "--top-k 2 is more than --experts 1"),
        (Llm { operations_per_ns: f64::NAN, ..model() }, "--tflops is above 0"),
        (Llm { data: 1 << 20, tensor: 1 << 10, pipeline: 2, ..model() }, "2147483648 ranks: at most 1073741824"),
    ] {
        assert_eq!(model.generate().unwrap_err().to_string(), error);
    }
}

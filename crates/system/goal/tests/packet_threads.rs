// SPDX-License-Identifier: Apache-2.0
//! Tests that the packet model gives the same outcome, spans and errors in several threads as in one.

#[path = "support/sc17.rs"]
mod sc17;

use std::sync::Arc;

use goal::Schedule;
use goal::generate::{Pattern, Spec, generate};
use goal::packet::{OneThread, Outcome, Parameters, RunError, Window, count, hosts, one_thread, packets, record, run};
use goal::text::read;
use net::fabric::{Flow, RateControl, Routing, Transport};
use net::{Dragonfly, Topology};
use proptest::prelude::*;
use sim::Time;
use sim::noise::{Detours, Noise};

const THREADS: [usize; 3] = [2, 3, 8];

/// Returns the parameters of the other tests, with buffers that fill.
fn sc17() -> Parameters {
    let mut parameters = sc17::sc17();
    parameters.network.buffer = 8192;
    parameters
}

/// Returns the outcome of one thread with all spans, after checking that several threads give the same.
fn outcome(schedule: &Schedule, topology: &Arc<Topology>, parameters: &Parameters) -> Result<Outcome, RunError> {
    let all = || Window { ranks: 0..=u32::MAX, from: Time::ZERO, to: Time::MAX };
    let run = |threads: usize| {
        let parameters = Parameters { threads, ..parameters.clone() };
        record(schedule, Arc::clone(topology), &parameters, all())
    };
    let expected = run(1);
    for threads in THREADS {
        let found = run(threads);
        if let (Ok(found), Ok(expected)) = (&found, &expected) {
            // The first difference is easier to read than two outcomes.
            assert_eq!(found.ends, expected.ends, "{threads} threads, {}", topology.description());
            assert_eq!(found.details.network, expected.details.network, "{threads} threads");
            let differs =
                found.details.spans.iter().zip(&expected.details.spans).find(|(found, expected)| found != expected);
            assert_eq!(differs, None, "{threads} threads");
        }
        assert!(found == expected, "{threads} threads, {}", topology.description());
    }
    expected
}

fn topologies() -> Vec<Arc<Topology>> {
    let rows = (0..8).map(|switch| {
        let hosts: String = (0..3).map(|host| format!("h{} -- s{switch} ", 3 * switch + host)).collect();
        format!(
            "{hosts} s{switch} -- s{} [capacity=200, latency=20] s{switch} -- s{}",
            (switch + 1) % 8,
            (switch + 3) % 8
        )
    });
    let dot = format!("graph {{ edge [latency=10] {} }}", rows.collect::<Vec<_>>().join("\n"));
    let all = [
        Topology::fat_tree(4, 1, 24),
        Topology::fat_tree(8, 3, 24),
        Topology::fat_tree(4, 1, 60),
        Topology::torus(&[4, 3, 2], 1),
        Topology::torus(&[6, 2], 2),
        Topology::dragonfly(Dragonfly { hosts: 2, routers: 4, global: 2, groups: 9 }),
        Topology::dragonfly(Dragonfly { hosts: 1, routers: 3, global: 3, groups: 10 }),
        Topology::from_dot(&dot),
    ];
    all.map(|topology| Arc::new(topology.unwrap())).into()
}

/// Returns all flow controls with their options, except trimming.
fn networks() -> Vec<net::fabric::Parameters> {
    let usual = || Transport::USUAL;
    let acked = || Transport { ack: 64, ..usual() };
    let dcqcn = || {
        let mut transport = Transport { ack: 64, rate_control: RateControl::Dcqcn, ..usual() };
        (transport.dcqcn.mark_from, transport.dcqcn.mark_all) = (4096, 5 * 4096);
        transport
    };
    let mut all = Vec::new();
    for routing in [Routing::Ecmp, Routing::Adaptive] {
        for (flow, buffer, transport) in [
            (Flow::Credits, 4096, usual()),
            (Flow::Credits, 16_384, acked()),
            (Flow::Drop, 8192, usual()),
            (Flow::Drop, 8192, acked()),
            (Flow::Pfc, 16_384, usual()),
            (Flow::Pfc, 16_384, acked()),
            (Flow::Pfc, 65_536, dcqcn()),
            (Flow::Drop, 65_536, dcqcn()),
        ] {
            all.push(net::fabric::Parameters { flow, routing, buffer, transport, ..sc17().network });
        }
    }
    all
}

fn pattern(name: &str, ranks: u32, bytes: u64) -> Schedule {
    let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.name() == name).unwrap();
    generate(pattern, &Spec { ranks, bytes, iterations: 2, ..Spec::default() }).unwrap()
}

#[test]
fn every_network_ends_the_same() {
    let (mut drops, mut acks, mut pauses, mut marks) = (0, 0, 0, 0);
    // Messages of several packets, some with rendezvous.
    let schedules = [(pattern("alltoall", 24, 9000), 65_535), (pattern("alltoall", 21, 6000), 5000)];
    for (place, topology) in topologies().iter().enumerate() {
        for (number, network) in networks().into_iter().enumerate() {
            let (schedule, eager) = &schedules[(place + number) % 2];
            let parameters = Parameters { network, eager: *eager, ..sc17() };
            let report = outcome(schedule, topology, &parameters).unwrap().details.network;
            drops += report.drops;
            acks += report.answers.acknowledgements;
            pauses += report.answers.pauses;
            marks += report.answers.marked;
        }
    }
    // All mechanisms were at work.
    assert!(drops > 1000 && acks > 10_000 && pauses > 1000 && marks > 1000, "{drops} {acks} {pauses} {marks}");
}

#[test]
fn all_patterns_end_the_same() {
    for pattern in Pattern::ALL.into_iter().filter(|pattern| !pattern.needs_cards()) {
        for (ranks, bytes) in [(16, 8), (24, 70_000)] {
            let schedule = generate(pattern, &Spec { ranks, bytes, iterations: 3, ..Spec::default() }).unwrap();
            for topology in [Topology::fat_tree(4, 1, 24), Topology::torus(&[4, 3, 2], 1)] {
                outcome(&schedule, &Arc::new(topology.unwrap()), &sc17()).unwrap();
            }
        }
    }
}

#[test]
fn several_cpus_nics_and_noise_end_the_same() {
    let detours = Detours::Poisson { interval: Time::from_ns(2000), length: Time::from_ns(300) };
    let noise = Some(Noise { detours, seed: 5, co_scheduled: false, ranks: None });
    let body = |rank: u32| {
        let messages = (0..12).map(|number| {
            let (to, from) = ((rank + number + 1) % 12, (rank + 11 - number) % 12);
            let (cpu, nic) = (number % 2, number % 3 % 2);
            format!(
                "send {}b to {to} tag {number} cpu {cpu} nic {nic} c{number}: calc {} \
                 r{number}: recv {}b from {from} tag {number} nic {nic} r{number} requires c{number}\n",
                9000 * (number % 3) + 1,
                100 * number,
                9000 * (number % 3) + 1
            )
        });
        format!("rank {rank} {{ {} }}\n", messages.collect::<String>())
    };
    let text = format!("num_ranks 12\n{}", (0..12).map(body).collect::<String>());
    let schedule = read(text.as_bytes()).unwrap();
    assert_eq!(hosts(&schedule).unwrap(), 24);
    for topology in topologies() {
        for eager in [5000, 65_535] {
            let parameters = Parameters { noise: noise.clone(), eager, ..sc17() };
            outcome(&schedule, &topology, &parameters).unwrap();
        }
    }
}

#[test]
fn what_needs_one_thread_says_why() {
    let schedule = pattern("alltoall", 16, 5000);
    let why = |topology: Topology, change: &dyn Fn(&mut Parameters)| {
        let mut parameters = sc17();
        change(&mut parameters);
        let topology = Arc::new(topology);
        outcome(&schedule, &topology, &parameters).unwrap();
        one_thread(&schedule, &topology, &Parameters { threads: 2, ..parameters })
    };
    let tree = || Topology::fat_tree(4, 1, 16).unwrap();
    assert_eq!(why(tree(), &|_| {}), None);
    assert_eq!(why(tree(), &|all| all.network.flow = Flow::Trim), Some(OneThread::Trim));
    assert_eq!(why(tree(), &|all| all.network.wire = Time::ZERO), Some(OneThread::NoLatency));
    let reason = why(Topology::single_switch(16).unwrap(), &|_| {}).unwrap().to_string();
    assert_eq!(reason, "the network cannot be divided: single switch");
    assert_eq!(packets(&schedule, 4096), 16 * 15 * 2);
}

#[test]
fn what_fails_fails_as_in_one_thread() {
    let tree = Arc::new(Topology::fat_tree(4, 1, 8).unwrap());
    let text = |bodies: &[(u32, &str)]| {
        let bodies = (0..8).map(|rank| {
            let body = bodies.iter().find(|(of, _)| *of == rank).map_or("", |(_, body)| body);
            format!("rank {rank} {{ {body} }}\n")
        });
        read(format!("num_ranks 8\n{}", bodies.collect::<String>()).as_bytes()).unwrap()
    };
    let stuck = text(&[(0, "recv 8b from 7 tag 3"), (1, "send 8b to 6"), (6, "recv 8b from 1 calc 5")]);
    let error = outcome(&stuck, &tree, &sc17()).unwrap_err().to_string();
    assert!(error.contains("rank 0 waits for a message of operation 1 (recv 8b from 7 tag 3)"), "{error}");
    let late = text(&[(0, "a: calc 9000000000000000 b: calc 9000000000000000 b requires a"), (7, "calc 1")]);
    let error = outcome(&late, &tree, &sc17()).unwrap_err();
    assert!(matches!(error, RunError::TooLate { .. }), "{error}");
    let lost = text(&[(0, "send 1b to 7 send 2b to 7"), (7, "send 3b to 0")]);
    assert_eq!(outcome(&lost, &tree, &sc17()).unwrap().unreceived, [0, 1, 2]);
}

#[test]
fn events_are_counted_by_window_and_part() {
    let schedule = pattern("dissemination", 60, 8);
    let topology = Arc::new(Topology::fat_tree(4, 1, 60).unwrap());
    let of = |threads| count(&schedule, Arc::clone(&topology), &Parameters { threads, ..sc17() }).unwrap();
    let (alone, counts) = of(1);
    assert_eq!((counts.parts, counts.events), (0, 0));
    let (outcome, two) = of(2);
    assert_eq!(outcome, alone);
    let (_, eight) = of(8);
    // The windows depend on the links that connect the parts, which have the same latency.
    assert_eq!((two.parts, eight.parts, two.windows, two.events), (2, 8, eight.windows, eight.events));
    // Each hop is an event, and each part has at least the mean.
    assert!(two.events > alone.details.network.packet_hops, "{two:?}");
    assert!(two.critical * 2 >= two.events && two.critical < two.events * 3 / 5, "{two:?}");
    assert!(eight.critical * 8 >= eight.events && eight.critical < two.critical / 2, "{eight:?}");
    assert!(eight.parcels > two.parcels && two.parcels > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_traffic_ends_the_same(
        messages in prop::collection::vec((0u32..24, 0u32..24, prop::sample::select(vec![0u64, 1, 64, 4096, 4097, 20_000])), 1..80),
        topology in 0usize..8,
        network in 0usize..16,
        seed in 0u64..4,
        is_eager: bool,
    ) {
        let body = |rank: u32| {
            let ops = (0u32..).zip(&messages).flat_map(|(tag, &(from, to, bytes))| {
                let send = (from == rank).then(|| format!("send {bytes}b to {to} tag {tag} "));
                let receive = (to == rank).then(|| format!("recv {bytes}b from {from} tag {tag} "));
                [send, receive].into_iter().flatten()
            });
            format!("rank {rank} {{ {} }}\n", ops.collect::<String>())
        };
        let text = format!("num_ranks 24\n{}", (0..24).map(body).collect::<String>());
        let mut parameters = Parameters { network: networks().swap_remove(network), ..sc17() };
        parameters.network.seed = seed;
        parameters.eager = if is_eager { u64::MAX } else { 4096 };
        let outcome = outcome(&read(text.as_bytes()).unwrap(), &topologies()[topology], &parameters);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}

#[test]
fn a_run_without_spans_ends_the_same() {
    let schedule = pattern("alltoall", 24, 9000);
    let topology = Arc::new(Topology::fat_tree(4, 1, 24).unwrap());
    let of = |threads| run(&schedule, Arc::clone(&topology), &Parameters { threads, ..sc17() }).unwrap();
    assert_eq!(of(1), of(4));
}

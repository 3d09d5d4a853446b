// SPDX-License-Identifier: Apache-2.0
//! Tests schedules in the packet model: end times computed by hand, comparison with LogGOPS, and all golden schedules.

#[path = "support/sc17.rs"]
mod sc17;
mod support;

use std::fs;
use std::path::PathBuf;

use goal::generate::{Pattern, Spec, generate};
use goal::loggops::{self, LogGops};
use goal::packet::{Details, Outcome, Parameters, Phase, RunError, Window, record, run};
use goal::text::read;
use goal::{Schedule, packet};
use net::Topology;
use net::fabric::{Flow, RateControl, Routing, Transport};
use sc17::sc17;
use sim::noise::{Detours, Noise};
use sim::{Time, TimePerByte};
use support::schedule;

const NS: u64 = 1000;

/// Latency of a path through one switch.
const L: u64 = 50_000 + 2 * 33_400;

fn on_one_switch(schedule: &Schedule, parameters: &Parameters) -> Outcome {
    let topology = Topology::single_switch(packet::hosts(schedule).unwrap()).unwrap();
    let outcome = run(schedule, topology, parameters).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.unreceived, []);
    outcome
}

/// Returns the ends in picoseconds.
fn ends(parameters: &Parameters, bodies: &[&str]) -> Vec<u64> {
    on_one_switch(&schedule(bodies), parameters).ends.iter().map(|end| end.as_ps()).collect()
}

#[test]
fn an_eager_message_ends_one_byte_later_than_in_loggops() {
    let parameters = sc17();
    let same = |bytes: u64| LogGops {
        latency: Time::from_ps(L),
        overhead: parameters.overhead,
        gap: parameters.network.gap,
        gap_per_byte: parameters.network.gap_per_byte,
        overhead_per_byte: TimePerByte::INFINITE,
        eager: bytes,
    };
    for bytes in [1, 8, 4096, 4097, 65_535] {
        let all = schedule(&[&format!("send {bytes}b to 1"), &format!("recv {bytes}b from 0")]);
        let outcome = on_one_switch(&all, &parameters);
        let by_hand = 2 * 65 * NS + L + bytes * 20;
        assert_eq!(outcome.ends, [Time::from_ns(65), Time::from_ps(by_hand)], "{bytes}");
        let loggops = loggops::run(&all, &same(bytes), &Default::default()).unwrap();
        assert_eq!(outcome.end(), loggops.end() + Time::from_ps(20), "{bytes}");
        // Each packet crosses two links.
        assert_eq!(outcome.details.network.packet_hops, 2 * bytes.div_ceil(4096));
    }
    // In a chain of five messages, each takes one G longer.
    let hop = |rank: u32| format!("a: recv 100b from {} b: send 100b to {} b requires a", rank - 1, rank + 1);
    let bodies = ["send 100b to 1".into(), hop(1), hop(2), hop(3), hop(4), "recv 100b from 4".to_owned()];
    let all = schedule(&bodies.each_ref().map(String::as_str));
    let loggops = loggops::run(&all, &same(100), &Default::default()).unwrap();
    assert_eq!(on_one_switch(&all, &parameters).end(), loggops.end() + Time::from_ps(5 * 20));
}

#[test]
fn overhead_a_byte_is_paid_on_both_sides() {
    let parameters = Parameters { overhead_per_byte: TimePerByte::from_fs_per_byte(1_000_000), ..sc17() };
    let bodies = ["send 1001b to 1", "recv 1001b from 0"];
    // The card gets the message o after the send starts.
    let arrival = 65 * NS + 1001 * 20 + L;
    assert_eq!(ends(&parameters, &bodies), [65 * NS + 1000 * NS, arrival + 65 * NS + 1000 * NS]);
}

#[test]
fn a_rendezvous_asks_first() {
    let parameters = sc17();
    let bytes = 100_000;
    // Request and answer are packets without payload, which take the time of a byte. The receiver's CPU receives the
    // request.
    let asked = 65 * NS + 20 + L + 65 * NS;
    let clear = asked + 20 + L;
    let left = clear + bytes * 20;
    assert_eq!(ends(&parameters, &["send 100000b to 1", "recv 100000b from 0"]), [left, left + L + 65 * NS]);
    assert_eq!(left + L + 65 * NS, 3 * 65 * NS + 3 * L + (bytes + 2) * 20);
    // Dependents of the send wait until its data has left; other operations of the CPU do not.
    let bodies = ["a: send 100000b to 1 calc 1000 b: calc 7 b requires a", "recv 100000b from 0"];
    assert_eq!(ends(&parameters, &bodies)[0], left + 7 * NS);
    // A late receive finds the request.
    let bodies = ["send 100000b to 1", "a: calc 5000 b: recv 100000b from 0 b requires a"];
    // The CPU receives the request after the calculation, and then posts the receive.
    let clear = 5_000 * NS + 65 * NS + 20 + L;
    assert_eq!(ends(&parameters, &bodies)[1], clear + bytes * 20 + L + 65 * NS);
}

#[test]
fn a_message_to_oneself_meets_no_wire() {
    assert_eq!(ends(&sc17(), &["send 1000b to 0 recv 1000b from 0"]), [2 * 65 * NS + 1000 * 20]);
    let outcome = on_one_switch(&schedule(&["send 100000b to 0 recv 100000b from 0"]), &sc17());
    assert_eq!(outcome.end(), Time::from_ps(3 * 65 * NS + 100_002 * 20));
    assert_eq!(outcome.details.network.packet_hops, 0);
}

#[test]
fn an_incast_costs_the_last_link() {
    let (senders, bytes) = (16, 40_960);
    let mut bodies = vec![(1..=senders).map(|rank| format!("recv {bytes}b from {rank} ")).collect::<String>()];
    bodies.extend((0..senders).map(|_| format!("send {bytes}b to 0")));
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    let outcome = on_one_switch(&schedule(&bodies), &sc17());
    // All heads arrive at the same time. From then on the link is always busy, and finally the CPU receives the last
    // message.
    assert_eq!(outcome.ends[0].as_ps(), 65 * NS + L + senders * bytes * 20 + 65 * NS);
    let busiest = &outcome.details.network.busiest[0];
    assert_eq!((busiest.from.as_str(), busiest.to.as_str()), ("switch", "host 0"));
    assert!(busiest.utilization > 0.95);
}

#[test]
fn many_packets_of_few_messages_are_acknowledged() {
    let (senders, bytes) = (16, 409_600);
    let mut bodies = vec![(1..=senders).map(|rank| format!("recv {bytes}b from {rank} ")).collect::<String>()];
    bodies.extend((0..senders).map(|_| format!("send {bytes}b to 0")));
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    for routing in [Routing::Ecmp, Routing::Adaptive] {
        let mut parameters = Parameters { eager: bytes, ..sc17() };
        (parameters.network.buffer, parameters.network.routing) = (1 << 24, routing);
        parameters.network.transport.ack = 64;
        let outcome = on_one_switch(&schedule(&bodies), &parameters);
        // As without acknowledgements, which travel in the opposite direction.
        assert_eq!(outcome.ends[0].as_ps(), 65 * NS + L + senders * bytes * 20 + 65 * NS);
        assert_eq!(outcome.details.network.answers.acknowledgements, 1600);
    }
}

#[test]
fn cards_keep_messages_apart() {
    // With a gap of a microsecond, the second message starts 1000 + (8 - 1) 0.02 ns after the first.
    let mut parameters = sc17();
    parameters.network.gap = Time::from_ns(1000);
    let arrival = 65 * NS + 8 * 20 + L;
    let receiver = "recv 8b from 0 recv 8b from 0";
    let second = arrival + 1000 * NS + 7 * 20;
    assert_eq!(ends(&parameters, &["send 8b to 1 send 8b to 1", receiver]), [2 * 65 * NS, second + 65 * NS]);
    // Messages of two senders arrive at the same time; the card accepts the second a gap later.
    let bodies = ["send 8b to 2", "send 8b to 2", "recv 8b from 0 recv 8b from 1"];
    assert_eq!(ends(&parameters, &bodies)[2], arrival + 1000 * NS + 65 * NS);
    // With a NIC for each message no gap applies, and the CPU receives one after the other.
    let bodies = ["send 8b to 2", "send 8b to 2 nic 1", "recv 8b from 0 recv 8b from 1"];
    assert_eq!(ends(&parameters, &bodies)[2], arrival + 2 * 65 * NS);
}

#[test]
fn cpus_are_independent_and_dependencies_cross_them() {
    let body = "a: calc 1000 cpu 0 b: calc 10 cpu 1 b requires a c: calc 500 cpu 1";
    assert_eq!(ends(&sc17(), &[body]), [1010 * NS]);
    assert_eq!(ends(&sc17(), &["a: calc 1000 cpu 0 b: calc 1500 cpu 1 b irequires a"]), [1500 * NS]);
    // A message that arrives during a calculation is received before the calculation's dependents start.
    let bodies = ["send 8b to 1", "r: recv 8b from 0 a: calc 300 b: calc 10 b requires a c: calc 20 c requires r"];
    assert_eq!(ends(&sc17(), &bodies)[1], (300 + 65 + 10 + 20) * NS);
}

#[test]
fn wildcards_and_spaces_match_as_in_loggops() {
    let receiver = "a: recv 1b from any tag any b: recv 1b from 0 tag 5 c: calc 10000 c requires a";
    let sender = "a: send 1b to 1 tag 5 c: calc 50000 d: send 1b to 1 tag 5 c requires a d requires c";
    assert_eq!(ends(&sc17(), &[sender, receiver])[1], (65 + 50_000 + 2 * 65) * NS + L + 20);
    let bodies = ["send 1b to 1 tag 5 space 1", "recv 1b from any tag any"];
    let error = run(&schedule(&bodies), Topology::single_switch(2).unwrap(), &sc17()).unwrap_err();
    assert!(error.to_string().contains("rank 1 waits for a message of operation 1 (recv 1b from any tag any)"));
}

#[test]
fn what_cannot_finish_or_run_is_an_error() {
    let one_switch = |hosts| Topology::single_switch(hosts).unwrap();
    let error = run(&schedule(&["send 70000b to 1 tag 1", ""]), one_switch(2), &sc17()).unwrap_err();
    let expected = "the schedule cannot finish: 0 of 1 operations are done
  rank 0 waits for the receive of operation 1 (send 70000b to 1 tag 1)";
    assert_eq!(error.to_string(), expected);
    let lost = run(&schedule(&["send 7b to 1 tag 1", ""]), one_switch(2), &sc17()).unwrap();
    assert_eq!(lost.unreceived, [0]);
    let error = run(&schedule(&["put 8b to 0 tag 1"]), one_switch(1), &sc17()).unwrap_err();
    assert!(matches!(error, RunError::NeedsCard(_)), "{error}");
    let error = run(&schedule(&["calc 1 nic 1", "calc 1"]), one_switch(3), &sc17()).unwrap_err();
    assert_eq!(error.to_string(), "single switch has 3 hosts, the run needs 4");
    let error =
        run(&schedule(&["a: calc 9000000000000000 b: calc 9000000000000000 b requires a"]), one_switch(1), &sc17());
    let expected = "rank 0, operation 2 (calc 9000000000000000) ends after more than 2^63 picoseconds";
    assert!(error.unwrap_err().to_string().starts_with(expected));
    for eager in [1, u64::MAX] {
        for to in [0, 1] {
            let body = format!("send 9223372036854775807b to {to}");
            let receiver = "recv 9223372036854775807b from 0";
            let bodies = if to == 0 { [&*format!("{body} {receiver}"), ""] } else { [&*body, receiver] };
            let error = run(&schedule(&bodies), one_switch(2), &Parameters { eager, ..sc17() }).unwrap_err();
            assert!(error.to_string().starts_with("rank 0, operation 1 (send 9223372036854775807b to"), "{error}");
        }
    }
}

#[test]
fn noise_lengthens_what_cpus_do() {
    let (period, length) = (1_000 * NS, 100 * NS);
    let detours = Detours::Periodic { period: Time::from_ps(period), length: Time::from_ps(length) };
    let noise = Some(Noise { detours, seed: 3, co_scheduled: true, ranks: None });
    let quiet = sc17();
    let noisy = |overhead: u64, wire: u64| Parameters {
        overhead: Time::from_ps(overhead),
        noise: noise.clone(),
        network: net::fabric::Parameters { wire: Time::from_ps(wire), ..quiet.network.clone() },
        ..sc17()
    };
    // The longest o without a detour ends at the start of the first detour.
    let is_met = |overhead: u64| ends(&noisy(overhead, 0), &["send 8b to 1", "recv 8b from 0"])[0] > overhead;
    let (mut first, mut step) = (0, 1 << 19);
    while step > 0 {
        first += if is_met(first + step) { 0 } else { step };
        step /= 2;
    }
    assert!(first < period && is_met(first + 1));
    // The detour falls into o of a send, so the card gets the message later.
    let start = first / NS * NS;
    let send = format!("a: calc {} b: send 8b to 1 b requires a", first / NS);
    let bodies = [send.as_str(), "recv 8b from 0"];
    let sent = start + 65 * NS + length;
    let arrives = |wire: u64| sent + 8 * 20 + 50 * NS + 2 * wire;
    assert_eq!(ends(&noisy(65 * NS, 33_400), &bodies), [sent, arrives(33_400) + 65 * NS]);
    // The next detour also hits the receiver's CPU.
    let wire = (first + period - 10 * NS - arrives(0)) / 2;
    assert_eq!(ends(&noisy(65 * NS, wire), &bodies), [sent, arrives(wire) + 65 * NS + length]);
    // Noise delays calculations too: they get 90 % of the time.
    assert_eq!(ends(&noisy(0, 0), &["calc 90000"]), [100_000 * NS]);
    // Noise delays O too.
    let parameters = Parameters { overhead_per_byte: TimePerByte::from_fs_per_byte(1_000_000), ..noisy(0, 0) };
    let bodies = ["a: send 45001b to 1 b: calc 45000 b requires a", "recv 45001b from 0"];
    assert_eq!(ends(&parameters, &bodies)[0], 100_000 * NS);
}

#[test]
fn what_goes_on_in_a_window_is_kept() {
    let all = schedule(&["send 100000b to 1 calc 7", "recv 100000b from 0"]);
    let spans = |ranks, from: u64, to: u64| {
        let (from, to) = (Time::from_ps(from), Time::from_ps(to));
        let outcome = record(&all, Topology::single_switch(2).unwrap(), &sc17(), Window { ranks, from, to }).unwrap();
        assert_eq!(
            Outcome { details: Details { spans: Vec::new(), ..outcome.details.clone() }, ..outcome.clone() },
            on_one_switch(&all, &sc17())
        );
        let span = |span: &packet::Span| {
            (span.rank, span.op, span.phase, span.is_on_its_way, span.start.as_ps(), span.end.as_ps())
        };
        outcome.details.spans.iter().map(span).collect::<Vec<_>>()
    };
    // As in `a_rendezvous_asks_first`.
    let request = 65 * NS + 20 + L;
    let clear = request + 65 * NS + 20 + L;
    let data = clear + 100_000 * 20 + L;
    let (send, calc) = (0, 1);
    let expected = [
        (0, send, Phase::Operation, false, 0, 65 * NS),
        (0, calc, Phase::Operation, false, 65 * NS, 72 * NS),
        (0, send, Phase::Message, true, 65 * NS, request),
        (1, send, Phase::Message, false, request, request + 65 * NS),
        (1, send, Phase::Clear, true, request + 65 * NS, clear),
        (0, send, Phase::Data, true, clear, data),
        (1, send, Phase::Data, false, data, data + 65 * NS),
    ];
    assert_eq!(spans(0..=1, 0, u64::MAX), expected);
    assert_eq!(spans(1..=1, 0, u64::MAX), [expected[3], expected[4], expected[6]]);
    assert_eq!(spans(0..=5, request + 1, clear - 1), expected[3..5]);
    // A message that arrives after the window is shown, as a part of its flight is within the window.
    assert_eq!(spans(0..=1, clear + 1, clear + 1), expected[5..6]);
}

#[test]
fn every_golden_schedule_finishes_and_a_run_is_the_same_twice() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/loggops/goal"));
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 31);
    for file in files {
        let schedule = read(&fs::read(&file).unwrap()).unwrap();
        let hosts = packet::hosts(&schedule).unwrap();
        let usual = || Transport::USUAL;
        let acked = || Transport { ack: 64, ..usual() };
        for (flow, routing, buffer, transport) in [
            (Flow::Credits, Routing::Ecmp, 8192, usual()),
            (Flow::Drop, Routing::Adaptive, 8192, usual()),
            (Flow::Drop, Routing::Ecmp, 8192, acked()),
            (Flow::Pfc, Routing::Ecmp, 16_384, acked()),
            (Flow::Trim, Routing::Adaptive, 8192, usual()),
            (Flow::Pfc, Routing::Adaptive, 16_384, Transport { rate_control: RateControl::Dcqcn, ..usual() }),
        ] {
            let mut parameters = sc17();
            parameters.network = net::fabric::Parameters { flow, routing, buffer, transport, ..parameters.network };
            let once = || run(&schedule, Topology::fat_tree(4, 1, hosts).unwrap(), &parameters).unwrap();
            let outcome = once();
            assert_eq!((outcome.unreceived.len(), &outcome), (0, &once()), "{}", file.display());
        }
    }
}

#[test]
fn a_tapered_tree_takes_twice_as_long_across() {
    // Each of the lower half of the ranks sends to its partner in the upper half.
    let (ranks, bytes) = (32, 1_000_000);
    let bodies: Vec<String> = (0..ranks)
        .map(|rank| match rank < ranks / 2 {
            true => format!("send {bytes}b to {}", rank + ranks / 2),
            false => format!("recv {bytes}b from {}", rank - ranks / 2),
        })
        .collect();
    let all = schedule(&bodies.iter().map(String::as_str).collect::<Vec<_>>());
    let mut parameters = sc17();
    parameters.eager = u64::MAX;
    parameters.network.routing = Routing::Adaptive;
    // Two leaf switches have 16 hosts each, and 16 or 8 uplinks.
    let end = |radix, taper| run(&all, Topology::fat_tree(radix, taper, ranks).unwrap(), &parameters).unwrap().end();
    let (full, tapered) = (end(32, 1), end(24, 2));
    let ratio = tapered.as_ps() as f64 / full.as_ps() as f64;
    assert!((1.95..2.05).contains(&ratio), "{full} {tapered}");
}

#[test]
fn rendezvous_traffic_runs_over_every_topology() {
    let spec = Spec { ranks: 24, bytes: 70_000, ..Spec::default() };
    let all = generate(Pattern::ALL.into_iter().find(|pattern| pattern.name() == "alltoall").unwrap(), &spec).unwrap();
    let topologies = [
        Topology::single_switch(24),
        Topology::fat_tree(4, 1, 24),
        Topology::torus(&[4, 3, 2], 1),
        Topology::dragonfly(net::Dragonfly::for_hosts(24)),
    ];
    for topology in topologies.map(Result::unwrap) {
        let name = topology.description().to_owned();
        let outcome = run(&all, topology, &sc17()).unwrap();
        // Every card sends and receives 23 messages.
        assert!(outcome.end() > Time::from_ps(23 * 70_000 * 20), "{name}");
        assert_eq!(outcome.unreceived, [], "{name}");
        assert_eq!(outcome.details.network.packets, 24 * 23 * (18 + 2), "{name}");
    }
}

#[test]
fn a_high_number_of_a_nic_does_not_take_all_memory() {
    let ranks: String = (1..20_000).map(|rank| format!("rank {rank} {{ }}\n")).collect();
    for (what, number) in [("NICs", "nic 255"), ("CPUs", "cpu 255")] {
        let text = format!("num_ranks 20000\nrank 0 {{ calc 1 {number} }}\n{ranks}");
        let schedule = goal::text::read(text.as_bytes()).unwrap();
        let error = packet::hosts(&schedule).unwrap_err().to_string();
        let told = format!("20000 ranks with 256 {what} each are more than 1048576 {what}: ");
        assert!(error.starts_with(&told), "{error}");
    }
}

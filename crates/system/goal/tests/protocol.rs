// SPDX-License-Identifier: Apache-2.0
//! Tests the message-passing protocols with times computed by hand from the parameters of the sPIN paper's integrated
//! card.

mod support;

use std::path::PathBuf;

use goal::protocol::{Outcome, Parameters, RunError, run};
use machine::{Machine, NicKind};
use sim::Time;
use sim::noise::{Detours, Noise};
use support::schedule;

const CARDS: [NicKind; 3] = [NicKind::Rdma, NicKind::Portals4, NicKind::Spin];

fn machine() -> Machine {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines"));
    Machine::load("sc17-int", &[folder], &[]).unwrap()
}

fn outcome(bodies: &[&str], card: NicKind) -> Result<Outcome, RunError> {
    run(&schedule(bodies), &Parameters { card, ..Parameters::new(&machine(), 8192) })
}

/// Returns the ends of all ranks in picoseconds.
fn ends(bodies: &[&str], card: NicKind) -> Vec<u64> {
    outcome(bodies, card).unwrap().ends.iter().map(|end| end.as_ps()).collect()
}

/// Time of 8 B from the start of the send to host memory: o, DMA read, injection, wires and switch, match, DMA write.
/// The first half of the ping-pong in `docs/validation.md` is the same sum.
const SHORT: u64 = 65_000 + 100_054 + 160 + 116_800 + 30_000 + 50_054;
const POLL: u64 = 51_000;
const MATCH: u64 = 30_000;
const O: u64 = 65_000;
/// Time in which a core copies 8 B: an access to DRAM, and 8 of the 640 B that ten lines transfer in another.
const COPY: u64 = 51_000 + 638;

#[test]
fn a_short_message_that_is_expected() {
    let bodies = ["send 8b to 1 tag 0", "recv 8b from 0 tag 0"];
    assert_eq!(ends(&bodies, NicKind::Rdma), [O, SHORT + POLL + MATCH + COPY]);
    assert_eq!(ends(&bodies, NicKind::Portals4), [O, SHORT + POLL]);
    assert_eq!(ends(&bodies, NicKind::Spin), [O, SHORT + POLL]);
    for (card, copied) in CARDS.into_iter().zip([8, 0, 0]) {
        let outcome = outcome(&bodies, card).unwrap();
        let (expected, counted) = ((3, 1, 0, 0, copied), &outcome);
        assert_eq!(
            (
                counted.events,
                counted.details.messages,
                counted.details.long,
                counted.details.unexpected,
                counted.details.copied
            ),
            expected
        );
    }
}

#[test]
fn a_short_message_that_is_not_expected_is_copied_by_every_cpu() {
    let bodies = ["send 8b to 1 tag 0", "a: calc 1000 b: recv 8b from 0 tag 0 b requires a"];
    let computed = 1_000_000;
    // The CPU receives the message after the calculation and before it posts the receive, which finds the message.
    assert_eq!(ends(&bodies, NicKind::Rdma)[1], computed + POLL + MATCH + MATCH + COPY);
    for card in [NicKind::Portals4, NicKind::Spin] {
        assert_eq!(ends(&bodies, card)[1], computed + O + POLL + COPY);
        let outcome = outcome(&bodies, card).unwrap();
        assert_eq!((outcome.details.unexpected, outcome.details.copied), (1, 8));
    }
}

/// Time of a 1 MiB get from its start to host memory: wire and match of the request; DMA read of a packet, injection of
/// all packets, wire, match, and DMA write of a packet.
const REQUEST: u64 = 116_800 + 30_000;
const FETCH: u64 = 127_444;
const INJECT: u64 = 20_971_520;
const LONG: u64 = REQUEST + FETCH + INJECT + 116_800 + 2_000 + 77_444;

#[test]
fn long_messages_travel_while_the_cpu_computes_only_if_the_card_answers() {
    let compute = 100_000_000;
    let receiver = "a: recv 1048576b from 0 tag 0 b: calc 100000 a2: calc 0 a2 requires a a2 requires b";
    let bodies = ["send 1048576b to 1 tag 0", receiver];

    // The CPU sees the header after the calculation, gets the data, and notifies the sender.
    let got = MATCH + compute + POLL + MATCH + O + LONG + POLL + O;
    let told = got + REQUEST + 50_000 + POLL;
    assert_eq!(ends(&bodies, NicKind::Rdma), [told, got]);

    // The header triggers the get, or runs a handler of 30 cycles at 2.5 GHz; the source's card notifies its CPU.
    let header = O + REQUEST;
    let left = |get: u64| get + REQUEST + FETCH + INJECT + 50_000 + POLL;
    assert_eq!(ends(&bodies, NicKind::Portals4), [left(header), 2 * O + compute + POLL]);
    assert_eq!(ends(&bodies, NicKind::Spin), [left(header + 12_000), O + compute + POLL]);

    // A triggered get requires a known source (§5.1).
    let bodies = [bodies[0], &receiver.replace("from 0", "from any")];
    let get = O + compute + POLL + O;
    assert_eq!(ends(&bodies, NicKind::Portals4), [left(get), get + LONG + POLL]);
    assert_eq!(ends(&bodies, NicKind::Spin), [left(header + 12_000), O + compute + POLL]);
}

#[test]
fn long_messages_that_come_early_are_got_by_the_cpu() {
    let bodies = ["send 1048576b to 1 tag 0", "a: calc 1000 b: recv 1048576b from 0 tag 0 b requires a"];
    let computed = 1_000_000;
    assert_eq!(ends(&bodies, NicKind::Rdma)[1], computed + POLL + MATCH + MATCH + O + LONG + POLL + O);
    assert_eq!(ends(&bodies, NicKind::Portals4)[1], computed + O + POLL + O + LONG + POLL);
    assert_eq!(ends(&bodies, NicKind::Spin)[1], computed + O + POLL + O + LONG + POLL);
}

#[test]
fn collective_traffic_is_the_cpus_on_every_card() {
    let bodies = ["send 8b to 1 tag 0 space 1", "recv 8b from 0 tag 0 space 1"];
    for card in CARDS {
        let outcome = outcome(&bodies, card).unwrap();
        assert_eq!(outcome.end().as_ps(), SHORT + POLL + MATCH + COPY);
        assert_eq!(outcome.details.messages, 0);
        assert_eq!(outcome.details.shares.point_to_point, Time::ZERO);
    }
}

#[test]
fn all_time_of_the_cpus_up_to_their_last_task_counts_once() {
    let bodies = [
        "a: calc 300 b: send 8b to 1 tag 0 b requires a c: recv 20000b from 1 tag 1",
        "a: recv 8b from 0 tag 0 b: send 20000b to 0 tag 1 b requires a c: send 8b to 0 tag 9 space 1",
    ];
    let bodies = [&format!("{} d: recv 8b from 1 tag 9 space 1", bodies[0]), bodies[1]];
    for card in CARDS {
        let outcome = outcome(&bodies, card).unwrap();
        let shares = outcome.details.shares;
        let all: u64 = outcome.ends.iter().map(|end| end.as_ps()).sum();
        assert_eq!((shares.compute + shares.point_to_point + shares.collective).as_ps(), all);
        assert_eq!(shares.compute, Time::from_ns(300));
    }
}

#[test]
fn what_cannot_finish_or_is_not_of_the_model() {
    let stuck = outcome(&["recv 8b from 1 tag 0", "send 8b to 0 tag 1"], NicKind::Spin).unwrap_err().to_string();
    assert!(stuck.contains("rank 0 waits for a message of operation 1 (recv 8b from 1 tag 0)"), "{stuck}");
    let long = outcome(&["send 9000b to 1 tag 0", ""], NicKind::Portals4).unwrap_err().to_string();
    assert!(long.contains("rank 0 waits for the receive of operation 1"), "{long}");
    let cpus = outcome(&["calc 5 cpu 1"], NicKind::Rdma).unwrap_err().to_string();
    assert_eq!(cpus, "the protocol model has one CPU and one NIC a rank; the schedule uses 2 and 1");
    let late = outcome(&["calc 18446744073709551"], NicKind::Rdma).unwrap_err().to_string();
    assert!(late.ends_with("(106 days) of simulated time"), "{late}");
}

#[test]
fn noise_lengthens_what_cpus_do() {
    let (machine, length) = (machine(), 40_000);
    let detours = |period| Detours::Periodic { period: Time::from_ps(period), length: Time::from_ps(length) };
    let noisy = |period, card| Parameters {
        card,
        noise: Some(Noise { detours: detours(period), seed: 1, co_scheduled: true, ranks: None }),
        ..Parameters::new(&machine, 8192)
    };
    let ends = |bodies: &[&str], parameters: &Parameters| {
        let outcome = run(&schedule(bodies), parameters).unwrap();
        (outcome.ends.iter().map(|end| end.as_ps()).collect::<Vec<_>>(), outcome.details.shares)
    };
    // Noise takes a quarter of the time, with every kind of card.
    let (all, shares) = ends(&["calc 120000"], &noisy(160_000, NicKind::Spin));
    assert_eq!((&all[..], shares.compute), (&[160_000_000][..], Time::from_ns(160_000)));
    // A detour occurs every millisecond. The longest calculation without a detour gives the start of the first one.
    let is_met = |ns: u64| ends(&[&format!("calc {ns}")], &noisy(1_000_000_000, NicKind::Rdma)).0[0] > ns * 1000;
    let (mut first, mut step) = (0, 1 << 19);
    while step > 0 {
        first += if is_met(first + step) { 0 } else { step };
        step /= 2;
    }
    let bodies = [&*format!("a: calc {first} b: send 8b to 1 tag 0 b requires a"), "recv 8b from 0 tag 0"];
    for (card, receives) in CARDS.into_iter().zip([POLL + MATCH + COPY, POLL, POLL]) {
        let start = first * 1000;
        let expected = [start + O + length, start + SHORT + length + receives];
        assert_eq!(ends(&bodies, &noisy(1_000_000_000, card)).0, expected);
    }
}

/// The table is generated from runs of the handlers; the model must charge the same cycles.
#[test]
fn the_header_handler_takes_the_cycles_of_the_measured_table() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let table = std::fs::read_to_string(folder.join("sdk/handlers/README.md")).unwrap();
    let row = table.lines().find(|line| line.starts_with("| `matching_header` | long message |")).unwrap();
    let columns: Vec<&str> = row.split('|').map(str::trim).collect();
    for (timing, column) in [("inorder", 4), ("ooo-a15", 6)] {
        let machine = Machine::load("sc17-int", &[folder.join("machines")], &[format!("hpu.timing={timing}")]).unwrap();
        let cycles: u64 = columns[column].parse().unwrap();
        assert_eq!(Parameters::new(&machine, 8192).handler, machine.hpu.clock.time(cycles), "{timing}");
    }
}

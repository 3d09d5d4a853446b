// SPDX-License-Identifier: Apache-2.0
//! Ranks and cards that die, and lost packets (`--fail`, `--kill-card`, `--drop`): the errors seen by programs, and
//! their times.

use crate::harness::{Run, ping_pong, program, reported, spinrun};

/// `network.retransmit_ns` and the latency of the path between two nodes, in picoseconds: the loss of a packet is
/// detected at the time of its expected arrival, and it leaves again after the time-out.
const AGAIN: u64 = 16_384_000 + 2 * 33_400 + 50_000;

/// Runs `failures.c` with these options. Also returns the time of the last answer in picoseconds.
fn timed(options: &str, arguments: &str) -> (Run, u64, serde_json::Value) {
    let (run, report) = reported(options, &program("failures"), arguments);
    assert_eq!(run.status, 0, "{options} {arguments}: {}{}", run.out, run.err);
    let line = run.out.lines().rfind(|line| line.contains(" after ")).unwrap();
    let time = line.rsplit_once(" after ").unwrap().1.strip_suffix(" ps").unwrap().parse().unwrap();
    (run, time, report)
}

#[test]
fn a_lost_packet_costs_a_time_out_and_its_way() {
    for (arguments, from, answer) in [("puts 8 1", 1, "event 10, fail 0"), ("gets 8 1", 1, "event 8, fail 0")] {
        let (_, plain, _) = timed("-n 2", arguments);
        let mut counts = Vec::new();
        for seed in 1..6 {
            let (run, time, report) = timed(&format!("-n 2 --drop 1>0:0.5 --failure-seed {seed}"), arguments);
            let count = report["cards"][from]["packets_resent"].as_u64().unwrap();
            assert_eq!(time - plain, count * AGAIN, "{arguments}, seed {seed}");
            assert_eq!(report["failures"]["losses"][0]["packets"], count, "{arguments}, seed {seed}");
            assert!(run.out.contains(answer), "{}", run.out);
            counts.push(count);
        }
        assert!(counts.contains(&0) && counts.iter().any(|count| *count > 0), "{counts:?}");
    }
}

#[test]
fn data_is_whole_after_losses_in_both_networks() {
    for network in ["latency", "fabric"] {
        for mode in ["puts", "gets", "handlers"] {
            let (run, _, report) =
                timed(&format!("-n 3 --drop *:0.2 --set network.model={network}"), &format!("{mode} 40000 4"));
            assert!(run.out.contains("mlength 40000") && !run.out.contains("fail 1"), "{network} {mode}: {}", run.out);
            let lost = report["failures"]["losses"][0]["packets"].as_u64().unwrap();
            assert!(lost > 5 && report["cards"][0]["undeliverable"] == 0, "{network} {mode}: {lost}");
            if mode == "handlers" {
                assert!(run.out.contains("handlers saw 320000 bytes and missed 0"), "{}", run.out);
            }
        }
    }
}

/// Messages behind one with a lost packet wait for it, so all are matched in order, on cards of all kinds. An abandoned
/// message is skipped.
#[test]
fn messages_are_matched_in_the_order_in_which_they_were_sent() {
    let order = |options: &str| {
        let (run, report) = reported(options, &program("message_order"), "40");
        assert_eq!(run.status, 0, "{options}: {}{}", run.out, run.err);
        let sum = |name: &str| -> u64 {
            report["cards"].as_array().unwrap().iter().map(|card| card[name].as_u64().unwrap()).sum()
        };
        (run.out, sum("packets_resent"), sum("packets_held"), sum("undeliverable"))
    };
    let whole = "source 1: 40 messages, 40 whole, first out of order 0\nsource 2: 40 messages, 40 whole, first out of order 0\n";
    for network in ["latency", "fabric"] {
        for kind in ["rdma", "portals4", "spin"] {
            let options = format!("-n 3 --nic {kind} --set network.model={network}");
            assert_eq!(order(&options), (whole.into(), 0, 0, 0), "{options}");
            let (out, resent, held, given_up) = order(&format!("{options} --drop *:0.1"));
            assert_eq!((out.as_str(), given_up), (whole, 0), "{options}");
            assert!(resent > 10 && held > resent, "{options}: {resent} sent again, {held} held");
        }
    }
    let (out, _, _, given_up) = order("-n 3 --drop *:0.3 --set network.retries=1");
    assert!(given_up > 5 && !out.contains("40 whole"), "{out}");
    assert_eq!(out.matches("first out of order 0\n").count(), 2, "{out}");
}

#[test]
fn a_card_gives_up_after_its_retries() {
    let undeliverable = |retries: u64| {
        let options = format!("-n 2 --drop 1>0:1 --set network.retries={retries}");
        let (run, time, report) = timed(&options, "puts 8 1");
        assert!(
            run.out.contains("1: event 10, fail 1, mlength 0") && run.out.contains("0: nothing more comes"),
            "{}",
            run.out
        );
        assert_eq!(report["cards"][1]["packets_lost"], retries + 1);
        assert_eq!(report["drops"]["unreachable"]["messages"], 1);
        assert!(run.err.contains("packets were lost again and again"), "{}", run.err);
        time
    };
    let (one, seven) = (undeliverable(1), undeliverable(7));
    assert_eq!(seven - one, 6 * AGAIN);
}

/// The data has arrived, but the acknowledgement never does: the initiator cannot tell the difference.
#[test]
fn a_lost_acknowledgement_is_a_failure() {
    let (run, _, report) = timed("-n 2 --drop 0>1:1", "puts 8 1");
    assert!(run.out.contains("0: event 2 from 1, fail 0, mlength 8"), "{}", run.out);
    assert!(run.out.contains("1: event 10, fail 1, mlength 0"), "{}", run.out);
    assert_eq!(report["cards"][0]["undeliverable"], 1);
}

#[test]
fn a_long_message_of_a_dead_card_ends_at_its_target() {
    // The card dies at 5 us, while the message of 8 us leaves it.
    for (mode, told) in
        [("puts", "0: event 2 from 1, fail 1"), ("handlers", "0: handlers saw 237568 bytes and missed 162432")]
    {
        let (run, report) = reported("-n 2 --kill-card 1@5us", &program("failures"), &format!("{mode} 400000 1"));
        assert_eq!(run.status, 0, "{}{}", run.out, run.err);
        assert!(run.out.contains(told), "{mode}: {}", run.out);
        assert!(run.out.contains("1: PtlEQWait(eq, &event) returns 5"), "{mode}: {}", run.out);
        assert!(run.err.contains("warning: rank 1: its card dies at 5000.000 ns (--kill-card)\n"), "{}", run.err);
        assert_eq!(report["drops"]["unreachable"]["bytes"], 162_432, "{mode}");
    }
    // Its target detects the death 8 time-outs later: 5 us + 8 x 16.384 us.
    let (run, _, report) = timed("-n 2 --kill-card 0@5us", "gets 400000 1");
    assert!(run.out.contains("1: event 8, fail 1"), "{}", run.out);
    assert!((136_072_000..136_200_000).contains(&report["end_ps"].as_u64().unwrap()), "{}", report["end_ps"]);
}

#[test]
fn what_waits_for_a_dead_card_or_process_is_told() {
    let (run, _, _) = timed("-n 2 --kill-card 0@1us", "puts 8 3");
    assert_eq!(run.out.matches("1: event 10, fail 1, mlength 0").count(), 2, "{}", run.out);
    // A card whose process is dead answers PTL_NI_DROPPED.
    let (run, _, report) = timed("-n 2 --fail 0@1us", "puts 8 3");
    assert_eq!(run.out.matches("1: event 10, fail 2, mlength 0").count(), 2, "{}", run.out);
    assert!(run.err.contains("warning: rank 0: its process is killed at 1000.000 ns (--fail)\n"), "{}", run.err);
    assert_eq!(report["rank_end_ps"][0], 1_000_000);
    assert_eq!(report["failures"]["deaths"], serde_json::json!([{"rank": 0, "at_ps": 1_000_000, "victim": "process"}]));
}

/// Data that a dead process posted for sending is lost if its card has not read it yet; no bad address is reported.
#[test]
fn the_messages_that_a_dead_process_was_sending_are_dropped_at_their_target() {
    for (machine, at) in [("sc17-int", "5us"), ("sc17-dis", "2us")] {
        for mode in ["puts", "handlers"] {
            let options = format!("-n 3 --machine {machine} --fail 1@{at}");
            let (run, _, report) = timed(&options, &format!("{mode} 100000 3"));
            assert!(!run.err.contains("is not accessible"), "{machine} {mode}: {}", run.err);
            assert!(
                run.err.contains("their sender's process was killed before its card had read the data"),
                "{}",
                run.err
            );
            let lost = &report["drops"]["sender_died"];
            let (packets, bytes) = (lost["packets"].as_u64().unwrap(), lost["bytes"].as_u64().unwrap());
            assert_eq!(
                (lost["messages"].as_u64(), lost["first"]["source"].as_u64()),
                (Some(1), Some(1)),
                "{machine} {mode}"
            );
            // 25 packets, the last with 1,696 bytes; the first ones were already read.
            assert!((1..=25).contains(&packets) && bytes == (packets - 1) * 4096 + 1696, "{machine} {mode}: {lost}");
            if mode == "puts" && packets < 25 {
                assert!(run.out.contains("0: event 2 from 1, fail 2"), "{machine}: {}", run.out);
            }
        }
    }
}

#[test]
fn barriers_do_not_wait_for_the_dead() {
    let run = spinrun("-n 4 --fail 1@1500,3@1us", &program("failures"), "barrier 1 4");
    assert_eq!(run.status, 0, "{}", run.err);
    assert_eq!(run.out, "0: met 4 times until 4000000 ps\n2: met 4 times until 4000000 ps\n");
    let run = spinrun("-n 2 --fail 1@1s", &program("failures"), "barrier 1 1");
    assert!(
        run.status == 0 && run.err.contains("rank 1 was to fail at 1000000000.000 ns, and the run was over at"),
        "{}",
        run.err
    );
}

#[test]
fn failures_are_the_same_in_each_run_and_nothing_when_nothing_fails() {
    let failing = || timed("-n 4 --drop *:0.3 --fail 2@60us --kill-card 3@20us", "handlers 100000 2");
    let (one, other) = (failing(), failing());
    assert_eq!((&one.0.out, &one.0.err, one.1, &one.2), (&other.0.out, &other.0.err, other.1, &other.2));
    assert_ne!(
        one.2,
        timed("-n 4 --drop *:0.3 --failure-seed 2 --fail 2@60us --kill-card 3@20us", "handlers 100000 2").2
    );
    let sizes = "--mode stream --sizes 8,65536";
    let plain = reported("-n 2", &ping_pong(), sizes);
    let lossless = reported("-n 2 --drop *:0", &ping_pong(), sizes);
    assert_eq!((plain.0.out, &plain.1["cards"]), (lossless.0.out, &lossless.1["cards"]));
}

#[test]
fn impossible_failures_are_refused() {
    for (options, error) in [
        ("--fail 7@1us", "there is no rank 7 to fail; the last of 2 is 1"),
        ("--drop 0-7:0.1", "packets cannot be lost there: there is no node 7; the last of 2 is 1"),
        ("--drop a>b:0.1", "the link from \"a\" to \"b\" needs a network with links: --set network.model=fabric"),
        (
            "--drop a>b:0.1 --set network.model=fabric",
            "the network has no link from \"a\" to \"b\"; one of its links is from \"host 0\" to \"switch\"",
        ),
        ("--fail 1", "invalid value '1' for '--fail <RANK@TIME>': is like 3@5us"),
        ("--failure-seed 3", "--drop <LINK:RATE>"),
    ] {
        spinrun(&format!("-n 2 {options}"), &program("failures"), "barrier 1 1").ended(2, error);
    }
}

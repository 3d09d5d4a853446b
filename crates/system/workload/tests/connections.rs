// SPDX-License-Identifier: Apache-2.0
//! Tests the import of htsim's connection matrices.

use goal::loggops::{LogGops, Options, run};
use goal::{Action, Schedule};
use sim_time::ns;
use workload::connections::{import, is_matrix};

mod sim_time {
    /// Returns the nanoseconds of a time.
    pub fn ns(time: impl std::fmt::Debug) -> String {
        format!("{time:?}")
    }
}

const MATRIX: &str = "# three flows
Nodes 4
Connections 4
Triggers 1
0->1 id 1 start 0 size 2000
2->1 id 2 start 5000000 size 1000 recv_done_trigger 9
0->3 id 3 start 2500000 size 700 send_done_trigger 9
3->2 id 4 trigger 9 size 64 prio 2
trigger id 9 barrier count 2
";

fn messages(schedule: &Schedule) -> Vec<(u32, u32, u64)> {
    (0..schedule.len() as u32)
        .filter_map(|op| match schedule.action(op) {
            Action::Send { bytes, to, space: 0, .. } => Some((schedule.rank(op), to, bytes)),
            _ => None,
        })
        .collect()
}

#[test]
fn every_connection_is_a_message_with_its_start() {
    let found = import(MATRIX).unwrap();
    assert_eq!((found.connections, found.bytes, found.schedule.ranks()), (4, 3764, 4));
    assert_eq!(messages(&found.schedule), [(0, 1, 2000), (0, 3, 700), (2, 1, 1000), (3, 2, 64)]);
    assert_eq!(found.warnings, ["1 priorities are not in the schedule"]);
    // With a network without any cost, only start times take time: flow 2 starts after 5 us, flow 4 when 2 and 3 end.
    let zero = LogGops { latency: Default::default(), overhead: Default::default(), gap: Default::default(), ..free() };
    let outcome = run(&found.schedule, &zero, &Options::default()).unwrap();
    assert!(outcome.unreceived.is_empty());
    assert_eq!(ns(outcome.ends[2]), ns(outcome.end()));
    let calcs: Vec<u64> = (0..found.schedule.len() as u32)
        .filter_map(|op| match found.schedule.action(op) {
            Action::Calc(ns) => Some(ns),
            _ => None,
        })
        .collect();
    assert_eq!(calcs, [2500, 5000]);
    // Two messages carry the trigger: from 1, where flow 2 arrives, and from 0, which flow 3 leaves.
    assert_eq!(outcome.events as usize, 4 * 3 + 2 * 3 + 2);
}

fn free() -> LogGops {
    LogGops { gap_per_byte: Default::default(), overhead_per_byte: Default::default(), ..LogGops::default() }
}

#[test]
fn matrices_are_recognised() {
    assert!(is_matrix(MATRIX));
    assert!(!is_matrix("num_ranks 2"));
    assert!(!is_matrix("Nodes 128\nTiers 2\n"));
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, error) in [
        ("", "1: no nodes: the file begins with Nodes N"),
        ("Nodes 0", "1: 1 to 1073741824 nodes, not 0"),
        ("Nodes 2\nConnections 2\n0->1 start 0 size 1", "2: Connections 2, but the file has 1"),
        ("Nodes 2\n0->2 start 0 size 1", "2: 2 is none of the 2 nodes, which are numbered from 0"),
        ("Nodes 2\n0->1 size 1", "2: a connection needs start or trigger"),
        ("Nodes 2\n0->1 start 0", "2: a connection needs a size above 0 (endless flows have no schedule)"),
        ("Nodes 2\n0->1 start soon size 1", "2: start is a time in ps, not \"soon\""),
        ("Nodes 2\n0->1 start 0 trigger 1 size 1", "2: a connection has one start or trigger"),
        ("Nodes 2\n\n0->1 trigger 1 size 1", "3: trigger 1 has no line"),
        (
            "Nodes 2\n0->1 trigger 1 size 1\ntrigger id 1 oneshot",
            "2: no connection fires trigger 1, so this one never starts",
        ),
        (
            "Nodes 2\n0->1 colour 1",
            "2: colour: a connection has id, start, trigger, size, send_done_trigger, recv_done_trigger and prio",
        ),
        ("Nodes 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot", "3: trigger 1 is also on line 2"),
        ("Nodes 2\ntrigger id 1 barrier", "2: a barrier needs a count"),
        (
            "Nodes 2\n0->1 trigger 1 size 1\n1->0 start 0 size 1 recv_done_trigger 1\ntrigger id 1 barrier count 3",
            "4: the barrier counts 3, but 1 connections fire it",
        ),
        (
            "Nodes 2\nhello",
            "2: hello: neither Nodes, Connections, Triggers, Failures, a connection FROM->TO, trigger nor failure",
        ),
    ] {
        assert_eq!(import(text).unwrap_err().to_string(), error, "{text}");
    }
    let circle = "Nodes 2\n0->1 trigger 1 size 1 send_done_trigger 1\ntrigger id 1 oneshot";
    assert!(import(circle).unwrap_err().to_string().contains("cycle of dependencies"));
}

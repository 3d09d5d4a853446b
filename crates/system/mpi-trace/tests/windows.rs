// SPDX-License-Identifier: Apache-2.0
//! Compares schedules of one-sided calls, and their times, with results derived by hand.

use std::fs;
use std::path::Path;

use goal::loggops::{LogGops, run};
use goal::{Schedule, text};
use mpi_trace::{Import, Options, import};

const WORLD_AND_WINDOW: fn(u64) -> [Vec<u64>; 2] =
    |ranks| [vec![3, 0, 0, 1, 0, ranks, 2], vec![3, 1, 0, 1, 0, ranks, 2]];

/// Returns a call with a number of `sdk/tracer/format.h`, on window 1, after `gap_ns` ns of computation.
fn call(kind: u64, gap_ns: u64, fields: &[u64]) -> Vec<u64> {
    [&[kind, gap_ns, 0, 1], fields].concat()
}

const CREATE: u64 = 51;
const FREE: u64 = 52;
const FENCE: u64 = 53;
const POST: u64 = 54;
const START: u64 = 55;
const COMPLETE: u64 = 56;
const WAIT: u64 = 57;
const LOCK: u64 = 58;
const UNLOCK: u64 = 59;
const FLUSH: u64 = 60;

fn plain(kind: u64) -> Vec<u64> {
    call(kind, 0, &[])
}

/// Returns the fields of an access: bytes to a rank, and bytes that it sends back.
fn access(to: u64, bytes: u64, back: Option<u64>) -> Vec<u64> {
    call(50, 0, &[to + 1, bytes, back.map_or(0, |back| back + 1)])
}

/// Returns a call that names one other rank, or all for `None`.
fn to(kind: u64, rank: Option<u64>) -> Vec<u64> {
    call(kind, 0, &[rank.map_or(0, |rank| rank + 1)])
}

/// Returns a call with a group of one rank.
fn with(kind: u64, rank: u64) -> Vec<u64> {
    call(kind, 0, &[1, rank, 1, 0])
}

/// Writes one trace file per rank.
fn write(folder: &Path, ranks: &[Vec<Vec<u64>>]) {
    for (rank, calls) in ranks.iter().enumerate() {
        let mut records = vec![vec![1, rank as u64, ranks.len() as u64, 0]];
        records.extend(WORLD_AND_WINDOW(ranks.len() as u64));
        records.extend_from_slice(calls);
        records.push(vec![2, 0, 0, 0]);
        let mut payload = Vec::new();
        for mut number in records.into_iter().flatten() {
            while number >= 0x80 {
                payload.push(number as u8 | 0x80);
                number >>= 7;
            }
            payload.push(number as u8);
        }
        let file = [&b"SPINTRC1"[..], &(payload.len() as u32).to_le_bytes(), &payload].concat();
        fs::write(folder.join(format!("rank-{rank}.spintrace")), file).unwrap();
    }
}

fn imported(ranks: &[Vec<Vec<u64>>], options: &Options) -> Result<Import, String> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), ranks);
    import(folder.path(), options).map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "DIR"))
}

fn schedule(ranks: &[Vec<Vec<u64>>], options: &Options) -> Schedule {
    let Import { schedule, warnings, .. } = imported(ranks, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(warnings, [""; 0]);
    schedule
}

fn shown(schedule: &Schedule, rank: u32) -> String {
    let mut out = Vec::new();
    text::write(schedule, rank..rank + 1, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the end times with LogGOPSim's parameters; messages above `eager` use rendezvous.
fn end_ns(schedule: &Schedule, eager: u64) -> Vec<u64> {
    let parameters = LogGops { eager, ..LogGops::default() };
    let outcome = run(schedule, &parameters, &goal::loggops::Options::default()).unwrap();
    assert_eq!(outcome.unreceived, []);
    outcome.ends.iter().map(|end| end.as_ps() / 1000).collect()
}

/// Returns the lines of one rank, without its number and braces.
fn lines(schedule: &Schedule, rank: u32) -> Vec<String> {
    let shown = shown(schedule, rank);
    let body = shown.split_once("{\n").unwrap().1;
    body.trim_end().trim_end_matches('}').lines().map(String::from).collect()
}

/// Two ranks: rank 0 puts 100 bytes and gets 200 between two fences; rank 1 computes before the second fence.
fn fenced() -> [Vec<Vec<u64>>; 2] {
    let accesses = [access(1, 100, None), access(1, 0, Some(200))];
    [
        [&[plain(CREATE), plain(FENCE)], &accesses[..], &[plain(FENCE), plain(FREE)]].concat(),
        vec![plain(CREATE), plain(FENCE), call(FENCE, 70, &[]), plain(FREE)],
    ]
}

#[test]
fn a_fence_ends_accesses_and_is_a_barrier() {
    let made = schedule(&fenced(), &Options::default());
    // The window is the second communicator: its space is 2, that of its barriers 3.
    let origin = [
        "l1: send 1b to 1 tag 0 space 3", // creation
        "l2: recv 1b from 1 tag 0 space 3",
        "l3: calc 0",
        "l4: send 1b to 1 tag 2 space 3", // first fence
        "l5: recv 1b from 1 tag 2 space 3",
        "l6: send 100b to 1 tag 0 space 2",
        "l7: send 1b to 1 tag 8 space 2",
        "l8: recv 200b from 1 tag 9 space 2",
        "l9: calc 0",
        "l10: send 1b to 1 tag 4 space 3", // second fence
        "l11: recv 1b from 1 tag 4 space 3",
        "l12: calc 0",
        "l13: send 1b to 1 tag 6 space 3", // free
        "l14: recv 1b from 1 tag 6 space 3",
    ];
    assert_eq!(lines(&made, 0)[..14], origin);
    // An access starts once the previous one has started, and the fence waits for both.
    for needs in ["l7 irequires l6", "l8 irequires l7", "l9 requires l6", "l9 requires l8"] {
        assert!(lines(&made, 0).contains(&needs.into()), "{needs}");
    }
    let target = lines(&made, 1);
    let taken =
        ["l7: recv 100b from 0 tag 0 space 2", "l8: recv 1b from 0 tag 8 space 2", "l9: send 200b to 0 tag 9 space 2"];
    assert_eq!(target[6..9], taken);
    // Computation continues beside them (l10); operations after the second fence (l13) wait for them.
    for needs in [
        "l7 requires l6",
        "l8 requires l6",
        "l9 requires l8",
        "l10 requires l6",
        "l13 requires l7",
        "l13 requires l9",
        "l13 requires l11",
        "l13 requires l12",
    ] {
        assert!(target.contains(&needs.into()), "{needs}");
    }
    for eager in [65_535, 50] {
        end_ns(&made, eager);
    }
}

#[test]
fn a_flush_waits_for_an_acknowledgement() {
    let origin = vec![
        plain(CREATE),
        to(LOCK, Some(1)),
        access(1, 100, None),
        to(FLUSH, Some(1)),
        access(1, 0, Some(200)),
        to(UNLOCK, Some(1)),
        plain(FREE),
    ];
    let made = schedule(&[origin, vec![plain(CREATE), plain(FREE)]], &Options::default());
    // L = 2500, o = 1500, G = 6. Creation: o + L + o = 5500. The put arrives after o + L + o + 99 G = 6094, its
    // acknowledgement 5500 later: 17094. The get's request takes 5500, the answer o + L + o + 199 G = 6694: 29288. Rank
    // 0 finishes when it has sent its barrier's message; rank 1, whose own was sent long before, when it receives that.
    assert_eq!(end_ns(&made, 65_535), [29_288 + 1500, 29_288 + 5500]);
    assert!(lines(&made, 0).contains(&"l4: recv 1b from 1 tag 2 space 2".into()));
}

#[test]
fn nobody_acknowledges_what_answers() {
    let origin = vec![plain(CREATE), to(LOCK, None), access(1, 8, Some(8)), to(UNLOCK, None), plain(FREE)];
    let made = schedule(&[origin, vec![plain(CREATE), plain(FREE)]], &Options::default());
    assert_eq!(lines(&made, 1)[3..5], ["l4: recv 8b from 0 tag 0 space 2", "l5: send 8b to 0 tag 1 space 2"]);
    assert!(!shown(&made, 1).contains("tag 2 space 2"));
    end_ns(&made, 0);
}

#[test]
fn post_lets_start_go_on_and_complete_lets_wait_go_on() {
    let target = vec![plain(CREATE), with(POST, 1), plain(WAIT), plain(FREE)];
    let origin = vec![plain(CREATE), with(START, 0), access(0, 100, None), plain(COMPLETE), plain(FREE)];
    let made = schedule(&[target, origin], &Options::default());
    assert_eq!(
        lines(&made, 0)[2..7],
        [
            "l3: calc 0",
            "l4: recv 100b from 1 tag 0 space 2",
            "l5: send 1b to 1 tag 3 space 2",
            "l6: recv 1b from 1 tag 4 space 2",
            "l7: calc 0",
        ]
    );
    for needs in ["l4 requires l3", "l5 requires l3", "l6 requires l5", "l7 requires l4", "l7 requires l6"] {
        assert!(lines(&made, 0).contains(&needs.into()), "{needs}");
    }
    assert_eq!(
        lines(&made, 1)[3..6],
        ["l4: recv 1b from 0 tag 3 space 2", "l5: send 100b to 0 tag 0 space 2", "l6: send 1b to 0 tag 4 space 2"]
    );
    // Creation: 5500. The post's message arrives at 11000. The put occupies the card for g + 99 G, so the message of
    // complete leaves at 12594 and the barrier's at 14094. At rank 0 the CPU receives the put until 17094, one message
    // until 18594, and the other until 20094; then it sends the barrier's, which arrives at 25594.
    assert_eq!(end_ns(&made, 65_535), [20_094 + 1500, 25_594]);
}

#[test]
fn copies_keep_to_themselves_but_for_fences() {
    let made = schedule(&fenced(), &Options { extrapolate: 2, ..Options::default() });
    assert_eq!(made.ranks(), 4);
    let third = shown(&made, 2);
    assert!(third.contains("send 100b to 3 tag 0 space 2"));
    // Four ranks: two rounds of each barrier.
    assert_eq!(third.matches("send 1b to 0 ").count(), 4);
    end_ns(&made, 50);
}

#[test]
fn accesses_to_oneself_are_no_messages() {
    let mut ranks = fenced();
    ranks[0].insert(2, access(0, 5000, Some(5000)));
    assert_eq!(shown(&schedule(&ranks, &Options::default()), 0), shown(&schedule(&fenced(), &Options::default()), 0));
}

#[test]
fn a_wait_for_a_request_is_for_that_access() {
    // Request 7 of a get of 64 bytes, and the wait for it.
    let get = vec![50 + 64, 0, 0, 1, 7, 2, 0, 65];
    let wait = vec![21, 0, 0, 1, 7 * 4];
    let origin = vec![plain(CREATE), to(LOCK, None), get, wait, call(UNLOCK, 30, &[0]), plain(FREE)];
    let made = schedule(&[origin, vec![plain(CREATE), plain(FREE)]], &Options::default());
    assert_eq!(lines(&made, 0)[3..5], ["l4: recv 64b from 1 tag 1 space 2", "l5: calc 30"]);
    assert!(lines(&made, 0).contains(&"l5 requires l4".into()));
}

#[test]
fn windows_that_make_no_sense_are_errors() {
    let other = || vec![plain(CREATE), plain(FREE)];
    for calls in [vec![plain(FENCE)], vec![access(1, 8, None)], vec![plain(CREATE), plain(FREE), plain(FREE)]] {
        let problem = imported(&[calls, other()], &Options::default()).unwrap_err();
        assert_eq!(problem, "rank 0: it uses a window that was not made or is gone");
    }
    let mut calls = other();
    calls.insert(1, access(2, 8, None));
    let problem = imported(&[calls, other()], &Options::default()).unwrap_err();
    assert!(problem.starts_with("DIR/rank-0.spintrace:byte ") && problem.ends_with("rank 2 of 2 ranks"), "{problem}");
}

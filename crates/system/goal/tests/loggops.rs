// SPDX-License-Identifier: Apache-2.0
//! Tests the model beyond the golden rows: several CPUs, wildcards, spaces, rendezvous, and deadlocks.

mod support;

use goal::loggops::{LogGops, Options, Outcome, Part, RunError, critical_path, run};
use goal::text::read;
use sim::Time;
use sim::noise::{Detours, Noise};
use support::schedule;

/// Runs ranks with the given bodies and default parameters (L 2500, o 1500, g 1000, G 6, O 0, S 65535).
fn outcome_with(options: &Options, bodies: &[&str]) -> Result<Outcome, RunError> {
    run(&schedule(bodies), &LogGops::default(), options)
}

fn ends(bodies: &[&str]) -> Vec<u64> {
    let outcome = outcome_with(&Options::default(), bodies).unwrap();
    assert_eq!(outcome.unreceived, []);
    outcome.ends.iter().map(|end| end.as_ps() / 1000).collect()
}

#[test]
fn a_dependency_on_another_cpu_counts_in_time() {
    let body = "a: calc 1000 cpu 0 b: calc 10 cpu 1 b requires a";
    assert_eq!(ends(&[body]), [1010]);
    let compat = Options { ignore_other_cpus: true, ..Options::default() };
    assert_eq!(outcome_with(&compat, &[body]).unwrap().end(), Time::from_ns(1000));
    // The start of an operation does not satisfy a dependency on its end.
    assert_eq!(ends(&["a: calc 1000 cpu 0 b: calc 1500 cpu 1 b irequires a"]), [1500]);
    // The message occupies CPU 0 of rank 1 from 4000 to 5500, and CPU 1 waits until then.
    let bodies = ["send 1b to 1", "a: recv 1b from 0 cpu 1 b: calc 100 cpu 1 b requires a"];
    assert_eq!(ends(&bodies), [1500, 5600]);
    // The receive finds its message at 10000. Its dependents start then, also on the CPU idle since 5500.
    let receiver = "a: calc 10000 b: recv 1b from 0 b requires a c: calc 7 c requires b d: calc 107 cpu 1 d requires b";
    assert_eq!(ends(&["send 1b to 1 cpu 1", receiver]), [1500, 10_107]);
}

#[test]
fn nics_overlap_gaps_and_cpus_overlap_overheads() {
    // o = 1500 exceeds g = 1000: with one CPU the second message leaves at 1500, with two and two NICs at 0.
    let receiver = "recv 1b from 0 recv 1b from 0";
    assert_eq!(ends(&["send 1b to 1 send 1b to 1", receiver]), [3000, 7000]);
    assert_eq!(ends(&["send 1b to 1 send 1b to 1 cpu 1 nic 1", receiver]), [1500, 5500]);
    assert_eq!(ends(&["send 1b to 1 send 1b to 1 cpu 1", receiver]), [2500, 6500]);
}

#[test]
fn what_can_start_does_not_wait_for_what_came_first() {
    // The NIC is busy until 50146, so the second send waits, but the calculation runs from 1500 on.
    let sender = "a: send 8192b to 1 b: send 1b to 1 b requires a c: calc 5000 c requires a";
    assert_eq!(ends(&[sender, "recv 8192b from 0 recv 1b from 0"])[0], 51_646);
    // A calculation that ends after the NIC becomes free still goes first.
    let sender = "a: send 8192b to 1 b: send 1b to 1 b requires a c: calc 50000 c requires a";
    assert_eq!(ends(&[sender, "recv 8192b from 0 recv 1b from 0"])[0], 53_000);
    // A receive that finds its message at 21500 unblocks both. The calculation runs from 23000 on.
    let sender = "a: send 8192b to 1 b: calc 20000 b requires a c: recv 1b from 1 c requires b \
        d: send 1b to 1 d requires c e: calc 5000 e requires c";
    assert_eq!(ends(&[sender, "send 1b to 0 recv 8192b from 0 recv 1b from 0"])[0], 51_646);
}

#[test]
fn wildcards_take_what_was_posted_or_arrived_first_in_their_space() {
    // The wildcard receive is posted first and takes the message with tag 5, so its dependent runs from 5500.
    let receiver = "a: recv 1b from any tag any b: recv 1b from 0 tag 5 c: calc 10000 c requires a";
    assert_eq!(
        ends(&["a: send 1b to 1 tag 5 c: calc 50000 d: send 1b to 1 tag 5 c requires a d requires c", receiver])[1],
        57_000
    );
    // Collective traffic has a separate space.
    let bodies = [
        "send 1b to 1 tag 5 space 1 a: calc 50000 b: send 1b to 1 tag 6 b requires a",
        "a: recv 1b from any tag any b: recv 1b from 0 tag 5 space 1 c: calc 10 c requires b",
    ];
    assert_eq!(ends(&bodies)[0], 53_000);
    let error = outcome_with(&Options::default(), &["send 1b to 1 tag 5 space 1", "recv 1b from any tag any"]);
    assert!(matches!(error, Err(RunError::Deadlock(_))));
}

#[test]
fn a_rendezvous_ends_when_it_is_matched() {
    // Posted at 0, matched when the message arrives at 4000; the receiver reads 69999 bytes from then on.
    let receiver = "recv 70000b from 0";
    assert_eq!(ends(&["a: send 70000b to 1 b: calc 5 b requires a", receiver]), [4005, 4000 + 1500 + 69_999 * 6]);
    // The receive is posted only at 1000000, when the CPU is free. It is done at once, and so is the sender.
    let receiver = "a: calc 1000000 b: recv 70000b from 0 c: calc 7 b requires a c requires b";
    let arrival_end = 1_000_000 + 1500 + 69_999 * 6;
    assert_eq!(ends(&["a: send 70000b to 1 b: calc 5 b requires a", receiver])[1], arrival_end + 7);
}

#[test]
fn what_cannot_finish_says_who_waits_for_what() {
    let bodies = ["a: recv 8b from 1 tag 3 b: send 8b to 1 tag 4 b requires a", "a: recv 8b from 0 tag 4", "calc 5"];
    let error = outcome_with(&Options::default(), &bodies).unwrap_err();
    let expected = "the schedule cannot finish: 1 of 4 operations are done
  rank 0 waits for a message of operation 1 (recv 8b from 1 tag 3); 1 more operations need these
  rank 1 waits for a message of operation 1 (recv 8b from 0 tag 4)";
    assert_eq!(error.to_string(), expected);
    let error = outcome_with(&Options::default(), &["send 70000b to 1 tag 1", ""]).unwrap_err();
    let expected = "the schedule cannot finish: 0 of 1 operations are done
  rank 0 waits for the receive of operation 1 (send 70000b to 1 tag 1)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(outcome_with(&Options::default(), &["send 7b to 1 tag 1", ""]).unwrap().unreceived, [0]);
}

#[test]
fn what_the_model_cannot_do_is_an_error() {
    let error = outcome_with(&Options::default(), &["calc 5 put 8b to 0 tag 1"]).unwrap_err();
    assert_eq!(error.to_string(), "rank 0, operation 2 (put 8b to 0 tag 1): only the model nic has cards that do this");
    let error = outcome_with(&Options::default(), &["calc 18446744073709551 calc 18446744073709551"]).unwrap_err();
    let expected = "rank 0, operation 2 (calc 18446744073709551) ends after more than 2^64 picoseconds";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn noise_delays_and_is_the_same_for_the_same_seed() {
    let bodies = ["a: calc 1000000 b: send 1b to 1 b requires a", "a: calc 1000000 b: recv 1b from 0 b requires a"];
    let run = |seed, co_scheduled| {
        let detours = Detours::Poisson { interval: Time::from_ns(9_000), length: Time::from_ns(1_000) };
        let options = Options { noise: Some(Noise { detours, seed, co_scheduled, ranks: None }), ..Options::default() };
        outcome_with(&options, &bodies).unwrap().ends
    };
    let quiet = outcome_with(&Options::default(), &bodies).unwrap().ends;
    let noisy = run(1, false);
    assert!(noisy.iter().zip(&quiet).all(|(noisy, quiet)| noisy.as_ps() >= quiet.as_ps() + 70_000_000), "{noisy:?}");
    assert_eq!(noisy, run(1, false));
    assert_ne!(noisy, run(2, false));
    // Both ranks calculate for the same time. Then one takes o + L longer, the other o.
    let bodies = ["calc 1000000", "calc 1000000"];
    let detours = Detours::Poisson { interval: Time::from_ns(9_000), length: Time::from_ns(500) };
    let options =
        Options { noise: Some(Noise { detours, seed: 5, co_scheduled: true, ranks: None }), ..Options::default() };
    let ends = outcome_with(&options, &bodies).unwrap().ends;
    assert!(ends[0] == ends[1] && ends[0] > Time::from_ns(1_000_000), "{ends:?}");
}

#[test]
fn the_critical_path_leads_from_the_end_to_the_beginning() {
    // The message is sent after 100 ns and arrives 1500 + 2500 later; reception takes 1500 + 999 * 6, and 700 ns
    // follow.
    let text = "num_ranks 2 rank 0 { a: calc 100 b: send 1000b to 1 b requires a }
        rank 1 { a: recv 1000b from 0 b: calc 700 b requires a }";
    let schedule = read(text.as_bytes()).unwrap();
    let options = Options { record: true, ..Options::default() };
    let outcome = run(&schedule, &LogGops::default(), &options).unwrap();
    let path = critical_path(&schedule, &LogGops::default(), &outcome);
    let ns = |time: Time| time.as_ps() / 1000;
    let steps: Vec<_> = path.steps.iter().map(|step| (step.rank, step.part, ns(step.start), ns(step.end))).collect();
    let expected = [
        (0, Part::Compute, 0, 100),
        (0, Part::Flight, 100, 4100),
        (1, Part::Receive, 4100, 4100 + 1500 + 5994),
        (1, Part::Compute, 11_594, 12_294),
    ];
    assert_eq!(steps, expected);
    let split = [path.compute, path.overhead, path.latency, path.gap, path.bandwidth, path.waiting].map(ns);
    assert_eq!(split, [800, 3000, 2500, 0, 5994, 0]);
}

#[test]
fn critical_paths_have_no_holes() {
    for (bytes, sends) in [(8, 3), (70_000, 2)] {
        let body = format!("send {bytes}b to 1 ").repeat(sends);
        let receives = format!("recv {bytes}b from 0 ").repeat(sends);
        let text = format!("num_ranks 2 rank 0 {{ {body} }} rank 1 {{ {receives} }}");
        let schedule = read(text.as_bytes()).unwrap();
        let options = Options { record: true, ..Options::default() };
        let outcome = run(&schedule, &LogGops::default(), &options).unwrap();
        let path = critical_path(&schedule, &LogGops::default(), &outcome);
        assert!(path.steps.windows(2).all(|pair| pair[0].end == pair[1].start), "{path:?}");
        let sum = path.compute + path.overhead + path.latency + path.gap + path.bandwidth + path.waiting;
        assert_eq!((sum, path.waiting), (outcome.end(), Time::ZERO));
    }
}

#[test]
fn queue_lengths_are_counted() {
    let bodies =
        ["recv 1b from 1 tag 1 recv 1b from 1 tag 2", "send 1b to 0 tag 1 send 1b to 0 tag 2 send 1b to 0 tag 3"];
    let queues = outcome_with(&Options::default(), &bodies).unwrap().details.queues;
    assert_eq!((queues.longest_posted, queues.longest_unexpected), (2, 1));
    assert_eq!((queues.posted_searches, queues.posted_lengths), (3, 2 + 1));
    assert_eq!((queues.unexpected_searches, queues.unexpected_lengths), (2, 0));
}

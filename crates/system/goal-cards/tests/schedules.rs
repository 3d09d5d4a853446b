// SPDX-License-Identifier: Apache-2.0
//! Schedules on the cards of the paper's integrated machine. Expected times are explicit sums of its parameters.
//! `crates/tools/spinkit/tests/spinrun/offload.rs` contains the tests with handlers, as it can compile them.

#[path = "../../cluster/tests/sc17/mod.rs"]
mod sc17;

use std::path::Path;

use goal_cards::{Outcome, RunError, SparseMemory, World, buffer};
use machine::Machine;
use sc17::{CAM, DMA, DMA_8, MATCH, NETWORK, O, POLL, PORT_8, PUT_8};
use sim::Time;
use sim::trace::Trace;

fn machine(set: &[&str]) -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    Machine::load("sc17-int", &[folder], &set).unwrap()
}

/// Runs the schedule `text` and calls `look` with memory and outcome.
fn with<R>(
    text: &str,
    eager: u64,
    set: &[&str],
    look: impl FnOnce(&SparseMemory, Outcome) -> R,
) -> Result<R, RunError> {
    let schedule = goal::text::read(text.as_bytes()).unwrap();
    let mut world =
        World::new(&schedule, nic::CardModel::new(machine(set)).unwrap(), None, eager, Trace::off(), Box::new(|_| ()))?;
    let outcome = world.run()?;
    Ok(look(world.memory(), outcome))
}

fn ends(text: &str) -> Vec<u64> {
    with(text, 65_535, &[], |_, outcome| outcome.ends.iter().map(|end| end.as_ps()).collect()).unwrap()
}

fn error(text: &str) -> String {
    with(text, 65_535, &[], |_, _| ()).unwrap_err().to_string()
}

fn bytes(memory: &SparseMemory, rank: u32, tag: u32, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    memory.load(rank, buffer(tag), &mut out);
    out
}

/// Returns a ping-pong whose answer is a triggered put.
fn ping_pong(size: u64) -> String {
    format!(
        "num_ranks 2
         rank 0 {{
           a: append {size}b to priority_list allowed 1 ct 0 tag 10
           p: put {size}b to 1 tag 20
           t: test 0 for 1
           p requires a
           t requires p
         }}
         rank 1 {{
           a: append {size}b to priority_list allowed 0 ct 7 tag 20
           p: tput {size}b to 0 when 7 reaches 1 tag 10
           p requires a
         }}"
    )
}

#[test]
fn ping_pong_takes_as_long_as_under_spinrun() {
    // docs/validation.md: 710.136 ns and 1091.056 ns from the call of PtlPut; before it, o for the append.
    assert_eq!(2 * PUT_8 + O + POLL, 710_136);
    assert_eq!(ends(&ping_pong(8)), [O + 710_136, 2 * O]);
    assert_eq!(ends(&ping_pong(8192)), [O + 1_091_056, 2 * O]);
}

#[test]
fn on_rdma_cards_the_cpu_answers() {
    let text = "num_ranks 2
        rank 0 { a: append 8b to priority_list allowed any ct 0 tag 1
                 p: put 8b to 1 tag 1
                 t: test 0 for 1
                 p requires a
                 t requires p }
        rank 1 { a: append 8b to priority_list allowed any ct 0 tag 1
                 t: test 0 for 1
                 p: put 8b to 0 tag 1
                 t requires a
                 p requires t }";
    // docs/validation.md: 886.136 ns; entries are in the library and free.
    let end = with(text, 65_535, &["nic.kind=rdma"], |_, outcome| outcome.ends[0]).unwrap();
    assert_eq!(end.as_ps(), 886_136);
}

#[test]
fn a_get_and_an_acknowledged_put() {
    let entry = "rank 1 { append 8b to priority_list allowed 0 ct 0 tag 5 }";
    let get =
        ends(&format!("num_ranks 2 rank 0 {{ g: get 8b from 1 ct 3 tag 5 t: test 3 for 1 t requires g }} {entry}"));
    let request = NETWORK + MATCH;
    let reply = 2 * DMA + DMA_8 + PORT_8 + NETWORK + CAM + DMA + DMA_8;
    assert_eq!(get, [O + request + reply + POLL, O]);
    let put = ends(&format!("num_ranks 2 rank 0 {{ p: put 8b to 1 ct 3 tag 5 t: test 3 for 1 t requires p }} {entry}"));
    // An empty DMA write notifies the host.
    assert_eq!(put, [O + PUT_8 + NETWORK + CAM + DMA + POLL, O]);
}

#[test]
fn data_goes_down_a_chain_of_triggered_puts() {
    let mut text = String::from("num_ranks 5 rank 0 { put 5000b to 1 tag 3 }");
    for rank in 1..5 {
        text += &format!(" rank {rank} {{ append 5000b to priority_list allowed {} ct 0 tag 3", rank - 1);
        if rank < 4 {
            text += &format!(" tput 5000b to {} when 0 reaches 1 tag 3", rank + 1);
        }
        text += " test 0 for 1 }";
    }
    with(&text, 65_535, &[], |memory, outcome| {
        for rank in 1..5 {
            assert_eq!(bytes(memory, rank, 3, 5000), bytes(memory, 0, 3, 5000), "rank {rank}");
        }
        assert_ne!(bytes(memory, 4, 3, 5001), bytes(memory, 0, 3, 5001));
        assert_eq!((outcome.details.messages, outcome.details.packets, outcome.details.bytes), (4, 8, 20_000));
    })
    .unwrap();
}

#[test]
fn messages_that_are_waited_for() {
    let text = "num_ranks 2 rank 0 { send 8b to 1 tag 4 } rank 1 { recv 8b from 0 tag 4 }";
    assert_eq!(ends(text), [O, O + PUT_8 + POLL]);
}

/// A CPU polls from the start of its wait; the next poll finds an event that occurs during a poll.
#[test]
fn cpus_that_poll_notice_messages_at_their_next_poll() {
    let polling = |text: &str| {
        let schedule = goal::text::read(text.as_bytes()).unwrap();
        let mut world =
            World::new(&schedule, nic::CardModel::new(machine(&[])).unwrap(), None, 7, Trace::off(), Box::new(|_| ()))
                .unwrap();
        world.set_polling();
        world.run().unwrap().ends.iter().map(|end| end.as_ps()).collect::<Vec<u64>>()
    };
    let next = |since: u64, at: u64| since + (at - since).next_multiple_of(POLL);
    let text = "num_ranks 2 rank 0 { send 7b to 1 tag 4 } rank 1 { recv 7b from 0 tag 4 }";
    let there = ends(text)[1] - POLL;
    assert_ne!(there % POLL, O % POLL);
    assert_eq!(polling(text), [O, next(O, there) + POLL]);
    // Polls also find the announcement of a large message, and the end of its data.
    let text = "num_ranks 2 rank 0 { send 8b to 1 tag 4 } rank 1 { recv 8b from 0 tag 4 }";
    let seen = next(O, 2 * O + NETWORK + MATCH + DMA) + POLL;
    let asked = seen + O + NETWORK + MATCH;
    let left = asked + 2 * DMA + DMA_8 + PORT_8;
    let there = left + NETWORK + CAM + DMA + DMA_8;
    assert_eq!(polling(text), [next(2 * O, left + DMA) + POLL, next(seen + O, there) + POLL]);
    // A CPU that was busy meanwhile polls at once.
    let text = "num_ranks 2
        rank 0 { send 7b to 1 tag 4 }
        rank 1 { r: recv 7b from 0 tag 4 c: calc 1000 }";
    assert_eq!(polling(text), ends(text));
}

#[test]
fn unexpected_messages_are_copied() {
    let text = "num_ranks 2
        rank 0 { send 8b to 1 tag 4 }
        rank 1 { c: calc 1000 r: recv 8b from any tag any r requires c }";
    // Ten lines are in flight: 51 ns * 8 B / 640 B, rounded up.
    let copy = 51_000 + 638;
    assert_eq!(ends(text), [O, 1_000_000 + O + POLL + copy]);
    with(text, 65_535, &[], |memory, _| assert_eq!(bytes(memory, 1, u32::MAX - 1, 8), bytes(memory, 0, 4, 8))).unwrap();
}

#[test]
fn large_messages_are_fetched() {
    let text = "num_ranks 2 rank 0 { send 8b to 1 tag 4 } rank 1 { recv 8b from 0 tag 4 }";
    let announced = 2 * O + NETWORK + MATCH + DMA;
    let asked = announced + POLL + O + NETWORK + MATCH;
    let left = asked + 2 * DMA + DMA_8 + PORT_8;
    let there = left + NETWORK + CAM + DMA + DMA_8;
    with(text, 7, &[], |memory, outcome| {
        assert_eq!(outcome.ends, [Time::from_ps(left + DMA + POLL), Time::from_ps(there + POLL)]);
        assert_eq!(bytes(memory, 1, 4, 8), bytes(memory, 0, 4, 8));
    })
    .unwrap();
}

#[test]
fn messages_and_the_card_s_operations_mix() {
    let text = include_str!("../../../../tests/schedules/ring.goal");
    with(text, 65_535, &[], |memory, outcome| {
        assert_eq!(bytes(memory, 0, 5, 64), bytes(memory, 1, 5, 64));
        assert_eq!(bytes(memory, 0, 9, 4096), bytes(memory, 2, 9, 4096));
        // The message, the token twice, its acknowledgement, the get and its reply.
        assert_eq!((outcome.details.messages, outcome.details.dropped, outcome.details.untriggered), (6, 0, 0));
        // The token returns before rank 0 finishes computing; then the get of a full packet follows.
        let packet = |rate: u64| (4096 * rate).div_ceil(1000);
        let get = NETWORK + MATCH + 2 * DMA + packet(6_700) + packet(20_000) + NETWORK + CAM + DMA + packet(6_700);
        assert_eq!(outcome.ends[0].as_ps(), O + O + 2_000_000 + POLL + O + get + POLL);
    })
    .unwrap();
}

#[test]
fn spaces_and_tags_and_sources_are_told_apart() {
    let text = "num_ranks 3
        rank 0 { send 8b to 2 tag 4 space 1 send 8b to 2 tag 5 send 8b to 2 tag 4 }
        rank 1 { send 8b to 2 tag 4 }
        rank 2 { a: recv 8b from 1 tag 4
                 b: recv 8b from any tag any
                 c: recv 8b from 0 tag any
                 d: recv 8b from 0 tag 4 space 1
                 b requires a
                 c requires b }";
    assert_eq!(ends(text).len(), 3);
}

#[test]
fn a_large_unexpected_volume_renews_the_overflow_entries() {
    // Three messages fill a half of the overflow memory, as one more must always fit.
    let sends: String = (0..5).map(|tag| format!("send 1000b to 1 tag {tag} ")).collect();
    let recvs: String = (0..5).map(|tag| format!("r{tag}: recv 1000b from 0 tag {tag} r{tag} requires c ")).collect();
    let text = format!("num_ranks 2 rank 0 {{ {sends} }} rank 1 {{ c: calc 100000 {recvs} }}");
    with(&text, (1 << 31) - 2500, &[], |memory, _| {
        for tag in 0..5 {
            assert_eq!(bytes(memory, 1, tag, 1000), bytes(memory, 0, tag, 1000), "tag {tag}");
        }
    })
    .unwrap();
}

#[test]
fn a_waiting_test_leaves_the_cpu_to_others() {
    let text = "num_ranks 2
        rank 0 { t: test 0 for 1 c: calc 100 t2: calc 10 t2 requires t }
        rank 1 { put 8b to 0 tag 1 }";
    // The message is dropped, as no entry matches. The test waits forever, the calculation does not.
    let text_ok = text.replace("c: calc 100", "a: append 8b to priority_list allowed 1 ct 0 tag 1 c: calc 100");
    let end = O + PUT_8 + POLL + 10_000;
    assert_eq!(ends(&text_ok), [end, O]);
    let stuck = error(text);
    assert!(stuck.contains("2 of 4 operations are done at "), "{stuck}");
    assert!(stuck.contains("; 1 messages found no entry and were dropped"), "{stuck}");
    let wait = "\n  rank 0 waits for counter 0, which is at 0 of 1, of operation 1 (test 0 for 1); 1 more operations need these";
    assert!(stuck.ends_with(wait), "{stuck}");
}

#[test]
fn what_never_comes_is_told_rank_by_rank() {
    let stuck = error("num_ranks 2 rank 0 { send 70000b to 1 tag 0 } rank 1 { recv 8b from 0 tag 1 }");
    assert!(stuck.contains("rank 0 waits for the receive of operation 1 (send 70000b to 1 tag 0)"), "{stuck}");
    assert!(stuck.contains("rank 1 waits for a message of operation 1 (recv 8b from 0 tag 1)"), "{stuck}");
}

#[test]
fn what_cards_cannot_do_is_an_error_with_its_place() {
    for (operation, complaint) in [
        ("put 8b to 0 arg2 5 tag 1", "rank 0, operation 1 (put 8b to 0 arg2 5 tag 1): arg2: a put carries one word"),
        (
            "append 8b to priority_list hh f allowed 0 ct 0 tag 1",
            "handler 'f', but no device program was given (--device)",
        ),
        ("append 8b to priority_list mem 8 allowed 0 ct 0 tag 1", "are for handlers, and the entry has none"),
        ("put 4294967297b to 0 tag 1", "at most 4 GiB"),
        ("send 8b to 0 tag 1 nic 1", "nic 1: a rank has one card"),
        ("calc 10000000000000000", "ends after more than 2^63 picoseconds"),
    ] {
        let error = error(&format!("num_ranks 1 rank 0 {{ {operation} }}"));
        assert!(error.contains(complaint), "{error}");
    }
    let many: String = (0..16_385).map(|ct| format!("tput 1b to 0 when 0 reaches 1 ct {} tag 0 ", ct % 7)).collect();
    let error = error(&format!("num_ranks 1 rank 0 {{ {many} }}"));
    assert!(error.contains("operation 16385 (tput") && error.contains("PtlTriggeredPut with NoSpace at "), "{error}");
}

#[test]
fn operations_that_are_never_triggered_are_counted() {
    let text = "num_ranks 1 rank 0 { tput 8b to 0 when 4 reaches 2 tag 1 }";
    let untriggered = with(text, 0, &[], |_, outcome| outcome.details.untriggered).unwrap();
    assert_eq!(untriggered, 1);
}

#[test]
fn a_schedule_has_no_more_cpus_than_a_host_has_cores() {
    let text = "num_ranks 1 rank 0 { calc 10 cpu 0 calc 20 cpu 1 calc 30 cpu 2 }";
    let end = |cores: &str| with(text, 0, &[cores], |_, outcome| outcome.ends[0]);
    assert_eq!(end("host.cores=3").unwrap(), Time::from_ns(30));
    let refused = end("host.cores=2").unwrap_err().to_string();
    let expected = "the schedule uses 3 CPUs of a rank (cpu 0 to 2), and hosts of this machine have 2 (host.cores)";
    assert_eq!(refused, expected);
}

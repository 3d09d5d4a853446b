// SPDX-License-Identifier: Apache-2.0
//! Threads that poll without success (`spin_idle`), and many events at once (`spin_eq_take`).

mod common;

use common::{CARDS, PORTALS, Program, compile, job, run_with, spec};
use ranks::JobSpec;
use sim::Time;
use world::End;

/// Duration of a poll on the default machine.
const POLL: Time = Time::from_ns(51);

/// A program with one logical, matching interface, whose entry 0 accepts and counts puts of up to 64 bytes.
fn program(text: &str) -> Program {
    let start = r#"
        static ptl_handle_ct_t ct;
        static char from[64] = {1}, to[64];
        static ptl_handle_md_t md;
        __attribute__((unused)) static void open_interface(unsigned options, ptl_size_t events) {
            ptl_pt_index_t index;
            ptl_handle_me_t handle;
            CHECK(PtlInit());
            CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
            CHECK(spin_set_map(ni));
            CHECK(PtlEQAlloc(ni, events, &eq));
            CHECK(PtlCTAlloc(ni, &ct));
            CHECK(PtlPTAlloc(ni, 0, eq, 0, &index));
            ptl_me_t me = {.start = to, .length = 64, .ct_handle = ct, .uid = PTL_UID_ANY, .match_id.rank = PTL_RANK_ANY,
                           .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM | options};
            CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
            ptl_md_t data = {.start = from, .length = 64, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            CHECK(PtlMDBind(ni, &data, &md));
            CHECK(spin_barrier());
        }
        __attribute__((unused)) static void put(unsigned rank, uint64_t number) {
            ptl_process_t at = {.rank = rank};
            CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, at, 0, 0, 0, NULL, number));
        }
        __attribute__((unused)) static pthread_t thread(void *(*run)(void *), void *argument) {
            pthread_t made;
            if (pthread_create(&made, NULL, run, argument)) exit(2);
            return made;
        }
    "#;
    compile(&format!("{PORTALS}{start}{text}"))
}

/// Returns the time at which rank 1 gets a message that rank 0 sends after computing for `compute_ns`, and the number
/// of rank 1's calls.
fn wait_for_message(how: &str, compute_ns: u64, card: &str) -> (Time, u64) {
    let text = r#"
        int main(void) {
            open_interface(0, 64);
            if (spin_rank() == 0) {
                spin_host_compute(COMPUTE);
                put(1, 7);
                spin_host_compute(100000); /* the message leaves */
                return 0;
            }
            ptl_event_t event;
            HOW
            if (event.type != PTL_EVENT_PUT || event.hdr_data != 7) return 3;
            return 0;
        }"#;
    let program = program(&text.replace("COMPUTE", &compute_ns.to_string()).replace("HOW", how));
    let machines = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let machine = machine::Machine::load("sc17-int", &[machines], &[card.to_owned()]).unwrap();
    let silent =
        Box::new(|message: world::Message<'_>| assert!(!matches!(message, world::Message::Warning(_)), "{message:?}"));
    let mut world =
        world::World::new(nic::CardModel::new(machine).unwrap(), job(&program, 2), sim::trace::Trace::off(), silent)
            .unwrap();
    assert_eq!(world.run().unwrap(), End::Finished, "{how}");
    (world.rank_ends().nth(1).unwrap(), world.events())
}

const LOOP: &str = "while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) spin_idle();";

/// A thread that waits in `PtlEQWait` pays one poll after the event, except on rdma cards, where its CPU puts the event
/// into the queue. A parked thread begins its polls at fixed times, so it pays for the rest of the present poll, and
/// then for `PtlEQGet`.
#[test]
fn a_polling_loop_takes_at_most_one_poll_longer_than_a_wait() {
    for card in CARDS {
        for compute in [1, 30, 50, 1000, 123_457] {
            let (wait, _) = wait_for_message("CHECK(PtlEQWait(eq, &event));", compute, card);
            let (polls, _) = wait_for_message(LOOP, compute, card);
            let paid = if card == "nic.kind=rdma" { Time::ZERO } else { POLL };
            let (event, got) = (wait - paid, polls - POLL);
            assert!(event <= got && got < event + POLL, "{card}, {compute} ns: {wait} by waiting, {polls} by polls");
            if paid == POLL {
                // The first poll begins when the entry is appended, which takes one post.
                assert_eq!((got - Time::from_ns(65)).as_ps() % POLL.as_ps(), 0, "{card}: {got}");
            }
        }
    }
}

/// Waits for a message of 16 packets. The packets are written before the event, and event polls ignore them. Calculated
/// by hand: two calls of `spin_idle_events`, the second of which parks, and the first poll after the event sees it.
#[test]
fn packets_do_not_wake_event_polls() {
    let text = r#"
        int main(void) {
            static char data[65536];
            open_interface(0, 64);
            ptl_handle_md_t all;
            ptl_md_t md = {.start = data, .length = sizeof data, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            CHECK(PtlMDBind(ni, &md, &all));
            ptl_me_t me = {.start = data, .length = sizeof data, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY, .match_bits = 1,
                           .match_id.rank = PTL_RANK_ANY, .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE};
            ptl_handle_me_t entry;
            CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &entry));
            CHECK(spin_barrier());
            if (spin_rank() == 0) {
                ptl_process_t to = {.rank = 1};
                spin_host_compute(COMPUTE);
                CHECK(PtlPut(all, 0, sizeof data, PTL_NO_ACK_REQ, to, 0, 1, 0, NULL, 7));
                spin_host_compute(100000); /* the message leaves */
                return 0;
            }
            ptl_event_t event;
            int idles = 0;
            HOW
            return event.type == PTL_EVENT_PUT && event.mlength == sizeof data && IDLES ? 0 : 3;
        }"#;
    for card in CARDS {
        for compute in [1000, 1017, 1034] {
            let end = |how: &str, idles: &str| {
                let text = text.replace("COMPUTE", &compute.to_string()).replace("HOW", how).replace("IDLES", idles);
                let run = run_with(spec(&program(&text), 2), &[card]);
                assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}, {how}");
                run.ends[1]
            };
            let polls = "while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) { idles++; IDLE(); }";
            let wait = end("CHECK(PtlEQWait(eq, &event));", "idles == 0");
            let got = end(&polls.replace("IDLE", "spin_idle_events"), "idles == 2") - POLL;
            // On rdma cards the CPU completes the message, and the start of that does not depend on its polls.
            let event = if card == "nic.kind=rdma" { wait } else { wait - POLL };
            assert!(event <= got && got < event + POLL, "{card}, {compute} ns: {wait} by waiting, {got} by polls");
            if card != "nic.kind=rdma" {
                // The appends of two entries precede the first poll.
                assert_eq!((got - Time::from_ns(65) * 2).as_ps() % POLL.as_ps(), 0, "{card}: {got}");
            }
            // The thread may wait for a write to memory.
            end(&polls.replace("IDLE", "spin_idle"), "idles > 2");
        }
    }
}

/// The loop makes as many calls and events in a second as in ten microseconds.
#[test]
fn longer_waits_take_no_more_events() {
    for card in CARDS {
        let events = |compute| wait_for_message(LOOP, compute, card).1;
        assert_eq!(events(10_000), events(1_000_000_000), "{card}");
    }
}

/// Rank 0 waits, by calls that are no polls, for an action of rank 1 after three unsuccessful polls, so events are
/// always pending. The second and third poll park rank 1 until rank 0 has made 1,000 to 2,000 calls of 100 ns each;
/// some forty calls are made at the start.
#[test]
fn parked_threads_resume_while_others_make_calls() {
    let program = program(
        r#"
        int main(void) {
            ptl_event_t event;
            open_interface(0, 64);
            if (spin_rank() == 0) {
                while (((volatile char *)to)[0] == 0) spin_host_compute(100);
                uint64_t now = spin_time_ps();
                return now > 195000000 && now < 400500000 ? 0 : 3;
            }
            for (int i = 0; i < 3; i++) {
                if (PtlEQGet(eq, &event) != PTL_EQ_EMPTY) return 4;
                spin_idle();
            }
            put(0, 7);
            spin_host_compute(10000); /* the message leaves */
            return 0;
        }"#,
    );
    for card in CARDS {
        let run = run_with(spec(&program, 2), &[card]);
        assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}");
    }
}

/// Waits for a message with each kind of poll, and in memory, as in `PtlEQWait`.
#[test]
fn every_kind_of_poll_parks() {
    let rest = "CHECK(PtlEQWait(eq, &event));";
    let kinds = [
        "unsigned at; while (PtlEQPoll(&eq, 1, 0, &event, &at) == PTL_EQ_EMPTY) spin_idle();".to_owned(),
        "unsigned count; while (spin_eq_take(eq, &event, 1, &count) == PTL_EQ_EMPTY) spin_idle();".to_owned(),
        format!("ptl_ct_event_t c; while (PtlCTGet(ct, &c) == PTL_OK && c.success == 0) spin_idle(); {rest}"),
        format!(
            "ptl_ct_event_t c; ptl_size_t test = 1; unsigned at; \
             while (PtlCTPoll(&ct, &test, 1, 0, &c, &at) == PTL_CT_NONE_REACHED) spin_idle(); {rest}"
        ),
        format!("while (((volatile char *)to)[0] == 0) spin_idle();\n{rest}"),
    ];
    for card in CARDS {
        let (wait, _) = wait_for_message(rest, 1_000_000, card);
        for how in &kinds {
            let (end, events) = wait_for_message(how, 1_000_000, card);
            assert!(end >= wait && end < wait + POLL * 3, "{card}, {how}: {end} instead of {wait}");
            assert!(events < 100, "{card}, {how}: {events} events");
        }
    }
}

/// Two ranks send a message back and forth. Calculated by hand: for each message, polling takes the time of a wait and
/// less than one poll more. On rdma cards the poll that gets the event is additional, because the CPU completed the
/// message before.
#[test]
fn ping_pong_takes_the_time_of_its_polls() {
    let text = r#"
        int main(void) {
            ptl_event_t event;
            open_interface(0, 64);
            for (int i = 0; i < 50; i++) {
                if (spin_rank() == i % 2) {
                    put(1 - spin_rank(), i);
                } else {
                    HOW
                    if (event.hdr_data != (unsigned)i) return 3;
                }
            }
            spin_host_compute(100000); /* the last message leaves */
            return 0;
        }"#;
    let end = |how: &str, card| {
        let runs = [0, 1].map(|_| run_with(spec(&program(&text.replace("HOW", how)), 2), &[card]));
        assert_eq!((&runs[0].end, &runs[0].ends), (&End::Finished, &runs[1].ends));
        runs[0].ends[1]
    };
    for card in CARDS {
        let (wait, polls) = (end("CHECK(PtlEQWait(eq, &event));", card), end(LOOP, card));
        let more = if card == "nic.kind=rdma" { POLL * 50 } else { Time::ZERO };
        assert!(polls >= wait + more && polls < wait + more + POLL * 50, "{card}: {wait} by waiting, {polls} by polls");
    }
}

/// Runs one rank with this body of `main`.
fn alone(body: &str) -> common::Run {
    let main = format!("int main(void) {{ open_interface(0, 64); ptl_event_t event; (void)event; {body} return 0; }}");
    run_with(spec(&program(&main), 1), &[])
}

/// Times calculated by hand: the append before the loop takes one post, 65 ns.
#[test]
fn loops_with_a_limit_of_tries_end() {
    let post = Time::from_ns(65);
    for tries in [1, 2, 3, 500] {
        let run = alone(&format!("for (int i = 0; i < {tries}; i++) spin_idle();"));
        assert_eq!((run.end, run.ends), (End::Finished, vec![post + POLL * tries]), "{tries} tries");
        let run =
            alone(&format!("for (int i = 0; i < {tries}; i++) if (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) spin_idle();"));
        assert_eq!((run.end, run.ends), (End::Finished, vec![post + POLL * (2 * tries)]), "{tries} tries");
    }
}

/// The time-out of a wait that ended earlier is an obsolete event.
#[test]
fn a_loop_after_a_wait_with_a_time_limit_takes_its_own_time() {
    let ends = |wait: &str| {
        let run =
            alone(&format!("unsigned which; (void)which; put(0, 1); {wait} for (int i = 0; i < 5; i++) spin_idle();"));
        assert_eq!(run.end, End::Finished);
        run.ends
    };
    let limited = ends("CHECK(PtlEQPoll(&eq, 1, 1, &event, &which));");
    assert_eq!(limited, ends("CHECK(PtlEQWait(eq, &event));"));
    assert!(limited[0] < Time::from_ns(10_000), "{limited:?}");
}

#[test]
fn loops_with_a_simulated_deadline_end_on_time() {
    let run = alone("while (spin_time_ps() < 10000000) if (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) spin_idle();");
    // First iteration at or after 10 us; each takes two polls: 65 ns + 98 * 102 ns.
    assert_eq!((run.end, run.ends), (End::Finished, vec![Time::from_ns(65 + 98 * 102)]));
}

#[test]
fn endless_polling_is_a_deadlock() {
    let text = r#"
        int main(void) {
            open_interface(0, 64);
            ptl_event_t event;
            spin_host_compute(1000);
            if (spin_rank() == 1) CHECK(PtlEQWait(eq, &event));
            while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) spin_idle();
            return 0;
        }"#;
    let program = program(text);
    // The ranks repeat themselves, so the limit is not reached.
    let endless = JobSpec { poll_limit: Some(u64::MAX), ..spec(&program, 3) };
    let End::Deadlock { at, waits, polls: count } = run_with(endless, &[]).end else { panic!("no deadlock") };
    assert!(waits[1].starts_with("rank 1 waits in PtlEQWait for an event in queue"), "{waits:?}");
    let polls = |rank: usize| waits[rank] == format!("rank {rank} polls for events that nothing will bring");
    assert!(polls(0) && polls(2), "{waits:?}");
    // Time of parking after two polls of the queue and one in between, not of the last unsuccessful release.
    assert_eq!(at, Time::from_ns(65 + 1000) + POLL * 3);
    assert_eq!(count, 0, "there is a doubt");
}

/// Rank 0 does work that the card does not see, and polls 5,000 times, before it sends the message for rank 1.
#[test]
fn the_limit_of_polls_can_be_raised() {
    let text = r#"
        int main(void) {
            open_interface(0, 64);
            ptl_event_t event;
            if (spin_rank() == 1) {
                CHECK(PtlEQWait(eq, &event));
                return 0;
            }
            for (int i = 0; i < 5000; i++) {
                if (PtlEQGet(eq, &event) != PTL_EQ_EMPTY) return 3;
                spin_idle();
            }
            put(1, 7);
            spin_host_compute(100000); /* the message leaves */
            return 0;
        }"#;
    let program = program(text);
    let end = |poll_limit| run_with(JobSpec { poll_limit: Some(poll_limit), ..spec(&program, 2) }, &[]).end;
    assert_eq!(end(10_000), End::Finished);
    assert!(matches!(end(2000), End::Deadlock { polls: 2001, .. }));
    // Each thread makes at least 1000 polls.
    assert!(matches!(end(1), End::Deadlock { polls: 1001, .. }));
}

/// Thread 0 is parked while thread 1 computes, waits, sets the flag of thread 0, and makes no further call.
#[test]
fn a_memory_write_by_another_thread_ends_a_loop() {
    let text = r#"
        static volatile int done;
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static void *work(void *argument) {
            AHEAD
            pthread_mutex_lock(&lock);
            done = 1;
            pthread_mutex_unlock(&lock);
            return argument;
        }
        int main(void) {
            open_interface(0, 64);
            pthread_t worker = thread(work, NULL);
            for (int seen = 0; !seen;) {
                pthread_mutex_lock(&lock);
                seen = done;
                pthread_mutex_unlock(&lock);
                if (!seen) spin_idle();
            }
            pthread_join(worker, NULL);
            return 0;
        }"#;
    let ends = |ahead: &str| {
        let program = program(&text.replace("AHEAD", ahead));
        let runs = [0, 1, 2].map(|_| run_with(spec(&program, 1), &[]));
        assert!(runs.iter().all(|run| run.end == End::Finished && run.warnings.is_empty()), "{ahead}");
        assert!(runs.iter().all(|run| run.ends == runs[0].ends), "{ahead}");
        runs[0].ends[0]
    };
    // Polls begin at 65 ns + k * 51 ns; k is 20 for the first one after the flag is set at 1065 ns.
    assert_eq!(ends("spin_host_compute(1000);"), Time::from_ns(65) + POLL * 20);
    assert_eq!(ends("spin_host_compute(1000000);"), Time::from_ns(65) + POLL * 19608);
    // Its own message wakes the worker.
    let end = ends("ptl_event_t event; put(0, 1); CHECK(PtlEQWait(eq, &event));");
    assert_eq!((end - Time::from_ns(65)).as_ps() % POLL.as_ps(), 0);
}

/// All threads of a rank poll: the message wakes all, and the thread that takes it ends the others.
#[test]
fn many_threads_poll_one_queue() {
    let text = r#"
        static volatile int got;
        static void *poll(void *argument) {
            ptl_event_t event;
            while (!got) {
                if (PtlEQGet(eq, &event) == PTL_OK) got = event.hdr_data;
                else spin_idle();
            }
            return argument;
        }
        int main(void) {
            open_interface(0, 64);
            if (spin_rank() == 0) {
                spin_host_compute(50000000);
                put(1, 9);
                spin_host_compute(100000); /* the message leaves */
                return 0;
            }
            pthread_t threads[4];
            for (int i = 0; i < 4; i++) threads[i] = thread(poll, NULL);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
            return got != 9;
        }"#;
    let program = program(text);
    for card in CARDS {
        let runs = [0, 1, 2].map(|_| run_with(spec(&program, 2), &[card]));
        assert!(runs.iter().all(|run| run.end == End::Finished && run.ends == runs[0].ends), "{card}");
    }
}

/// Events are taken in order, up to the number present and requested, each for the time of a poll.
#[test]
fn many_events_are_taken_at_once() {
    let text = r#"
        int main(void) {
            open_interface(0, 8);
            if (spin_rank() == 0) {
                for (int i = 0; i < MESSAGES; i++) put(1, i);
                spin_host_compute(1000000); /* the messages leave */
                return 0;
            }
            spin_host_compute(1000000);
            ptl_event_t events[8] = {{0}};
            unsigned count = 77;
            uint64_t start = spin_time_ps();
            BODY
            (void)start;
            return 0;
        }"#;
    let run = |messages: u32, body: &str| {
        let text = text.replace("MESSAGES", &messages.to_string()).replace("BODY", body);
        let run = run_with(spec(&program(&text), 2), &[]);
        assert_eq!(run.end, End::Finished, "{body}");
    };
    run(
        5,
        "CHECK(spin_eq_take(eq, events, 3, &count));
         if (count != 3 || spin_time_ps() - start != 3 * 51000) return 3;
         for (int i = 0; i < 3; i++) if (events[i].hdr_data != (unsigned)i || events[i].type != PTL_EVENT_PUT) return 4;
         CHECK(spin_eq_take(eq, events, 8, &count));
         if (count != 2 || spin_time_ps() - start != 5 * 51000 || events[0].hdr_data != 3 || events[1].hdr_data != 4) return 5;
         if (events[2].hdr_data != 2) return 6; /* what is behind the events stays */
         if (spin_eq_take(eq, events, 8, &count) != PTL_EQ_EMPTY || count != 2) return 7;
         if (spin_time_ps() - start != 6 * 51000) return 8;",
    );
    // A queue of eight events lost the first of ten.
    run(
        10,
        "int rc = spin_eq_take(eq, events, 8, &count);
         if (rc != PTL_EQ_DROPPED || count != 1 || events[0].hdr_data == 0) return 3;
         rc = spin_eq_take(eq, events, 8, &count);
         if (rc != PTL_OK || events[count - 1].hdr_data != 9) return 4;",
    );
    run(
        1,
        "if (spin_eq_take(eq, events, 0, &count) != PTL_ARG_INVALID) return 3;
         if (spin_eq_take(eq, NULL, 8, &count) != PTL_ARG_INVALID) return 4;
         if (spin_eq_take(eq, events, 8, NULL) != PTL_ARG_INVALID) return 5;
         if (spin_eq_take(PTL_EQ_NONE, events, 8, &count) != PTL_ARG_INVALID) return 6;
         CHECK(spin_eq_take(eq, events, 8, &count)); /* nothing was taken by mistake */
         PtlFini();
         if (spin_eq_take(eq, events, 8, &count) != PTL_NO_INIT) return 7;",
    );
}

// SPDX-License-Identifier: Apache-2.0
//! Threads that wait inside the library, and the events that end their waits.

mod common;

use common::{CARDS, PORTALS, Program, compile, run_with, spec};
use sim::Time;
use world::End;

/// Compiles a program with one logical, matching interface; `text` contains the functions and `main`.
fn program(text: &str) -> Program {
    let start = r#"
        static ptl_handle_ct_t ct;
        __attribute__((unused)) static void open_interface(void) {
            CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
            CHECK(spin_set_map(ni));
            CHECK(PtlEQAlloc(ni, 1024, &eq));
            CHECK(PtlCTAlloc(ni, &ct));
        }
        __attribute__((unused)) static ptl_handle_me_t append(void *start, ptl_size_t length, unsigned options, ptl_handle_ct_t counter) {
            ptl_me_t me = {.start = start, .length = length, .ct_handle = counter, .uid = PTL_UID_ANY,
                           .options = PTL_ME_OP_PUT | options, .match_id.rank = PTL_RANK_ANY};
            ptl_handle_me_t handle;
            CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
            return handle;
        }
        __attribute__((unused)) static ptl_handle_md_t bind(void *start, ptl_size_t length) {
            ptl_md_t md = {.start = start, .length = length, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            ptl_handle_md_t handle;
            CHECK(PtlMDBind(ni, &md, &handle));
            return handle;
        }
        __attribute__((unused)) static void put(ptl_handle_md_t md, ptl_size_t length, unsigned rank) {
            ptl_process_t to = {.rank = rank};
            CHECK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0));
        }
        __attribute__((unused)) static pthread_t thread(void *(*run)(void *), void *argument) {
            pthread_t made;
            if (pthread_create(&made, NULL, run, argument)) exit(2);
            return made;
        }
    "#;
    compile(&format!("{PORTALS}{start}{text}"))
}

/// Checks that one rank of a program exits with status 0 on every kind of card, without a warning.
fn finishes_on_all_cards(program: &Program) {
    for card in CARDS {
        let run = run_with(spec(program, 1), &[card]);
        assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}");
    }
}

/// On rdma cards an append waits for the CPU, which first completes a message. The LINK event of the append ends the
/// wait of another thread while the first thread's own wait is ending.
#[test]
fn a_deferred_call_wakes_other_threads() {
    let program = program(
        r#"
        enum { PUTS = 200, ENTRIES = 40 };
        static char from[8], to[8], other[8];
        static void *take_links(void *argument) {
            for (intptr_t i = 0; i < ENTRIES; i++) {
                ptl_event_t event;
                CHECK(PtlEQWait(eq, &event));
                if (event.type != PTL_EVENT_LINK) exit(3);
            }
            return argument;
        }
        int main(void) {
            ptl_pt_index_t index;
            ptl_ct_event_t count;
            CHECK(PtlInit());
            open_interface();
            CHECK(PtlPTAlloc(ni, 0, eq, 0, &index));
            append(to, 8, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM, ct);
            ptl_handle_md_t md = bind(from, 8);
            pthread_t taker = thread(take_links, NULL);
            spin_host_compute(1000);
            for (int i = 0; i < PUTS; i++)
                put(md, 8, 0);
            for (int i = 0; i < ENTRIES; i++) {
                spin_host_compute(50);
                append(other, 8, 0, PTL_CT_NONE);
            }
            pthread_join(taker, NULL);
            CHECK(PtlCTWait(ct, PUTS, &count));
            if (count.success != PUTS) return 4;
            CHECK(PtlNIFini(ni));
            PtlFini();
            return 0;
        }"#,
    );
    finishes_on_all_cards(&program);
}

/// A message without event and counter is in flight; the call waits for its end alone.
#[test]
fn disabling_an_entry_waits_for_silent_messages_too() {
    let program = program(
        r#"
        enum { BYTES = 1 << 20 };
        static char from[BYTES], to[BYTES];
        int main(void) {
            ptl_pt_index_t index;
            CHECK(PtlInit());
            open_interface();
            CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &index));
            append(to, BYTES, 0, PTL_CT_NONE);
            memset(from, 7, BYTES);
            put(bind(from, BYTES), BYTES, 0);
            spin_host_compute(3000);
            if (to[BYTES - 1] != 0) return 3;
            CHECK(PtlPTDisable(ni, index));
            if (to[BYTES - 1] != 7) return 4;
            CHECK(PtlNIFini(ni));
            PtlFini();
            return 0;
        }"#,
    );
    finishes_on_all_cards(&program);
}

/// PtlFini in one thread while others wait: they return PTL_INTERRUPTED, and later calls PTL_NO_INIT.
#[test]
fn the_end_of_the_library_ends_all_waits() {
    let program = program(
        r#"
        enum { WAITERS = 4 };
        static int codes[WAITERS], later[WAITERS];
        static void *wait_for_nothing(void *which) {
            int w = (int)(intptr_t)which;
            ptl_event_t event;
            ptl_ct_event_t count;
            ptl_size_t test = 5;
            unsigned int at;
            switch (w) {
            case 0: codes[w] = PtlEQWait(eq, &event); break;
            case 1: codes[w] = PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &at); break;
            case 2: codes[w] = PtlCTWait(ct, 5, &count); break;
            default: codes[w] = PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &count, &at);
            }
            later[w] = w < 2 ? PtlEQWait(eq, &event) : PtlCTWait(ct, 5, &count);
            return NULL;
        }
        int main(void) {
            pthread_t threads[WAITERS];
            CHECK(PtlInit());
            CHECK(PtlInit());
            open_interface();
            for (int w = 0; w < WAITERS; w++)
                threads[w] = thread(wait_for_nothing, (void *)(intptr_t)w);
            spin_host_compute(1000000);
            PtlFini();
            spin_host_compute(1000000);
            for (int w = 0; w < WAITERS; w++)
                if (codes[w]) return 3; /* one of two: nothing has ended */
            PtlFini();
            for (int w = 0; w < WAITERS; w++) {
                pthread_join(threads[w], NULL);
                if (codes[w] != PTL_INTERRUPTED || later[w] != PTL_NO_INIT) return 10 + w;
            }
            CHECK(PtlInit());
            ptl_handle_ct_t old = ct;
            ptl_ct_event_t count;
            open_interface();
            if (ct == old || PtlCTGet(old, &count) != PTL_ARG_INVALID) return 4;
            PtlFini();
            return 0;
        }"#,
    );
    finishes_on_all_cards(&program);
}

/// Two threads of rank 0 and one of rank 1: each of the two waits for another barrier call of rank 1.
#[test]
fn a_rank_comes_to_a_barrier_once_a_round() {
    let text = r#"
        static volatile int passed;
        static void *meet(void *argument) {
            CHECK(spin_barrier());
            passed++;
            return argument;
        }
        int main(void) {
            if (spin_rank() == 1) {
                for (int i = 0; i < CALLS; i++) {
                    spin_host_compute(1000);
                    CHECK(spin_barrier());
                }
                return 0;
            }
            pthread_t threads[2] = {thread(meet, NULL), thread(meet, NULL)};
            spin_host_compute(500);
            if (passed != 0) return 3; /* two calls of one rank are not two ranks */
            spin_host_compute(1000);
            if (passed != 1) return 4;
            for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
            return 0;
        }"#;
    let calls = |calls: u32| program(&text.replace("CALLS", &calls.to_string()));
    let run = run_with(spec(&calls(2), 2), &[]);
    assert_eq!((run.end, run.ends), (End::Finished, vec![Time::from_ns(2000); 2]));
    let End::Deadlock { waits, .. } = run_with(spec(&calls(1), 2), &[]).end else { panic!("no deadlock") };
    assert_eq!(waits, ["rank 0 waits in spin_barrier, where 1 of 2 ranks have come", "rank 1 has ended"]);
}

/// Simulated time is limited. No program exceeds the limit, and none causes a panic there.
#[test]
fn times_beyond_the_limit_end_the_run() {
    let main = |body: &str| program(&format!("int main(void) {{ {body} return 0; }}"));
    let beyond = [
        "spin_host_compute(UINT64_MAX);",
        "spin_host_compute(9223372036854776);",
        "spin_host_memory(UINT64_MAX, 1);",
        "spin_host_memory(1, UINT64_MAX);",
        "extern void spin_sleep_ps(uint64_t); spin_host_compute(7); spin_sleep_ps(UINT64_MAX);",
        "for (;;) spin_host_compute(1000000000000000);",
        "ptl_event_t event; unsigned at; CHECK(PtlInit()); open_interface(); spin_host_compute(9223372036854775); \
         CHECK(PtlEQPoll(&eq, 1, PTL_TIME_FOREVER - 1, &event, &at));",
    ];
    for body in beyond {
        assert_eq!(run_with(spec(&main(body), 1), &[]).end, End::OutOfTime { rank: 0 }, "{body}");
    }
    let run = run_with(spec(&main("spin_host_compute(9223372036854775);"), 1), &[]);
    assert_eq!((run.end, run.ends), (End::Finished, vec![Time::from_ns((1 << 63) / 1000)]));
}

/// Three threads compute 1000 ns each, starting at the same time, on the cores of the host.
#[test]
fn computing_threads_share_the_cores_of_their_host() {
    let program = program(
        r#"
        static void *compute(void *argument) {
            spin_host_compute(1000);
            return argument;
        }
        int main(void) {
            CHECK(PtlInit());
            pthread_t first = thread(compute, NULL), second = thread(compute, NULL);
            spin_host_compute(1000);
            pthread_join(first, NULL);
            pthread_join(second, NULL);
            PtlFini();
            return 0;
        }"#,
    );
    for (cores, rounds) in [(8, 1), (3, 1), (2, 2), (1, 3)] {
        let run = run_with(spec(&program, 1), &[&format!("host.cores={cores}")]);
        assert_eq!((run.end, run.ends), (End::Finished, vec![Time::from_ns(rounds * 1000)]), "{cores} cores");
    }
}

/// Threads outside of the library wake each other many times before the last of them calls it, and then sleep forever,
/// as threads of libraries do. Simulated time stops while any of them runs, and advances when all sleep.
#[test]
fn a_rank_waits_for_threads_that_wake_each_other() {
    let text = r#"
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
        static int turn;
        static uint64_t computed;
        static void *pass(void *argument) {
            pthread_mutex_lock(&mutex);
            for (int round = 0; round < 200; round++) {
                while (turn % THREADS != (intptr_t)argument)
                    pthread_cond_wait(&passed, &mutex);
                turn++;
                pthread_cond_broadcast(&passed);
            }
            if ((intptr_t)argument == THREADS - 1) {
                spin_host_compute(500);
                computed = spin_time_ps();
            }
            for (;;)
                pthread_cond_wait(&passed, &mutex);
            return argument;
        }
        int main(void) {
            if (spin_rank() == 0)
                for (intptr_t i = 0; i < THREADS; i++)
                    thread(pass, (void *)i);
            else
                spin_host_compute(1000000);
            for (int i = 0; i < 100; i++) {
                CHECK(spin_barrier());
                spin_host_compute(10);
            }
            return spin_rank() == 0 && computed != 500000;
        }"#;
    for threads in [1, 2, 4] {
        let run = run_with(spec(&program(&text.replace("THREADS", &threads.to_string())), 2), &[]);
        assert_eq!((run.end, run.ends), (End::Finished, vec![Time::from_ns(1_001_000); 2]), "{threads} threads");
    }
}

/// Two threads wake each other by a semaphore before each call, so one has often just been woken when the other waits
/// in its call. Both compute at the same time, independent of the machine's scheduling: 10,000 calls of 100 ns each.
#[test]
fn a_just_woken_thread_counts_as_running() {
    let program = program(
        r#"
        #include <semaphore.h>
        enum { CALLS = 10000 };
        static sem_t ready[2];
        static void *work(void *which) {
            int mine = which != NULL;
            for (int i = 0; i < CALLS; i++) {
                sem_post(&ready[!mine]);
                sem_wait(&ready[mine]);
                spin_host_compute(100);
            }
            return NULL;
        }
        int main(void) {
            CHECK(PtlInit());
            if (sem_init(&ready[0], 0, 0) || sem_init(&ready[1], 0, 0)) return 2;
            uint64_t start = spin_time_ps();
            pthread_t other = thread(work, ready);
            work(NULL);
            pthread_join(other, NULL);
            return spin_time_ps() - start == CALLS * 100000 ? 0 : 3;
        }"#,
    );
    let run = run_with(spec(&program, 1), &[]);
    assert_eq!((run.end, run.ends), (End::Finished, vec![Time::from_ns(1_000_000)]));
}

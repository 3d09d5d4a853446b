// SPDX-License-Identifier: Apache-2.0
//! Ranks that spin on their own memory until a message changes it.

mod common;

use common::{Program, compile, libraries, run, run_until, spec};
use ranks::JobSpec;
use sim::Time;
use std::time::{Duration, Instant};
use world::End;

/// Rank 1 puts 1, 2, 3 to a flag of rank 0, which waits for 3 with `wait` and then puts 7 to a flag of rank 1, which
/// polls its counter. The end time of both depends on when they observe the writes.
fn exchange(wait: &str, options: &[&str]) -> Program {
    let source = r#"
        #define _GNU_SOURCE
        #include <sys/ptrace.h>
        #include <sys/wait.h>
        #include <portals4.h>
        #include <pthread.h>
        #include <sched.h>
        #include <spin.h>
        #include <stdlib.h>
        #include <time.h>
        #include <unistd.h>
        #define CHECK(call) do { int rc_ = (call); if (rc_ != PTL_OK) exit(10 + rc_); } while (0)
        static volatile int flag;
        static ptl_handle_ni_t ni;
        static ptl_handle_md_t md;
        static ptl_pt_index_t pt;

        static void put(int value, int to) {
            static int values[8];
            values[value] = value;
            ptl_process_t target = {.rank = to};
            CHECK(PtlPut(md, (ptl_size_t)&values[value], sizeof value, PTL_NO_ACK_REQ, target, pt, 0, 0, NULL, 0));
        }

        static void wait_for_three(void) {
            WAIT
        }

        int main(void) {
            int rank = spin_rank();
            ptl_handle_ct_t ct;
            ptl_handle_me_t entry;
            ptl_ct_event_t event;
            CHECK(PtlInit());
            CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
            CHECK(spin_set_map(ni));
            CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 4, &pt));
            CHECK(PtlCTAlloc(ni, &ct));
            ptl_me_t accept = {.start = (void *)&flag, .length = sizeof flag, .ct_handle = ct, .uid = PTL_UID_ANY,
                               .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, .match_id = {.rank = PTL_RANK_ANY}};
            CHECK(PtlMEAppend(ni, pt, &accept, PTL_PRIORITY_LIST, NULL, &entry));
            ptl_md_t all = {.start = NULL, .length = PTL_SIZE_MAX, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            CHECK(PtlMDBind(ni, &all, &md));
            spin_barrier();
            if (rank == 0) {
                wait_for_three();
                if (flag != 3) return 1;
                put(7, 1);
            } else {
                for (int i = 1; i <= 3; i++) {
                    put(i, 0);
                    spin_host_compute(2000);
                }
                CHECK(PtlCTWait(ct, 1, &event));
                if (flag != 7) return 2;
            }
            spin_barrier();
            PtlFini();
            return 0;
        }"#;
    common::compile_with(&source.replace("WAIT", wait), options)
}

fn polling(program: &Program, ranks: usize) -> JobSpec {
    JobSpec { busy_wait_quantum: Some(Duration::from_millis(5)), ..spec(program, ranks) }
}

/// Returns the end time of both ranks, after checking that two runs agree.
fn time(program: &Program) -> Time {
    let [first, second] = [(); 2].map(|()| run(polling(program, 2)));
    assert_eq!((&first.end, &first.warnings[..]), (&End::Finished, &[][..]));
    assert_eq!(first.ends, second.ends, "the same in every run");
    first.ends[0]
}

#[test]
fn every_polling_loop_sees_the_write_at_its_time() {
    let plain = "while (flag != 3);";
    let expected = time(&exchange(plain, &["-O2"]));
    // The third put leaves 4 us after the first; then a reply crosses the network.
    assert!(expected > Time::from_ns(4000) && expected < Time::from_ns(8000), "{expected}");
    let loops = [
        (plain, "-O0"),
        ("while (flag != 3) __builtin_ia32_pause();", "-O2"),
        ("while (flag != 3) sched_yield();", "-O2"),
        ("while (flag != 3) usleep(100);", "-O0"),
        ("struct timespec nap = {0, 1000}; while (flag != 3) nanosleep(&nap, NULL);", "-O2"),
        ("for (long tries = 0; tries < 1000000000000 && flag != 3; tries++);", "-O2"),
        ("for (long tries = 0; tries < 1000000000000 && flag != 3; tries++);", "-O0"),
        ("struct timespec now; do clock_gettime(CLOCK_MONOTONIC, &now); while (flag != 3);", "-O2"),
    ];
    for (body, level) in loops {
        assert_eq!(time(&exchange(body, &[level])), expected, "{body} {level}");
    }
}

#[test]
fn threads_of_a_rank_poll_together() {
    let body = "
        static volatile int copy;
        void *relay(void *unused) { while (flag != 3) sched_yield(); copy = 1; return unused; }
        pthread_t thread;
        pthread_create(&thread, NULL, relay, NULL);
        while (!copy);
        pthread_join(thread, NULL);";
    assert_eq!(time(&exchange(body, &["-O1"])), time(&exchange("while (flag != 3);", &["-O1"])));
}

#[test]
fn a_thread_polls_what_another_writes_after_a_call() {
    let body = "
        static volatile int copy;
        void *relay(void *unused) {
            ptl_handle_eq_t eq;
            PtlEQAlloc(ni, 1, &eq);
            ptl_event_t event;
            unsigned which;
            PtlEQPoll(&eq, 1, 1, &event, &which);
            copy = 1;
            return unused;
        }
        pthread_t thread;
        pthread_create(&thread, NULL, relay, NULL);
        while (!copy);
        pthread_join(thread, NULL);";
    let end = time(&exchange(body, &["-O1"]));
    assert!(end > Time::from_ns(1_000_000) && end < Time::from_ns(1_010_000), "the poll takes a millisecond: {end}");
}

#[test]
fn computing_takes_no_simulated_time() {
    let bodies = [
        "for (volatile int i = 0; i < 100000000; i++) {} while (flag != 3);",
        "static unsigned table[64]; unsigned x = 1;
         for (int i = 0; i < 100000000; i++) { x = x * 1664525 + 1013904223 + flag; table[x >> 26] ^= x; }
         if (table[5] == 77) exit(3);
         while (flag != 3);",
        "double sum = 0; for (int i = 1; i < 50000000; i++) sum += 1.0 / i; if (sum < 1) exit(3); while (flag != 3);",
        "usleep(50000); while (flag != 3);",
        "static char big[1 << 24];
         for (int i = 0; i < 40; i++) {
             char *to = big;
             unsigned long left = sizeof big;
             __asm__ volatile(\"rep stosb\" : \"+D\"(to), \"+c\"(left) : \"a\"(i) : \"memory\");
         }
         while (flag != 3);",
    ];
    let expected = time(&exchange("while (flag != 3);", &["-O1"]));
    for body in bodies {
        assert_eq!(time(&exchange(body, &["-O1"])), expected, "{body}");
    }
}

#[test]
fn computation_is_not_polling_with_all_memory_exposed() {
    let open = "
        ptl_me_t all = {.length = PTL_SIZE_MAX, .options = PTL_ME_OP_PUT, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                        .match_id = {.rank = PTL_RANK_ANY}, .match_bits = 1};
        ptl_handle_me_t entry;
        CHECK(PtlMEAppend(ni, pt, &all, PTL_PRIORITY_LIST, NULL, &entry));";
    let expected = time(&exchange(&format!("{open} while (flag != 3);"), &["-O0"]));
    let bodies = [
        "for (long tries = 0; tries < 1000000000000 && flag != 3; tries++);",
        "int limit = 100000000; for (int i = 0; i < limit; i++) {} while (flag != 3);",
        "for (int i = 0; i < 5; i++) usleep(10000); while (flag != 3);",
        // It repeatedly reads the same values at different addresses: it computes, although `check` never changes.
        "static volatile int check = 1;
         static volatile char zeros[1 << 26];
         for (unsigned long at = 0; at < sizeof zeros && check; at++)
             if (zeros[at] != 0) exit(3);
         while (flag != 3);",
    ];
    for body in bodies {
        assert_eq!(time(&exchange(&format!("{open} {body}"), &["-O0"])), expected, "{body}");
    }
}

#[test]
fn endless_polling_is_a_deadlock() {
    for wait in ["while (flag != 9);", "for (long tries = 0; flag != 9; tries++);"] {
        match run(polling(&exchange(wait, &["-O1"]), 2)).end {
            End::Deadlock { waits, .. } => {
                assert!(waits[0].starts_with("rank 0 spins on its own memory at 0x"), "{waits:?}");
                assert!(waits[1].starts_with("rank 1 waits in PtlCTWait"), "{waits:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_limit_of_tries_is_reached_when_nothing_else_happens() {
    let wait = "for (long tries = 0; tries < 500000000 && flag != 9; tries++);";
    assert_eq!(run(polling(&exchange(wait, &["-O1"]), 2)).end, End::Finished);
}

#[test]
fn waiting_for_a_clock_passes_simulated_time() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <spin.h>
        #include <time.h>
        int main(void) {
            struct timespec now;
            unsigned long long reads = 0;
            PtlInit();
            do {
                clock_gettime(CLOCK_MONOTONIC, &now);
                reads++;
            } while (now.tv_nsec < 50000);
            if (reads != 3000) return 1; /* a thousand are free, the others take 25 ns */
            while (spin_time_ps() < 60000000) {}
            PtlFini();
            return 0;
        }"#,
    );
    let preload = vec![libraries().join("libsimclock.so")];
    let env = vec![("SPIN_SIMULATED_CLOCK".into(), "1".into())];
    let done = run(JobSpec { preload, env, ..spec(&program, 1) });
    assert_eq!((done.end, done.ends), (End::Finished, vec![Time::from_ns(60_000)]));
}

#[test]
fn ranks_without_ptrace_permission_count_as_computing() {
    // An attached tracer, such as a debugger, excludes others.
    let traced = "
        int ready[2], status;
        char byte;
        if (pipe(ready)) exit(3);
        if (fork() == 0) {
            ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
            if (write(ready[1], &byte, 1) != 1) _exit(1);
            while (waitpid(getppid(), &status, __WALL) > 0 && WIFSTOPPED(status)) {}
            _exit(0);
        }
        if (read(ready[0], &byte, 1) != 1) exit(4);";
    // It computes for long, which is no deadlock.
    let computes = "
        struct timespec now, since;
        clock_gettime(CLOCK_MONOTONIC, &since);
        do clock_gettime(CLOCK_MONOTONIC, &now); while (now.tv_sec - since.tv_sec < 3);
        ptl_handle_ct_t ct;
        ptl_ct_event_t event;
        CHECK(PtlCTAlloc(ni, &ct));
        ptl_size_t never = 1;
        unsigned which;
        while (flag != 3) PtlCTPoll(&ct, &never, 1, 1, &event, &which);";
    let done = run(polling(&exchange(&format!("{traced}{computes}"), &["-O1"]), 2));
    assert_eq!(done.end, End::Finished);
    let note = |warnings: &[String]| {
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("rank 0: it may not be looked at (ptrace"), "{warnings:?}");
        assert!(warnings[0].contains("--timeout"), "{warnings:?}");
    };
    note(&done.warnings);
    let program = exchange(&format!("{traced}\nwhile (flag != 3);"), &["-O1"]);
    let done = run_until(polling(&program, 2), Instant::now() + Duration::from_secs(2));
    assert!(matches!(done.end, End::TimedOut { running: 0, .. }), "{:?}", done.end);
    note(&done.warnings);
}

#[test]
fn a_deadline_ends_a_long_inspection() {
    // Each iteration sleeps in a system call, and all differ.
    let wait = "
        unsigned x = 1;
        struct timespec nap = {0, 200000000};
        do { syscall(SYS_nanosleep, &nap, NULL); x = x * 1664525 + 1013904223; } while (x != 77);";
    let source = exchange(&format!("{wait} while (flag != 3);"), &["-O1", "-include", "sys/syscall.h"]);
    let done = run_until(polling(&source, 2), Instant::now() + Duration::from_secs(1));
    assert!(matches!(done.end, End::TimedOut { running: 0, .. }), "{:?}", done.end);
}

#[test]
fn loops_with_harmless_system_calls_poll() {
    let expected = time(&exchange("while (flag != 3);", &["-O1"]));
    let loops = [
        "unsigned seed = 1; while (flag != 3) rand_r(&seed);",
        "srand(1); while (flag != 3) rand();",
        "unsigned seed = 1; while (flag != 3) for (int i = rand_r(&seed) & 3; i > 0; i--) __builtin_ia32_pause();",
        "double sum = 0; while (flag != 3) sum += 1.5; if (sum < 0) exit(3);",
        "unsigned x = 1; while (flag != 3) x = x * 1664525 + 1013904223; if (x == 77) exit(3);",
        "int *where = (int *)&flag; int **through = &where; while (*(volatile int *)*through != 3) sched_yield();",
    ];
    for body in loops {
        for level in ["-O0", "-O2"] {
            assert_eq!(time(&exchange(body, &[level])), expected, "{body} {level}");
        }
    }
}

#[test]
fn spinning_on_a_lock_is_polling() {
    let body = "
        static volatile int lock = 1;
        void *give_back(void *unused) {
            while (flag != 3) {}
            __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
            return unused;
        }
        pthread_t thread;
        pthread_create(&thread, NULL, give_back, NULL);
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
        pthread_join(thread, NULL);";
    assert_eq!(time(&exchange(body, &["-O1"])), time(&exchange("while (flag != 3);", &["-O1"])));
}

// SPDX-License-Identifier: Apache-2.0
//! Loops of ranks that wait for one of several memory locations, or through locks, and unrecognized loops.

mod common;

use common::{PORTALS, Program, Run, compile_with, run, spec};
use ranks::JobSpec;
use sim::Time;
use std::time::Duration;
use world::End;

/// Rank 0 has 64 flags. Rank 1 sets the last of the first N after 2 us. Rank 0 waits with `wait`, which leaves the
/// number of the flag in `i`.
fn flags(wait: &str, n: usize, options: &[&str]) -> Program {
    let text = r#"
        static volatile long flags[64];
        __attribute__((unused)) static volatile int done;
        __attribute__((unused)) static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static int wait_for_last(void) {
            int i = 0;
            (void)i;
            WAIT
            return i;
        }
        int main(void) {
            ptl_pt_index_t pt;
            ptl_handle_le_t handle;
            ptl_handle_md_t md;
            CHECK(PtlInit());
            CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
            CHECK(spin_set_map(ni));
            CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
            ptl_le_t le = {.start = (void *)flags, .length = sizeof flags, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                           .options = PTL_LE_OP_PUT};
            CHECK(PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, NULL, &handle));
            static long one = 1;
            ptl_md_t all = {.start = &one, .length = sizeof one, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            CHECK(PtlMDBind(ni, &all, &md));
            CHECK(spin_barrier());
            if (spin_rank() == 0) {
                if (wait_for_last() != $N - 1) return 3;
                spin_host_compute(10);
            } else {
                ptl_process_t to = {.rank = 0};
                spin_host_compute(2000);
                CHECK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, to, pt, 0, ($N - 1) * 8, NULL, 0));
            }
            CHECK(spin_barrier());
            PtlFini();
            return 0;
        }"#;
    let text = text.replace("WAIT", wait).replace("$N", &n.to_string());
    compile_with(&format!("{PORTALS}{text}"), &[&["-D_GNU_SOURCE", "-Wno-unused"], options].concat())
}

fn polling(program: &Program, ranks: usize) -> JobSpec {
    JobSpec { busy_wait_quantum: Some(Duration::from_millis(5)), ..spec(program, ranks) }
}

fn finished(run: Run, what: &str) -> Vec<Time> {
    assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{what}");
    run.ends
}

/// The time does not depend on how the loop finds the location, and no warning appears.
#[test]
fn loops_over_several_locations_see_the_write_at_its_time() {
    let forms = [
        "while (!flags[i]) i = (i + 1) % $N;",
        "int f = -1; while (f < 0) for (i = 0; i < $N; i++) if (flags[i]) { f = i; break; } i = f;",
        "unsigned seed = 1; int f = -1; while (f < 0) { int s = (int)(rand_r(&seed) / (RAND_MAX + 1.0) * $N);
         for (int k = 0; k < $N; k++) { int j = (k + s) % $N; if (flags[j]) { f = j; break; } } } i = f;",
        "for (;;) { for (i = 0; i < $N; i++) if (!flags[$N - 1 - i]) break; if (i > 0) { i = $N - 1; break; } }",
        "int f = -1, st[64] = {0}; volatile int *sp = st; int s = $N / 3; while (f < 0) for (int k = 0; k < $N; k++) {
         int j = (k + s) % $N; if (!sp[j] && flags[j]) { f = j; break; } } i = f;",
        "int k = 0; while (!flags[k & ($N - 1)]) k++; i = k & ($N - 1);",
        "for (i = 0; i + 1 < $N; i++) flags[i] = 1;
         for (;;) { int ok = 1; for (i = 0; i < $N; i++) if (flags[i] != 1) { ok = 0; break; } if (ok) break; } i = $N - 1;",
        "static long zeros[64]; while (memcmp((void *)flags, zeros, $N * 8) == 0) __asm__ volatile(\"\" ::: \"memory\"); i = $N - 1;",
        "for (;;) { pthread_mutex_lock(&lock); long f = flags[$N - 1]; pthread_mutex_unlock(&lock); if (f) break; } i = $N - 1;",
    ];
    let expected = finished(run(polling(&flags("while (!flags[$N - 1]) {} i = $N - 1;", 8, &["-O1"]), 2)), "one flag");
    for form in forms {
        for (n, level) in [(2, "-O2"), (8, "-O0")] {
            let what = format!("{form} {n} {level}");
            assert_eq!(finished(run(polling(&flags(form, n, &[level]), 2)), &what), expected, "{what}");
        }
    }
}

/// Threads of rank 0 that wait with `body` for `done`, which the main thread sets once its flag is written.
fn threads(body: &str, count: usize) -> Program {
    let wait = r#"
        void *wait_for_main(void *unused) { BODY return unused; }
        pthread_t threads[COUNT];
        for (int t = 0; t < COUNT; t++) pthread_create(&threads[t], NULL, wait_for_main, NULL);
        for (int t = 0; t < 3; t++) spin_host_compute(100);
        while (!flags[$N - 1]) {}
        pthread_mutex_lock(&lock); done = 1; pthread_mutex_unlock(&lock);
        for (int t = 0; t < COUNT; t++) pthread_join(threads[t], NULL);
        i = $N - 1;"#;
    flags(&wait.replace("BODY", body).replace("COUNT", &count.to_string()), 2, &["-O1"])
}

/// Each of the waiting threads writes the lock and restores it.
#[test]
fn threads_that_share_a_lock_stay_stopped() {
    let bodies = [
        "for (;;) { pthread_mutex_lock(&lock); int d = done; pthread_mutex_unlock(&lock); if (d) break; }",
        "static volatile int word; for (;;) { while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE)) {} int d = done;
         __atomic_store_n(&word, 0, __ATOMIC_RELEASE); if (d) break; }",
        "static pthread_rwlock_t both = PTHREAD_RWLOCK_INITIALIZER;
         for (;;) { pthread_rwlock_rdlock(&both); int d = done; pthread_rwlock_unlock(&both); if (d) break; }",
    ];
    for body in bodies {
        for count in [2, 8] {
            let what = format!("{count}: {body}");
            let ends = finished(run(polling(&threads(body, count), 2)), &what);
            assert!(ends[0] > Time::from_ns(2000) && ends[0] < Time::from_ns(5000), "{what}: {}", ends[0]);
        }
    }
}

/// A loop whose exit depends on a word with which it also computes, so it may compute. Time advances nevertheless, and
/// the run reports the location of the loop.
#[test]
fn an_unrecognized_loop_holds_time_back_for_a_limited_time() {
    let body = "static volatile unsigned none; for (unsigned k = 0; !(done | (k & none)); k++) {}";
    let done = run(JobSpec { cpu_limit: Some(Duration::from_millis(1)), ..polling(&threads(body, 1), 2) });
    assert_eq!(done.end, End::Finished);
    let [warning] = &done.warnings[..] else { panic!("{:?}", done.warnings) };
    assert!(warning.starts_with("rank 0: thread 1 has run for "), "{warning}");
    assert!(warning.contains(" ms of CPU time without a call, at wait_for_main"), "{warning}");
    assert!(warning.contains(" in program, and no longer holds simulated time back"), "{warning}");
}

/// A thread that counts retries waits like others while another thread of its rank may write the polled memory.
#[test]
fn retries_do_not_run_out_while_another_thread_waits() {
    let body = "for (unsigned long tries = 0; tries < 1000000000000 && !done; tries++) {}";
    let ends = finished(run(polling(&threads(body, 2), 2)), body);
    assert!(ends[0] > Time::from_ns(2000) && ends[0] < Time::from_ns(5000), "{}", ends[0]);
}

/// A program that repeats queries between its polls lets time advance.
#[test]
fn free_calls_between_polls_take_time() {
    let wait = "ptl_uid_t uid; for (;;) { int k; for (k = 0; k < 50 && !flags[$N - 1]; k++) {} if (k < 50) break; CHECK(PtlGetUid(ni, &uid)); } i = $N - 1;";
    let ends = finished(run(polling(&flags(wait, 2, &["-O1"]), 2)), wait);
    assert!(ends[0] > Time::from_ns(2000) && ends[0] < Time::from_ns(4000), "{}", ends[0]);
}

/// The flag is polled by atomic instructions that also write it.
#[test]
fn polls_that_write_back_the_same_value_are_polls() {
    for look in
        ["__atomic_fetch_add(&flags[$N - 1], 0, __ATOMIC_SEQ_CST)", "__sync_val_compare_and_swap(&flags[$N - 1], 1, 1)"]
    {
        let wait = format!("while (!{look}) {{}} i = $N - 1;");
        let ends = finished(run(polling(&flags(&wait, 2, &["-O1"]), 2)), &wait);
        assert!(ends[0] > Time::from_ns(2000) && ends[0] < Time::from_ns(4000), "{}", ends[0]);
    }
}

/// A loop on CPU time computes: it runs while another rank polls, and ends, although it needs more CPU time than a
/// thread that may wait gets.
#[test]
fn a_loop_on_cpu_time_runs_on() {
    for clock in ["CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID"] {
        let wait = format!(
            "struct timespec now; do clock_gettime({clock}, &now); while (now.tv_sec == 0 && now.tv_nsec < 300000000);
             while (!flags[$N - 1]) {{}} i = $N - 1;"
        );
        let program = flags(&wait, 2, &["-O1", "-include", "time.h"]);
        let expected = finished(run(polling(&flags("while (!flags[$N - 1]) {} i = $N - 1;", 2, &["-O1"]), 2)), "plain");
        assert_eq!(finished(run(polling(&program, 2)), clock), expected, "{clock}");
    }
}

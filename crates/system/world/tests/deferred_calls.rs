// SPDX-License-Identifier: Apache-2.0
//! Calls that a thread defers (`spin_defer`).

mod common;

use common::{CARDS, PORTALS, Program, compile, run_with, spec};
use sim::Time;
use world::End;

/// Two ranks that open an interface with an event queue.
fn program(text: &str) -> Program {
    let start = r#"
        static ptl_handle_md_t md;
        static uint64_t to[64];
        static void open_interface(void) {
            ptl_pt_index_t index;
            ptl_ni_limits_t limits = {.max_entries = 40, .max_list_size = 40, .max_mds = 8, .max_eqs = 8, .max_cts = 8,
                                      .max_pt_index = 8, .max_unexpected_headers = 100, .max_iovecs = 8,
                                      .max_volatile_size = 64, .max_msg_size = 1000000, .max_atomic_size = 8,
                                      .max_fetch_atomic_size = 8, .max_triggered_ops = 8};
            CHECK(PtlInit());
            CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, &limits, NULL, &ni));
            CHECK(spin_set_map(ni));
            CHECK(PtlEQAlloc(ni, 256, &eq));
            CHECK(PtlPTAlloc(ni, 0, eq, 0, &index));
            ptl_md_t data = {.length = PTL_SIZE_MAX, .options = PTL_MD_VOLATILE | PTL_MD_EVENT_SUCCESS_DISABLE,
                             .eq_handle = eq, .ct_handle = PTL_CT_NONE};
            CHECK(PtlMDBind(ni, &data, &md));
        }
        static void append(unsigned number, ptl_handle_me_t *handle) {
            ptl_me_t me = {.start = &to[number % 64], .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                           .match_id.rank = PTL_RANK_ANY, .match_bits = number, .hpu_memory = PTL_INVALID_HANDLE,
                           .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                      PTL_ME_EVENT_UNLINK_DISABLE};
            CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, (void *)(uintptr_t)number, handle));
        }
    "#;
    compile(&format!("{PORTALS}{start}{text}"))
}

/// Rounds of messages in both directions. The last argument enables deferring; the program then checks that calls are
/// deferred.
const ROUNDS: &str = r#"
    enum { MESSAGES = 20, ROUNDS = 4 };
    int main(void) {
        ptl_handle_me_t handles[MESSAGES], before;
        ptl_event_t events[8];
        open_interface();
        CHECK(spin_barrier());
        append(1000, &before); /* the first of its kind waits */
        if (spin_defer(1) != 0 || spin_defer(DEFERS) != 1) return 2;
        ptl_process_t peer = {.rank = 1 - spin_rank()};
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (unsigned i = 0; i < MESSAGES; i++) {
                handles[i] = PTL_INVALID_HANDLE;
                append(round * MESSAGES + i, &handles[i]);
            }
            /* The next call that waits brings the handles. */
            int is_late = handles[MESSAGES - 1] == PTL_INVALID_HANDLE;
            if (is_late != (DEFERS && WORKS)) return 3;
            CHECK(spin_barrier());
            spin_host_copy(1000);
            for (unsigned i = 0; i < MESSAGES; i++) {
                if (handles[i] == PTL_INVALID_HANDLE) return 4;
                for (unsigned k = 0; k < i; k++) if (handles[i] == handles[k]) return 5;
                uint64_t value = 1 + round * 100 + i * 7 + spin_rank(); /* written again at once */
                CHECK(PtlPut(md, (uintptr_t)&value, 8, PTL_NO_ACK_REQ, peer, 0, round * MESSAGES + i, 0, NULL, i));
            }
            spin_host_compute(100);
            for (unsigned got = 0, count; got < MESSAGES;) {
                if (spin_eq_take(eq, events, 8, &count) == PTL_EQ_EMPTY) { spin_idle(); continue; }
                for (unsigned k = 0; k < count; k++, got++)
                    if (events[k].type != PTL_EVENT_PUT || events[k].hdr_data != got) return 6;
            }
            for (unsigned i = 0; i < MESSAGES; i++)
                if (to[(round * MESSAGES + i) % 64] != 1 + round * 100 + i * 7 + peer.rank) return 7;
            for (unsigned i = 0; i < 3; i++) spin_idle();
        }
        CHECK(PtlMEUnlink(before));
        spin_host_compute(10); /* its time passes before the end, deferred or not */
        return 0;
    }"#;

fn ends(program: &Program, card: &str, defers: bool) -> Vec<Time> {
    let mut job = spec(program, 2);
    job.post_ahead = 0;
    job.waits = !defers;
    let run = run_with(job, &[card]);
    assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}, {defers}");
    run.ends
}

#[test]
fn deferred_calls_have_the_times_and_results_of_others() {
    let program_of = |defers, works| program(&ROUNDS.replace("DEFERS", defers).replace("WORKS", works));
    let (plain, deferred, without) = (program_of("0", "1"), program_of("1", "1"), program_of("1", "0"));
    for card in CARDS {
        let times = ends(&plain, card, true);
        assert!(times.iter().all(|time| *time > Time::from_ns(4000)), "{times:?}");
        assert_eq!(ends(&deferred, card, true), times, "{card}");
        assert_eq!(ends(&without, card, false), times, "{card}: where calls must wait, they do");
    }
}

/// The deferring thread does nothing more; the other one gets the handles as time passes.
#[test]
fn another_thread_gets_the_handles_of_deferred_entries() {
    let program = program(
        r#"
        #include <pthread.h>
        static ptl_handle_me_t handles[10];
        static void *wait_for_all(void *ends) {
            for (unsigned i = 1; i < 10; i++) {
                volatile ptl_handle_me_t *handle = &handles[i];
                while (*handle == PTL_INVALID_HANDLE) spin_host_compute(10);
                CHECK(PtlMEUnlink(*handle));
            }
            exit(spin_time_ps() < 9 * 65000 ? 4 : 0);
            return ends;
        }
        int main(void) {
            pthread_t thread;
            open_interface();
            append(0, &handles[0]);
            spin_defer(1);
            for (unsigned i = 1; i < 10; i++) handles[i] = PTL_INVALID_HANDLE;
            for (unsigned i = 1; i < 10; i++) append(i, &handles[i]);
            for (unsigned i = 1; i < 10; i++) if (handles[i] != PTL_INVALID_HANDLE) return 3;
            if (pthread_create(&thread, NULL, wait_for_all, NULL)) return 2;
            pthread_join(thread, NULL);
            return 0;
        }"#,
    );
    let mut job = spec(&program, 1);
    job.post_ahead = 0;
    assert_eq!(run_with(job, &[]).end, End::Finished);
}

#[test]
fn a_deferred_entry_without_room_ends_the_run() {
    let program = program(
        r#"
        int main(void) {
            ptl_handle_me_t handles[64];
            open_interface();
            append(0, &handles[0]);
            spin_defer(1);
            for (unsigned i = 1; i < 64; i++) append(i, &handles[i]);
            CHECK(spin_barrier());
            return 0;
        }"#,
    );
    let mut job = spec(&program, 1);
    job.post_ahead = 0;
    let too_long = abi::portals::ReturnCode::ListTooLong as i32;
    let message = format!("PtlMEAppend was refused (return code {too_long}) although one like it was accepted before");
    assert_eq!(run_with(job, &[]).end, End::BadProgram { rank: 0, message });
}

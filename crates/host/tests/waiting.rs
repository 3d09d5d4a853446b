//! Threads that wait inside the library, and what ends their waits.

mod common;

use common::{compile, run_with, spec};
use host::End;

const CARDS: [&str; 3] = ["nic.kind=rdma", "nic.kind=portals4", "nic.kind=spin"];

/// A program with one logical, matching interface; `text` has the functions and `main`.
fn program(text: &str) -> common::Program {
    let start = r#"
        #include <pthread.h>
        #include <portals4.h>
        #include <spin.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #define CHECK(call) do { int rc = (call); if (rc) { \
            printf("line %d: %s is %d\n", __LINE__, #call, rc); exit(1); } } while (0)
        static ptl_handle_ni_t ni;
        static ptl_handle_eq_t eq;
        static ptl_handle_ct_t ct;
        static void open_interface(void) {
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
    compile(&format!("{start}{text}"))
}

/// On rdma cards an append waits for the CPU, which completes a message first. Its LINK event ends the wait of another
/// thread, while the first thread's own wait is being ended.
#[test]
fn a_call_that_was_put_off_wakes_other_threads() {
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
    for card in CARDS {
        let run = run_with(spec(&program, 1), &[card]);
        assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}");
    }
}

/// A message that makes no event and counts nothing is under way; only its end is what the call waits for.
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
    for card in CARDS {
        let run = run_with(spec(&program, 1), &[card]);
        assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Memory that the simulator caches while a rank sleeps is coherent for the rank, other ranks and cards.

mod common;

use common::{CARDS, PORTALS, compile_with, run_with, spec};
use sim::Time;
use world::End;

/// Rank 1 puts successive numbers into four pages of sleeping rank 0, and gets them back. Rank 2 reads one of the
/// pages, shared with rank 0, in between.
const PROGRAM: &str = r#"
    #include <sys/mman.h>
    #include <sys/syscall.h>
    #include <fcntl.h>
    #include <unistd.h>
    enum { PAGE = 4096, PAGES = 4, SHARED = 2, WORDS = PAGE / 8, ROUNDS = 6, STEPS = 40 };
    static uint64_t *memory;
    int main(void) {
        ptl_pt_index_t index;
        ptl_handle_me_t handle;
        ptl_handle_ct_t replies, arrived;
        ptl_handle_md_t put, get;
        ptl_ct_event_t counted;
        uint64_t out = 0, in = 0;
        CHECK(PtlInit());
        CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
        CHECK(spin_set_map(ni));
        /* Private pages that were written before, and one that the ranks share. */
        memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return 2;
        memset(memory, 0, PAGES * PAGE);
        int file = open(getenv("SHARED_FILE"), O_RDWR);
        if (mmap((char *)memory + SHARED * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
            return 3;
        CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &index));
        CHECK(PtlCTAlloc(ni, &replies));
        CHECK(PtlCTAlloc(ni, &arrived));
        ptl_me_t me = {.start = memory, .length = PAGES * PAGE, .ct_handle = arrived, .uid = PTL_UID_ANY,
                       .match_id.rank = PTL_RANK_ANY, .hpu_memory = PTL_INVALID_HANDLE,
                       .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM};
        CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
        ptl_md_t from = {.start = &out, .length = 8, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE,
                         .ct_handle = replies};
        ptl_md_t to = {.start = &in, .length = 8, .options = PTL_MD_EVENT_CT_REPLY, .eq_handle = PTL_EQ_NONE,
                       .ct_handle = replies};
        CHECK(PtlMDBind(ni, &from, &put));
        CHECK(PtlMDBind(ni, &to, &get));
        ptl_process_t zero = {.rank = 0};
        uint64_t done = 0, *shared = memory + SHARED * WORDS;
        for (unsigned round = 1; round <= ROUNDS; round++) {
            CHECK(spin_barrier());
            for (unsigned i = 0; spin_rank() == 1 && i < STEPS; i++) {
                /* Some words are in two pages. */
                uint64_t at = (i % PAGES) * PAGE + (i % 7 == 6 ? PAGE - 4 : 16 * (i / PAGES + 1));
                if (at > (PAGES * PAGE - 8)) at = 8;
                out = round * 1000 + i;
                CHECK(PtlPut(put, 0, 8, PTL_CT_ACK_REQ, zero, 0, 0, at, NULL, 0));
                CHECK(PtlCTWait(replies, ++done, &counted));
                CHECK(PtlGet(get, 0, 8, zero, 0, 0, at, NULL));
                CHECK(PtlCTWait(replies, ++done, &counted));
                if (in != out) { printf("round %u, step %u: %lu\n", round, i, (long)in); return 4; }
            }
            if (spin_rank() == 2) { /* looks into the shared page while rank 1 writes there */
                uint64_t last = 0, changes = 0;
                for (unsigned i = 0; i < 2000 && last != round * 1000 + 38; i++) {
                    spin_host_compute(100);
                    uint64_t now = *(volatile uint64_t *)&shared[2 * 10];
                    changes += now != last;
                    last = now;
                }
                if (last != round * 1000 + 38) return 5;
            }
            CHECK(spin_barrier());
            if (spin_rank() == 0) { /* has slept in the barrier */
                for (unsigned i = 0; i < STEPS; i++) {
                    uint64_t value;
                    if (i % 7 == 6) continue;
                    memcpy(&value, (char *)memory + (i % PAGES) * PAGE + 16 * (i / PAGES + 1), 8);
                    if (value != round * 1000 + i) { printf("round %u, word %u: %lu\n", round, i, (long)value); return 6; }
                }
                memory[2 * 10] = 77; /* what a rank writes between its calls is seen by the card */
            }
            CHECK(spin_barrier());
            if (spin_rank() == 1) {
                CHECK(PtlGet(get, 0, 8, zero, 0, 0, 2 * 10 * 8, NULL));
                CHECK(PtlCTWait(replies, ++done, &counted));
                if (in != 77) return 7;
            }
        }
        CHECK(spin_barrier());
        return 0;
    }"#;

#[test]
fn kept_pages_are_coherent() {
    let program = compile_with(&format!("{PORTALS}{PROGRAM}"), &["-Wno-unused", "-D_GNU_SOURCE"]);
    for card in CARDS {
        let mut times: Vec<Vec<Time>> = Vec::new();
        // Nothing is cached if the library copies.
        for serve_copies in [false, true] {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(4096).unwrap();
            let mut job = spec(&program, 3);
            job.serve_copies = serve_copies;
            job.env.push(("SHARED_FILE".into(), file.path().into()));
            let run = run_with(job, &[card]);
            assert_eq!((run.end, run.warnings), (End::Finished, Vec::new()), "{card}");
            times.push(run.ends);
        }
        assert_eq!(times[0], times[1], "{card}");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank has a second thread that watches memory while the first one sends: `threads ROUNDS`. The neighbour's puts
 * are seen by polling, by a counter, and by an event queue; the output is the simulated time of each. */
#include "../portals/harness.h"
#include <pthread.h>
#include <spin.h>

enum { MOST = 64 };

static volatile unsigned seen[MOST];
static int rounds;
static ptl_handle_eq_t eq;

/* The bytes of round r lie in seen[r]: one thread polls for odd rounds. */
static void *watch(void *unused) {
    for (int round = 1; round < rounds; round += 2) {
        while (!seen[round]) {
        }
        printf("rank %d saw round %d with %u at %llu ps\n", spin_rank(), round, seen[round],
               (unsigned long long)spin_time_ps());
    }
    return unused;
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atoi(argv[1]) : 8;
    if (rounds < 1 || rounds > MOST)
        return 2;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    ptl_pt_index_t pt;
    ptl_handle_ct_t ct;
    ptl_handle_me_t handle;
    ptl_ct_event_t count;
    CHECK(PtlEQAlloc(ni, 256, &eq));
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlPTAlloc(ni, 0, eq, 0, &pt));
    ptl_me_t me =
        plain_entry((void *)seen, sizeof seen, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE);
    me.ct_handle = ct;
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(spin_barrier());
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, NULL))
        return 3;
    ptl_process_t next = to_rank((spin_rank() + 1) % spin_size());
    for (int round = 0; round < rounds; round++) {
        unsigned value = 1000 * spin_rank() + round + 1;
        ptl_handle_md_t md = descriptor(&value, sizeof value, 0, PTL_EQ_NONE, PTL_CT_NONE);
        spin_host_compute(50 * (spin_rank() + 1));
        CHECK(PtlPut(md, 0, sizeof value, PTL_NO_ACK_REQ, next, pt, 0, round * sizeof value, NULL, 0));
        CHECK(PtlCTWait(ct, round + 1, &count));
        EXPECT(await_event(eq, PTL_EVENT_PUT).mlength == sizeof value);
        CHECK(PtlMDRelease(md));
    }
    pthread_join(watcher, NULL);
    printf("rank %d ends at %llu ps\n", spin_rank(), (unsigned long long)spin_time_ps());
    CHECK(spin_barrier());
    return close_interface();
}

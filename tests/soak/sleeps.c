/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that sleep in real time, and look at their memory in between: `sleeps ROUNDS`. */
#define _POSIX_C_SOURCE 200809L
#include "../portals/harness.h"
#include <spin.h>
#include <time.h>

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    static volatile int word;
    open_interface(PTL_NI_MATCHING | PTL_NI_LOGICAL);
    ptl_pt_index_t pt;
    ptl_handle_me_t handle;
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
    ptl_me_t me = plain_entry((void *)&word, sizeof word, 0, PTL_ME_OP_PUT);
    CHECK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
    CHECK(spin_barrier());
    struct timespec moment = {.tv_nsec = 300000};
    for (int round = 1; round <= rounds; round++) {
        ptl_handle_md_t md = descriptor(&round, sizeof round, 0, PTL_EQ_NONE, PTL_CT_NONE);
        ptl_process_t next = to_rank((spin_rank() + 1) % spin_size());
        CHECK(PtlPut(md, 0, sizeof round, PTL_NO_ACK_REQ, next, pt, 0, 0, NULL, 0));
        while (word < round)
            nanosleep(&moment, NULL);
        CHECK(spin_barrier());
        CHECK(PtlMDRelease(md));
        printf("rank %d has slept %d times\n", spin_rank(), round);
    }
    return close_interface();
}

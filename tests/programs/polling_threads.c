/* Ranks in a ring. The second thread of each spins until its neighbour's message arrives, and passes it on to the first
 * thread, which sends the next ones and now and then spins until the second one catches up. */
#define _GNU_SOURCE
#include "../portals/harness.h"
#include <pthread.h>
#include <sched.h>
#include <spin.h>

enum { RANKS = 4, ROUNDS = 20 };
static ptl_handle_md_t md;
static ptl_pt_index_t pt;
static volatile long flags[RANKS], echo;
static int rank;
static long values[ROUNDS + 1];
static void put(long *value, int to, ptl_size_t offset) {
    ptl_process_t target = {.rank = to};
    CHECK(PtlPut(md, (ptl_size_t)value, sizeof *value, PTL_NO_ACK_REQ, target, pt, 0, offset, NULL, 0));
}
/* Polls the flag of its left neighbour, and passes its value on to the main thread. */
static void *poll(void *unused) {
    for (long round = 1; round <= ROUNDS; round++) {
        while (flags[(rank + RANKS - 1) % RANKS] < round) {
        }
        echo = round;
        printf("rank %d thread round %ld at %llu\n", rank, round, (unsigned long long)spin_time_ps());
    }
    return unused;
}
int main(void) {
    ptl_handle_me_t entry;
    CHECK(PtlInit());
    rank = spin_rank();
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 4, &pt));
    ptl_me_t accept = {.start = (void *)flags,
                       .length = sizeof flags,
                       .ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT,
                       .match_id = {.rank = PTL_RANK_ANY}};
    CHECK(PtlMEAppend(ni, pt, &accept, PTL_PRIORITY_LIST, NULL, &entry));
    ptl_md_t all = {.start = NULL, .length = PTL_SIZE_MAX, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    CHECK(PtlMDBind(ni, &all, &md));
    spin_barrier();
    pthread_t thread;
    pthread_create(&thread, NULL, poll, NULL);
    for (long round = 1; round <= ROUNDS; round++) {
        values[round] = round;
        spin_host_compute(100 * (unsigned)rank + 10);
        put(&values[round], (rank + 1) % RANKS, (ptl_size_t)rank * sizeof(long));
        if (round % 2)
            while (echo < round)
                sched_yield();
    }
    pthread_join(thread, NULL);
    printf("rank %d ends at %llu\n", rank, (unsigned long long)spin_time_ps());
    spin_barrier();
    PtlFini();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `spinkit bench` uses this program to measure messages per second of wall-clock time. All messages carry 8 B.
 *
 *   stream    rank 0 puts to rank 1, acknowledged, up to 64 in flight
 *   alltoall  each rank puts to all others, acknowledged, round after round
 *   chain     the cards pass a message around all ranks with triggered puts; no rank calls while it runs
 */

#include "../common/common.h"

#include <time.h>

enum { BYTES = 8, WINDOW = 64, PORTAL = 1 };

static const char USAGE[] = "messages --pattern stream|alltoall|chain --rounds N";

static int me, ranks;
static ptl_handle_md_t md;
static ptl_handle_ct_t acks, arrived;
static unsigned char source[BYTES], target[BYTES];

static void put_to(int rank) {
    CHECK(PtlPut(md, 0, BYTES, PTL_CT_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)rank}, PORTAL, 0, 0, NULL, 0));
}

static size_t stream(size_t rounds) {
    if (me == 0)
        for (size_t i = 0; i < rounds; i++) {
            if (i >= WINDOW)
                await_count(acks, i - WINDOW + 1);
            put_to(1);
        }
    await_count(me == 0 ? acks : arrived, me < 2 ? rounds : 0);
    return rounds;
}

static size_t all_to_all(size_t rounds) {
    size_t others = (size_t)ranks - 1;
    for (size_t i = 1; i <= rounds; i++) {
        for (int ahead = 1; ahead < ranks; ahead++)
            put_to((me + ahead) % ranks);
        await_count(acks, i * others);
        await_count(arrived, i * others);
    }
    return rounds * others * (size_t)ranks;
}

/* Rank 0 starts each round; in each round, the message that arrives at any other rank triggers the next one. */
static void arm_chain(size_t rounds) {
    for (size_t i = 1; me != 0 && i <= rounds; i++)
        CHECK(PtlTriggeredPut(md, 0, BYTES, PTL_NO_ACK_REQ, (ptl_process_t){.rank = (ptl_rank_t)((me + 1) % ranks)},
                              PORTAL, 0, 0, NULL, 0, arrived, i));
    for (size_t i = 1; me == 0 && i < rounds; i++)
        CHECK(PtlTriggeredPut(md, 0, BYTES, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, PORTAL, 0, 0, NULL, 0, arrived,
                              i));
}

static size_t chain(size_t rounds) {
    if (me == 0)
        CHECK(PtlPut(md, 0, BYTES, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, PORTAL, 0, 0, NULL, 0));
    await_count(arrived, rounds);
    return rounds * (size_t)ranks;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    static const char *const patterns[] = {"stream", "alltoall", "chain"};
    static size_t (*const run[])(size_t) = {stream, all_to_all, chain};
    int pattern = choice(option(argc, argv, "--pattern", USAGE), patterns, 3, USAGE);
    size_t rounds = strtoull(option(argc, argv, "--rounds", USAGE), NULL, 10);
    start(PORTAL, NULL);
    me = spin_rank();
    ranks = spin_size();
    if (ranks < 2 || rounds == 0)
        fail("at least 2 ranks and 1 round");
    CHECK(PtlCTAlloc(ni, &acks));
    CHECK(PtlCTAlloc(ni, &arrived));
    md = bind_memory(source, BYTES, PTL_MD_EVENT_CT_ACK, acks);
    ptl_me_t me_put = {.start = target,
                       .length = BYTES,
                       .ct_handle = arrived,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                       .match_id.rank = PTL_RANK_ANY,
                       .ignore_bits = ~(ptl_match_bits_t)0};
    ptl_handle_me_t entry;
    CHECK(PtlMEAppend(ni, PORTAL, &me_put, PTL_PRIORITY_LIST, NULL, &entry));
    if (pattern == 2)
        arm_chain(rounds);
    CHECK(spin_barrier());
    double from = seconds();
    size_t messages = run[pattern](rounds);
    CHECK(spin_barrier());
    if (me == 0)
        printf("{\"messages\": %zu, \"seconds\": %.6f}\n", messages, seconds() - from);
    finish();
    return 0;
}

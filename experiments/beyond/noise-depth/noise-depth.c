/* SPDX-License-Identifier: Apache-2.0 */
/* Many broadcasts of one packet over a binomial tree, for runs in which the CPUs that forward have noise (sPIN §4.4.3).
 *
 *   --mode rdma       a rank's CPU sees the message and posts it to the rank's children
 *   --mode triggered  a rank's card sends it from host memory when it has arrived (Portals 4 triggered puts)
 *   --mode stream     the payload handler forwards it from the card
 *   --rounds N        number of broadcasts that are measured
 *   --ranks P,P,…     numbers of ranks, powers of two from 4 to the size of the job; ranks beyond wait
 *
 * Prints a JSON object a line: {"mode", "ranks", "forwarding", "mean_ps", "delay_ps", "data_ok"}. `forwarding` is the number
 * of ranks that forward on the longest path, which leads to rank P-1. The times run from the root's start until rank P-1's
 * CPU sees the message; `delay_ps` is the mean less the shortest. */
#include "../../common/common.h"
#include <handlers/broadcast/broadcast.h>

enum { PT = 3, TAG = 20 }; /* portal table index and match bits */
enum { WARM_UP = 2 };      /* rounds after which the branch predictors of the HPUs have settled */

static const char usage[] = "noise-depth --mode rdma|triggered|stream --rounds N --ranks P[,P...]";
enum mode { RDMA, TRIGGERED, STREAM, MODES };
static const char *const modes[MODES] = {"rdma", "triggered", "stream"};

static struct message {
    uint64_t start; /* when the root started, in ps */
    unsigned char data[56];
} message;

/* Sends the message to all children; with a threshold, once that many messages have arrived. */
static void send(ptl_handle_md_t md, uint32_t ranks, ptl_handle_ct_t arrived, ptl_size_t threshold) {
    uint32_t rank = (uint32_t)spin_rank();
    for (uint32_t distance = broadcast_reach(rank, ranks); distance > 0; distance /= 2) {
        ptl_process_t child = broadcast_child(rank, ranks, 0, distance);
        if (threshold == 0)
            CHECK(PtlPut(md, 0, sizeof message, PTL_NO_ACK_REQ, child, PT, TAG, 0, NULL, 0));
        else
            CHECK(
                PtlTriggeredPut(md, 0, sizeof message, PTL_NO_ACK_REQ, child, PT, TAG, 0, NULL, 0, arrived, threshold));
    }
}

/* Appends the entry for messages; `arrived` counts them. */
static ptl_handle_me_t expect(enum mode mode, uint32_t ranks, ptl_handle_ct_t arrived, ptl_hpu_md_h *memory) {
    uint32_t rank = (uint32_t)spin_rank();
    struct broadcast state = {.bits = TAG,
                              .rank = rank,
                              .ranks = ranks,
                              .reach = broadcast_reach(rank, ranks),
                              .max_packet = (uint32_t)limits.max_payload_size,
                              .streaming = true};
    ptl_me_t me = {.ct_handle = arrived, .hpu_memory = PTL_INVALID_HANDLE};
    if (mode == STREAM)
        CHECK(broadcast_attach(ni, &me, &state, broadcast_payload));
    *memory = me.hpu_memory;
    return append_entry(PT, TAG, &message, sizeof message, me);
}

/* Does the root's part of a broadcast. */
static void lead(ptl_handle_md_t md, uint32_t ranks, unsigned round) {
    CHECK(spin_barrier()); /* all have the last message, and are ready */
    for (size_t i = 0; i < sizeof message.data; i++)
        message.data[i] = pattern(i, round);
    message.start = spin_time_ps();
    send(md, ranks, PTL_CT_NONE, 0);
}

/* Does the part of another rank; returns the time that the message took to get here. */
static uint64_t follow(enum mode mode, ptl_handle_md_t md, uint32_t ranks, ptl_handle_ct_t arrived, unsigned round) {
    if (mode == TRIGGERED)
        send(md, ranks, arrived, round);
    CHECK(spin_barrier());
    await_count(arrived, round);
    uint64_t end = spin_time_ps();
    if (mode == RDMA)
        send(md, ranks, arrived, 0);
    for (size_t i = 0; i < sizeof message.data; i++)
        if (message.data[i] != pattern(i, round))
            fail("wrong byte %zu in round %u of a tree of %u", i, round, ranks);
    return end - message.start;
}

/* Measures a tree; its last rank prints the result. */
static void measure(enum mode mode, ptl_handle_md_t md, uint32_t ranks, unsigned rounds) {
    uint32_t rank = (uint32_t)spin_rank(), forwarding = 0;
    uint64_t total = 0, shortest = UINT64_MAX;
    ptl_hpu_md_h memory = PTL_INVALID_HANDLE;
    ptl_handle_me_t entry;
    ptl_handle_ct_t arrived;
    CHECK(PtlCTAlloc(ni, &arrived));
    if (rank > 0 && rank < ranks)
        entry = expect(mode, ranks, arrived, &memory);
    for (unsigned round = 1; round <= WARM_UP + rounds; round++)
        if (rank == 0) {
            lead(md, ranks, round);
        } else if (rank >= ranks) {
            CHECK(spin_barrier());
        } else {
            uint64_t time = follow(mode, md, ranks, arrived, round);
            if (round > WARM_UP) {
                total += time;
                shortest = time < shortest ? time : shortest;
            }
        }
    for (uint32_t reach = ranks / 4; reach > 0; reach /= 2)
        forwarding++;
    if (rank == ranks - 1)
        printf("{\"mode\":\"%s\",\"ranks\":%u,\"forwarding\":%u,\"mean_ps\":%llu,\"delay_ps\":%llu,\"data_ok\":true}\n",
               modes[mode], ranks, forwarding, (unsigned long long)(total / rounds),
               (unsigned long long)(total / rounds - shortest));
    fflush(stdout);
    CHECK(spin_barrier());
    if (rank > 0 && rank < ranks)
        CHECK(PtlMEUnlink(entry));
    if (memory != PTL_INVALID_HANDLE)
        CHECK(PtlHPUFreeMem(&memory));
    CHECK(PtlCTFree(arrived));
}

int main(int argc, char **argv) {
    enum mode mode = (enum mode)choice(option(argc, argv, "--mode", usage), modes, MODES, usage);
    const char *list = option(argc, argv, "--ranks", usage), *count = option(argc, argv, "--rounds", usage);
    size_t ranks, rounds;
    if (!next_number(&count, &rounds) || rounds == 0 || rounds > 1000000)
        fail("--rounds: expected 1 to 1000000");
    start(PT, NULL);
    ptl_handle_md_t md = bind_memory(&message, sizeof message, 0, PTL_CT_NONE);
    while (next_number(&list, &ranks)) {
        if (ranks < 4 || ranks > (size_t)spin_size() || (ranks & (ranks - 1)) != 0)
            fail("--ranks: %zu is no power of two from 4 to the %d ranks of the job", ranks, spin_size());
        measure(mode, md, (uint32_t)ranks, (unsigned)rounds);
    }
    finish();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the programs that measure handlers (cost.c, cost_services.c). `spinkit handlers` runs one case after
 * the other on each kind of HPU, and writes README.md. Rank 1's card runs the handlers; rank 0 sends the messages that
 * they handle and receives those that they send.
 *
 *   PROGRAM         prints the names of the cases
 *   PROGRAM CASE    prints one JSON object: {"library", "message", "state", "bytes"}, the last two being the structure
 *                   in HPU memory and its size. spinrun's report has the costs of the handlers */
#ifndef HANDLERS_COST_H
#define HANDLERS_COST_H

#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEER, CARD };                    /* ranks */
enum { PT = 3, BITS = 20, FLUSH = 30 }; /* portal table index, match bits */
enum { PACKET = 4096, MEMORY = 2 * PACKET };
enum { HPU_MEMORY = 32768 };   /* limit for an entry */
enum { ROUNDS = 4 };           /* branch predictors settle */
enum { PATIENCE_NS = 100000 }; /* all effects of a message are complete by then */

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != PTL_OK) {                                                                                           \
            fprintf(stderr, "cost: %s returned %d\n", #call, rc_);                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static ptl_handle_ni_t ni;
static ptl_handle_md_t md;
static ptl_hdr_data_t aligned_memory[MEMORY / sizeof(ptl_hdr_data_t)];
static void *const memory = aligned_memory;
static const ptl_process_t peer = {.rank = PEER}, card = {.rank = CARD};

/* Appends an entry that covers all memory. */
static void append_entry(ptl_me_t me) {
    ptl_handle_me_t handle;
    me.start = memory;
    me.length = MEMORY;
    me.uid = PTL_UID_ANY;
    me.match_id.rank = PTL_RANK_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    CHECK(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Appends the same entry, with this state in separate HPU memory. */
__attribute__((unused)) static void append(ptl_me_t me, const void *state, size_t bytes) {
    me.hpu_memory = PTL_INVALID_HANDLE;
    me.hpu_initial_state = state;
    me.hpu_initial_state_length = bytes;
    if (bytes > 0)
        CHECK(PtlHPUAllocMem(HPU_MEMORY, ni, &me.hpu_memory));
    append_entry(me);
}

static void put(ptl_size_t bytes, ptl_match_bits_t bits, ptl_hdr_data_t hdr_data) {
    CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, card, PT, bits, 0, NULL, hdr_data));
}

__attribute__((unused)) static void one_packet(void) { put(PACKET, BITS, 0); }
__attribute__((unused)) static void two_packets(void) { put(2 * PACKET, BITS, 0); }

#define STATE(type) #type, sizeof(type)
struct test {
    const char *name, *library, *message, *state;
    size_t bytes;
    void (*prepare)(void); /* preparation on the card's rank */
    void (*send)(void);    /* sending on the peer */
};

/* Runs the case named by the arguments, or lists all. */
static int cost(int argc, char **argv, const struct test *cases, size_t count) {
    const struct test *test = NULL;
    for (size_t i = 0; i < count; i++) {
        if (argc < 2)
            puts(cases[i].name);
        else if (strcmp(argv[1], cases[i].name) == 0)
            test = &cases[i];
    }
    if (test == NULL)
        return argc < 2 ? 0 : 2;
    ptl_md_t all = {.start = memory, .length = MEMORY, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_pt_index_t pt;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
    CHECK(PtlMDBind(ni, &all, &md));
    if (spin_rank() == CARD)
        test->prepare();
    else
        append((ptl_me_t){.ignore_bits = ~0ull}, NULL, 0);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(spin_barrier());
        if (spin_rank() == PEER)
            test->send();
        spin_host_compute(PATIENCE_NS);
    }
    CHECK(spin_barrier());
    if (spin_rank() == CARD)
        printf("{\"library\":\"%s\",\"message\":\"%s\",\"state\":\"%s\",\"bytes\":%zu}\n", test->library, test->message,
               test->state, test->bytes);
    CHECK(PtlNIFini(ni));
    PtlFini();
    return 0;
}

#endif

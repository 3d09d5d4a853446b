/* Shared parts of the examples: opening the card, describing memory, attaching handlers and waiting. hello.c does all
 * this by itself. */
#ifndef EXAMPLES_CARD_H
#define EXAMPLES_CARD_H

#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program when a call has failed. */
#define CHECK(call)                                                                                                    \
    ((call) == PTL_OK ? (void)0 : (fprintf(stderr, "rank %d: %s failed\n", spin_rank(), #call), exit(1)))

static ptl_handle_ni_t ni; /* the card */

/* Opens the card, whose ranks are those of the job, and portal table entry 0, whose events go to `events` or PTL_EQ_NONE. */
static inline void card_open(ptl_handle_eq_t *events, ptl_size_t count) {
    ptl_pt_index_t pt;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    if (events != NULL)
        CHECK(PtlEQAlloc(ni, count, events));
    CHECK(PtlPTAlloc(ni, 0, events != NULL ? *events : PTL_EQ_NONE, 0, &pt));
}

/* Returns an entry that takes puts of any rank with these match bits into this memory; handlers are still to be added. */
static inline ptl_me_t card_entry(void *start, ptl_size_t length, ptl_match_bits_t bits) {
    ptl_me_t me;
    memset(&me, 0, sizeof me);
    me.start = start;
    me.length = length;
    me.uid = PTL_UID_ANY;
    me.match_id.rank = PTL_RANK_ANY;
    me.match_bits = bits;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    me.hpu_memory = PTL_INVALID_HANDLE;
    CHECK(PtlCTAlloc(ni, &me.ct_handle));
    return me;
}

/* Appends the entry. Returns its counter, which counts the messages that have been handled. */
static inline ptl_handle_ct_t card_append(const ptl_me_t *me) {
    ptl_handle_me_t handle;
    CHECK(PtlMEAppend(ni, 0, me, PTL_PRIORITY_LIST, NULL, &handle));
    return me->ct_handle;
}

/* Returns a description of memory to send from. */
static inline ptl_handle_md_t card_memory(const void *start, ptl_size_t length) {
    ptl_md_t md;
    memset(&md, 0, sizeof md);
    md.start = (void *)start;
    md.length = length;
    md.eq_handle = PTL_EQ_NONE;
    md.ct_handle = PTL_CT_NONE;
    ptl_handle_md_t handle;
    CHECK(PtlMDBind(ni, &md, &handle));
    return handle;
}

/* Waits until a counter has reached `count`, and ends the program if a message has failed. */
static inline void card_wait(ptl_handle_ct_t counter, ptl_size_t count) {
    ptl_ct_event_t done;
    CHECK(PtlCTWait(counter, count, &done));
    CHECK(done.failure == 0 ? PTL_OK : PTL_FAIL);
}

/* Puts the first `length` bytes of `memory` to a rank. */
static inline void card_put(ptl_handle_md_t memory, ptl_size_t length, int rank, ptl_match_bits_t bits) {
    ptl_process_t target;
    target.rank = (ptl_rank_t)rank;
    CHECK(PtlPut(memory, 0, length, PTL_NO_ACK_REQ, target, 0, bits, 0, NULL, 0));
}

/* Waits for all ranks, and closes the card. */
static inline void card_close(void) {
    CHECK(spin_barrier());
    PtlFini();
}

#endif

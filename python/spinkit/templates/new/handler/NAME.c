/* SPDX-License-Identifier: Apache-2.0 */
/* NAME: rank 0's card adds up the numbers that all other ranks send; only the sum reaches its memory. */
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    ((call) == PTL_OK ? (void)0 : (fprintf(stderr, "rank %d: %s failed\n", spin_rank(), #call), exit(1)))

enum { NUMBERS = 1000 };

/* ---- On the card of rank 0 -------------------------------------------------------------------------------------- */

/* For every packet, in parallel. `state` is the entry's HPU memory. */
__handler int add(const ptl_payload_t p, void *state) {
    const int32_t *numbers = (const int32_t *)p.base;
    uint32_t count = (uint32_t)p.length / 4;
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += numbers[i];
    __atomic_fetch_add((int32_t *)state, sum, __ATOMIC_RELAXED);
    return SUCCESS;
}

/* Last, once a message. */
__handler int store(int dropped_bytes, bool flow_control_triggered, void *state) {
    if (dropped_bytes || flow_control_triggered)
        return FAIL; /* the sum lacks these */
    return PtlHandlerDMAToHostB(state, 0, 4, PTL_ME_HOST_MEM) ? FAIL : SUCCESS;
}

/* ---- On the hosts ----------------------------------------------------------------------------------------------- */

static int32_t numbers[NUMBERS], sum;

int main(void) {
    ptl_handle_ni_t ni;
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
    CHECK(spin_set_map(ni));
    CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &(ptl_pt_index_t){0}));
    int rank = spin_rank(), others = spin_size() - 1;
    if (rank == 0) { /* attaches the handlers to an entry, and waits for the messages of all other ranks */
        ptl_me_t me = {.start = &sum,
                       .length = sizeof sum,
                       .uid = PTL_UID_ANY,
                       .match_id.rank = PTL_RANK_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                       .payload_handler = add,
                       .completion_handler = store};
        ptl_ct_event_t messages;
        CHECK(PtlCTAlloc(ni, &me.ct_handle));
        CHECK(PtlHPUAllocMem(sizeof sum, ni, &me.hpu_memory)); /* initially zero */
        CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &(ptl_handle_me_t){0}));
        CHECK(spin_barrier());
        CHECK(PtlCTWait(me.ct_handle, others, &messages)); /* or until one fails */
        int32_t expected = NUMBERS * others * (others + 1) / 2;
        printf("sum %d after %.1f us\n", sum, spin_time_ps() / 1e6);
        if (messages.failure || sum != expected)
            fprintf(stderr, "the sum should be %d\n", expected), exit(1);
    } else { /* sends its numbers */
        ptl_md_t md = {.start = numbers, .length = sizeof numbers, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        ptl_handle_md_t memory;
        CHECK(PtlMDBind(ni, &md, &memory));
        for (int i = 0; i < NUMBERS; i++)
            numbers[i] = rank;
        CHECK(spin_barrier());
        CHECK(PtlPut(memory, 0, sizeof numbers, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, 0, 0, 0, NULL, 0));
    }
    CHECK(spin_barrier());
    PtlFini();
    return 0;
}

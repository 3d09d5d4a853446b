/* An all-reduce: the card of rank 0 adds up the vectors of all ranks, and sends the sum to all after the last one.
 * spincc examples/allreduce.c -o allreduce && spinrun -n 8 ./allreduce */
#include "card.h"

enum { VALUES = 500, VECTORS = 1, SUMS = 2 }; /* 2,000 B: one packet on every card */

struct reduction {
    uint32_t ranks, arrived;
    int32_t sum[VALUES];
};

/* Vectors of several ranks arrive at the same time, so each value is added atomically. */
__handler int add(const ptl_payload_t p, void *state) {
    struct reduction *r = state;
    const int32_t *values = (const int32_t *)p.base;
    const uint32_t first = p.offset / sizeof *values, count = p.length / sizeof *values;
    if (first + count > VALUES)
        return FAIL;
    for (uint32_t i = 0; i < count; i++)
        __atomic_fetch_add(&r->sum[first + i], values[i], __ATOMIC_RELAXED);
    return SUCCESS;
}

/* The last of all messages to be complete sends the sums. Acquire and release order its reads behind the others' additions. */
__handler int send_sums(int dropped_bytes, bool flow_control_triggered, void *state) {
    struct reduction *r = state;
    if (dropped_bytes != 0 || flow_control_triggered)
        return FAIL;
    if (__atomic_add_fetch(&r->arrived, 1, __ATOMIC_ACQ_REL) < r->ranks)
        return SUCCESS;
    for (uint32_t rank = 0; rank < r->ranks; rank++) {
        ptl_process_t target = {.rank = rank};
        if (PtlHandlerPutFromDevice(r->sum, sizeof r->sum, 0, PTL_NO_ACK_REQ, target, SUMS, 0, NULL, 0) != 0)
            return FAIL;
    }
    return SUCCESS;
}

int main(void) {
    static int32_t mine[VALUES], sums[VALUES];
    card_open(NULL, 0);
    ptl_me_t me = card_entry(sums, sizeof sums, SUMS); /* where the sums go: no handlers */
    ptl_handle_ct_t done = card_append(&me);
    if (spin_rank() == 0) {
        const struct reduction start = {.ranks = (uint32_t)spin_size()};
        me = card_entry(NULL, 0, VECTORS); /* vectors stay on the card: no host memory */
        me.payload_handler = add;
        me.completion_handler = send_sums;
        me.hpu_initial_state = &start;
        me.hpu_initial_state_length = sizeof start;
        CHECK(PtlHPUAllocMem(sizeof start, ni, &me.hpu_memory));
        card_append(&me);
    }
    for (int i = 0; i < VALUES; i++)
        mine[i] = i * (spin_rank() + 1);
    CHECK(spin_barrier());
    card_put(card_memory(mine, sizeof mine), sizeof mine, 0, VECTORS);
    card_wait(done, 1);
    const int all = spin_size() * (spin_size() + 1) / 2;
    for (int i = 0; i < VALUES; i++)
        if (sums[i] != i * all)
            return fprintf(stderr, "rank %d: sum %d is %d instead of %d\n", spin_rank(), i, sums[i], i * all), 1;
    printf("rank %d: the last of %d sums is %d\n", spin_rank(), VALUES, sums[VALUES - 1]);
    card_close();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduce over a ring: a segment goes from its first rank, which is its number modulo the ranks, around the ring
 * until all ranks add their part (reduce-scatter), and then as the sum to every rank (all-gather). Each rank sends and
 * receives 2 (1 - 1/P) times the vector, the minimum. The order of the additions is that of the ring, so the sum has
 * the same bits in each run.
 *
 * One handler adds to a packet and forwards it, and nothing of it stays on the card. So every rank must be ready before
 * the first packet arrives: cards meet in a barrier first. */
#ifndef HANDLERS_ALLREDUCE_RING_H
#define HANDLERS_ALLREDUCE_RING_H

#include <handlers/allreduce/allreduce.h>

enum {
    ALLREDUCE_RING_WINDOW = 16
}; /* segments of each rank in flight; each HPU of a card may have as many packets waiting */

/* Sends a packet to the next rank of the ring. `step` counts the ranks already passed. */
static inline int allreduce_next(const struct allreduce *a, struct allreduce_packet *packet, uint32_t step) {
    return allreduce_send(a, packet, step, a->rank + 1 < a->ranks ? a->rank + 1 : 0);
}

/* Contributes this rank's own segment to the ring. */
static inline int allreduce_ring_own(struct allreduce *a, uint32_t operation, uint32_t segment) {
    uint32_t buffer;
    if (segment >= a->segments)
        return 0;
    struct allreduce_packet *own = allreduce_take(a, segment, &buffer);
    int result = allreduce_fetch(a, operation, segment, own) || allreduce_next(a, own, 1);
    allreduce_give(a, buffer);
    return result;
}

/* Payload handler: adds the own segment to a packet, or writes the sum of all to the host, and sends it to the next rank. */
__handler int allreduce_ring_packet(const ptl_payload_t p, void *state) {
    struct allreduce *a = state;
    struct allreduce_packet *packet = (void *)p.base;
    uint32_t step = packet->step, operation = packet->operation, segment = packet->segment;
    if (step < a->ranks) {
        uint32_t buffer;
        struct allreduce_packet *own = allreduce_take(a, segment, &buffer);
        int failed = allreduce_fetch(a, operation, segment, own);
        if (!failed)
            allreduce_add(a, packet, own, allreduce_length(a, segment));
        allreduce_give(a, buffer);
        if (failed)
            return FAIL;
    }
    ptl_dma_h written;
    bool is_sum = step + 1 >= a->ranks;
    if (is_sum && allreduce_write(a, packet, &written))
        return FAIL;
    if (step + 2 < 2 * a->ranks && allreduce_next(a, packet, step + 1))
        return FAIL;
    if (is_sum && allreduce_tell(a, written))
        return FAIL;
    if (step != a->ranks)
        return SUCCESS;
    return allreduce_ring_own(a, operation, segment + a->window * a->ranks) == 0 ? SUCCESS : FAIL;
}

/* Releases this rank's first segments once all ranks reach the barrier. A rank that has none might get the sum before
 * it leaves the barrier, and must not start the next operation in it: its host waits for one more count. */
static inline int allreduce_ring_ready(struct allreduce *a, ptl_hdr_data_t data) {
    int result = barrier_message(&a->ready, data);
    if (result <= 0)
        return result;
    return a->rank < a->segments ? allreduce_spread(a, (uint32_t)data, a->rank, a->ranks) : allreduce_count(a);
}

/* Header handler: takes part in the barrier before the ring. */
__handler int allreduce_ring_barrier(const ptl_header_t h, void *state) {
    return allreduce_ring_ready(state, h.hdr_data) == 0 ? DROP_PENDING : FAIL;
}

/* Header handler: enters the barrier, contributes a segment, or answers for which rank the card waits. */
__handler int allreduce_ring_start(const ptl_header_t h, void *state) {
    struct allreduce *a = state;
    uint32_t operation = (uint32_t)h.hdr_data, what = (uint32_t)(h.hdr_data >> 32);
    /* After the barrier, the round is 0 again, and the card waits for the previous rank in the ring. */
    int result = what == ALLREDUCE_WHO
                     ? allreduce_answer(a, barrier_behind(&a->ready, a->ready.flags[operation & 1].round))
                 : what == 0 ? allreduce_ring_ready(a, barrier_enter(operation))
                             : allreduce_ring_own(a, operation, what - 1);
    return result == 0 ? DROP_PENDING : FAIL;
}

/* ---- Setup ------------------------------------------------------------------------------------------------------- */

/* Computes the state from bits, rank, ranks, type and bytes, for packets of at most `packet` bytes, the same number at
 * every rank. Returns the bytes of HPU memory. */
static inline uint32_t allreduce_plan_ring(struct allreduce *a, uint32_t packet) {
    uint32_t share = (a->bytes + a->ranks - 1) / a->ranks, most = allreduce_piece(share, ALLREDUCE_PARTS / 2, packet);
    uint32_t pieces = (share + most - 1) / most;
    uint32_t memory = allreduce_divide(a, ((share + pieces - 1) / pieces + 7) & ~7u, 0, 1);
    if (a->window > ALLREDUCE_RING_WINDOW)
        a->window = ALLREDUCE_RING_WINDOW;
    a->told += a->rank >= a->segments;
    return memory;
}

static const struct allreduce_algorithm allreduce_ring = {
    .start = allreduce_ring_start, .ready = allreduce_ring_barrier, .packet = allreduce_ring_packet};

#endif
